"""New files and folders at a path or URL that a user names. They appear when they are complete.

In an object store they are created on a local disk, and uploaded when complete.
"""

from __future__ import annotations

import glob
import os
import re
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

from ...tasks.errors import EdgemillError, UsageError
from ...tasks.storage.atomic import atomic_file, remove_unfinished, replace_folder, settle_aside, temporary_path
from ...tasks.storage.folders import Folder, folder_at
from ...tasks.storage.own_files import default_permissions, finalize, locked, make_own_folder, remove_own, resolved
from ..settings.overlap import refuse_within

_UPLOAD = re.compile(r"\.edgemill-[0-9a-f]{8}")
"""Name of a folder of uploaded files that are copied to its parent."""


@contextmanager
def file_in_store(target: Folder, overwrite: bool) -> Iterator[BinaryIO]:
    """Yield a file that is uploaded to `target` when the block ends. Raises as `new_path.new_file` does."""

    def refuse() -> None:
        with target.store_errors("write"):
            target.files.invalidate_cache()
            if target.files.isdir(target.path()):
                raise UsageError(f"{target} is a folder: name a file")
            if target.files.exists(target.path()) and not overwrite:
                raise UsageError(f"{target} exists: choose another, or replace it with --overwrite")

    refuse()
    with TemporaryDirectory(prefix="edgemill-") as folder:
        local = Path(folder) / "file"
        with local.open("xb") as file:
            yield file
        refuse()
        with target.store_errors("write"):
            target.files.put_file(str(local), target.path())


@contextmanager
def folder_in_store(target: Folder, own: Sequence[str], overwrite: bool) -> Iterator[Path]:
    """Yield a local folder whose files, with the names `own`, are uploaded to `target` when the block ends.

    The last name of `own` is written last and removed first, so that its file is there only if all others are. Old
    files are removed when all new ones are uploaded to a folder in `target`, from which the store copies them.

    Raises as `new_path.new_folder` does.
    """

    def refuse() -> None:
        names = target.names()
        with target.store_errors("write"):
            if target.files.isfile(target.path()):
                raise UsageError(f"{target} exists and is not a folder: choose another")
        if not overwrite and any(not _UPLOAD.fullmatch(name) for name in names):
            raise UsageError(f"{target} exists: choose another, or replace it with --overwrite")
        if others := {name for name in names if name not in own and not _UPLOAD.fullmatch(name)}:
            raise UsageError(f"{target} has another file, {min(others)}, so --overwrite does not replace it")

    def clear() -> None:
        for name in reversed(own):
            target.remove(name)

    refuse()
    upload = target.subfolder(f".edgemill-{uuid.uuid4().hex[:8]}")
    with TemporaryDirectory(prefix="edgemill-") as folder:
        yield Path(folder)
        created = [name for name in own if (Path(folder) / name).exists()]
        try:
            for name in created:
                with target.store_errors("write", name):
                    upload.files.put_file(str(Path(folder) / name), upload.path(name))
            refuse()
            clear()
            try:
                for name in created:
                    with target.store_errors("write", name):
                        try:
                            target.files.cp_file(upload.path(name), target.path(name))
                        except Exception:  # the store may not copy, or another call may have removed the upload
                            target.files.put_file(str(Path(folder) / name), target.path(name))
            except BaseException:
                with suppress(EdgemillError):  # the store may be the reason
                    clear()
                raise
        finally:
            with suppress(EdgemillError):
                for name in filter(_UPLOAD.fullmatch, target.names()):  # also uploads of killed calls
                    target.remove(name)


@contextmanager
def new_file(
    path: Folder | str | os.PathLike[str], overwrite: bool = False, apart_from: Iterable[Folder] = ()
) -> Iterator[BinaryIO]:
    """Yield a binary file that appears at `path`, a path or fsspec URL, when the block ends without an error.

    Raises UsageError if a file exists and `overwrite` is false, if something else exists, if the file cannot be
    written, or if it is inside one of the folders `apart_from`.
    """
    target = folder_at(path)
    if target.is_local:  # a link at the path itself is not followed
        folder, name = os.path.split(os.path.expanduser(target.url))
        target = Folder(os.path.join(os.path.realpath(folder), name))
    refuse_within(target, apart_from)
    with _file_on_disk(target, overwrite) if target.is_local else file_in_store(target, overwrite) as file:
        yield file


@contextmanager
def new_folder(
    path: Folder | str | os.PathLike[str],
    own: Sequence[str],
    overwrite: bool = False,
    apart_from: Iterable[Folder] = (),
) -> Iterator[Path]:
    """Yield a folder that becomes `path` when the block ends without an error; else it is removed.

    With `overwrite` it replaces a folder that has no files but those named in `own`. Raises UsageError for another
    folder, and as `new_file` does. In an object store, which cannot rename, files appear one by one; the last of `own`
    shows that the folder is complete.
    """
    target = folder_at(path)
    if target.is_local:
        target = Folder(str(resolved(Path(os.path.expanduser(target.url)))))
    refuse_within(target, apart_from)
    with (
        _folder_on_disk(target, own, overwrite)
        if target.is_local
        else folder_in_store(target, own, overwrite) as folder
    ):
        yield folder


@contextmanager
def _file_on_disk(target_folder: Folder, overwrite: bool) -> Iterator[BinaryIO]:
    target = Path(target_folder.url)

    def refuse() -> None:
        if target.is_symlink():
            raise UsageError(f"{target} is a symbolic link, which is not followed: name the file itself")
        if target.is_dir():
            raise UsageError(f"{target} is a folder: name a file")
        if os.path.lexists(target) and not overwrite:
            raise UsageError(f"{target} exists: choose another, or replace it with --overwrite")
        if os.path.lexists(target) and not target.is_file():
            raise UsageError(f"{target} is a device or a pipe, which a file cannot replace: choose another path")

    refuse()
    with ExitStack() as stack:
        try:
            file = stack.enter_context(atomic_file(target, refuse))
        except OSError as error:
            raise UsageError(f"cannot write {target}: {error.strerror}") from error
        yield file


@contextmanager
def _folder_on_disk(target_folder: Folder, own: Sequence[str], overwrite: bool) -> Iterator[Path]:
    target = Path(target_folder.url)

    def refuse() -> None:
        if not os.path.lexists(target):
            return
        if not target.is_dir():
            raise UsageError(f"{target} exists and is not a folder: choose another")
        if not overwrite:
            raise UsageError(f"{target} exists: choose another, or replace it with --overwrite")
        if others := {entry.name for entry in target.iterdir()} - set(own):
            raise UsageError(f"{target} has another file, {min(others)}, so --overwrite does not replace it")

    remove_unfinished(target.parent, target.name)
    with suppress(OSError):
        for aside in target.parent.glob(f".{glob.escape(target.name)}.edgemill-{'[0-9a-f]' * 8}.old"):
            if not os.path.lexists(aside.with_suffix("")):  # else its writer still works
                settle_aside(aside, target)
    refuse()
    beside = temporary_path(target)
    with ExitStack() as stack:
        try:
            make_own_folder(beside)
            stack.enter_context(locked(beside))
        except OSError as error:
            raise UsageError(f"cannot write {target}: {error.strerror}") from error
        try:
            yield beside
            finalize(beside, default_permissions(beside))
            refuse()
            replace_folder(beside, target, beside.with_name(beside.name + ".old"))
        finally:
            with suppress(OSError):
                remove_own(beside)
