"""Adding files to a Delta table without reading them: as hard links on a disk, as copies within an object store.

A commit is added to the log atomically, and only if no other commit has its number.
"""

from __future__ import annotations

import os
from pathlib import Path

from ....tasks.errors import NO_SPACE, OutOfRoom, UsageError
from ....tasks.storage.atomic import create_file, link_or_copy, sync_folder
from ....tasks.storage.folders import Folder


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
