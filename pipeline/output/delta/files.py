"""Adding files to a Delta table without reading them: as hard links on a disk, as copies within an object store.

A commit is added to the log atomically, and only if no other commit has its number.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ....tasks.errors import NO_SPACE, OutOfRoom, UsageError
from ....tasks.storage.atomic import atomic_file, create_file, link_or_copy, remove_unfinished, sync_folder
from ....tasks.storage.folders import Folder
from ....tasks.storage.own_files import take_flock


def add_file(source: Folder, name: str, size: int, folder: Folder, new: str) -> None:
    """Add the file `name` of `source` to `folder` as `new`; both are on disks, or both in one object store.

    Does nothing if `new` has `size` bytes: an interrupted run has added it. Raises UsageError, OutOfRoom.
    """
    if folder.sizes([new]) == [size]:
        return
    if not folder.is_local:
        with folder.store_errors("copy to", new):
            folder.files.cp_file(source.path(name), folder.path(new))
        return
    target = Path(folder.path(new))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        link_or_copy(Path(source.path(name)), target, own=2 + name.count("/"))
    except OSError as error:
        raise _write_error(error, folder, new) from error


def create(folder: Folder, name: str, content: bytes) -> bool:
    """Create a file atomically; False if it exists. Raises UsageError, OutOfRoom."""
    if not folder.is_local:
        return folder.create(name, content)
    path = Path(folder.path(name))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return create_file(path, content)
    except OSError as error:
        raise _write_error(error, folder, name) from error


def replace(folder: Folder, name: str, content: bytes) -> None:
    """Create or replace a file atomically: readers of a table look at all files of its log. Raises as `create`."""
    if not folder.is_local:
        folder.write(name, content)
        return
    try:
        with atomic_file(Path(folder.path(name))) as file:
            file.write(content)
    except OSError as error:
        raise _write_error(error, folder, name) from error


@contextmanager
def adding_to(folder: Folder) -> Iterator[Callable[[], bool]]:
    """Tell other runs that this one adds files to a table. Yields a function: whether no other run does.

    That cannot be told in a store, nor where the file system has no locks. Raises UsageError, OutOfRoom.
    """
    if not folder.is_local:
        yield lambda: False
        return
    path = Path(folder.path())
    try:
        path.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise _write_error(error, folder, ".") from error
    try:
        take_flock(handle, fcntl.LOCK_SH)  # another run that holds it alone removes a few files
        yield lambda: take_flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.close(handle)


def remove_left(folder: Folder) -> None:
    """Remove what killed runs left unfinished in a folder on a disk."""
    if folder.is_local:
        remove_unfinished(Path(folder.path()))


def sync(folder: Folder) -> None:
    """Flush the names in a folder to the disk (fsync); no operation in a store. Raises UsageError, OutOfRoom."""
    if folder.is_local:
        try:
            sync_folder(Path(folder.path()))
        except OSError as error:
            raise _write_error(error, folder, ".") from error


def refuse_link(folder: Folder) -> None:
    """Raises UsageError for a symbolic link instead of a folder: another user may have planted it."""
    if folder.is_local and os.path.islink(folder.path()):
        raise UsageError(f"{folder} is a symbolic link, not a folder of Delta tables that edgemill made: remove it")


def _write_error(error: OSError, folder: Folder, name: str) -> Exception:
    kind = OutOfRoom if error.errno in NO_SPACE else UsageError
    return kind(f"cannot write {folder}/{name} of a Delta table: {error.strerror or error}")
