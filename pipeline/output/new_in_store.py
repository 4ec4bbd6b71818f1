"""A new file or folder in an object store: created on a local disk, and uploaded when complete."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

from ...tasks.errors import EdgemillError, UsageError
from ...tasks.storage.folders import Folder

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
