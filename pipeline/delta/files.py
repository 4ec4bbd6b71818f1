"""Files come into a Delta table without passing through this process: as hard links on a disk, as copies that an object
store makes itself. A commit comes into its log whole, or not at all because another has its number.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from contextlib import suppress
from pathlib import Path

from ...tasks.errors import NO_SPACE, OutOfRoom, UsageError
from ...tasks.own_files import open_own, publish, usual_modes
from ...tasks.places import Place

__all__ = ["create", "refuse_link", "settle", "take"]

_NO_LINKS = (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.ENOSYS)


def take(source: Place, name: str, size: int, folder: Place, new: str) -> None:
    """Let `folder` have the file `name` of `source` as `new`; both are on disks, or both in one object store.

    A file of that size is there already where this was ended and is repeated. Raises UsageError, OutOfRoom.
    """
    if folder.sizes([new]) == [size]:
        return
    if not folder.is_local:
        with folder.reached("copy to", new):
            folder.files.cp_file(source.path(name), folder.path(new))
        return
    try:
        _link(Path(source.path(name)), Path(folder.path(new)))
    except OSError as error:
        raise _told(error, folder, new) from error


def create(folder: Place, name: str, content: bytes) -> bool:
    """Make a file that is not there; False if it is. Nobody sees half of it. Raises UsageError, OutOfRoom."""
    if not folder.is_local:
        return folder.create(name, content)
    path = Path(folder.path(name))
    beside = path.with_name(f".{path.name}.edgemill-{secrets.token_hex(4)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with open(open_own(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
                file.write(content)
            publish(beside, usual_modes(path.parent))
            return _renamed(beside, path)
        finally:
            with suppress(OSError):
                beside.unlink(missing_ok=True)
    except OSError as error:
        raise _told(error, folder, name) from error


def settle(folder: Place) -> None:
    """Wait until the names of the files in a folder are on the disk; an object store has nothing to wait for."""
    if folder.is_local:
        try:
            handle = os.open(folder.path(), os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
        except OSError as error:
            raise _told(error, folder, ".") from error


def refuse_link(folder: Place) -> None:
    """Raises UsageError for a symbolic link where edgemill makes a folder: somebody may have planted it."""
    if folder.is_local and os.path.islink(folder.path()):
        raise UsageError(f"{folder} is a symbolic link, not a folder of Delta tables that edgemill made: remove it")


def _renamed(beside: Path, path: Path) -> bool:
    """Whether the file came into its place, where nothing was."""
    try:
        os.link(beside, path, follow_symlinks=False)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if path.exists():  # a file system without links: the lock of the output keeps two runs of a day apart
            return False
        os.replace(beside, path)
    return True


def _link(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_name(f".{target.name}.edgemill-{secrets.token_hex(4)}")
    try:
        try:
            os.link(source, beside, follow_symlinks=False)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            with open(source, "rb") as old, open(open_own(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as new:
                shutil.copyfileobj(old, new, 1 << 20)
            publish(beside, usual_modes(target.parent))
        os.replace(beside, target)
    finally:
        beside.unlink(missing_ok=True)


def _told(error: OSError, folder: Place, name: str) -> Exception:
    kind = OutOfRoom if error.errno in NO_SPACE else UsageError
    return kind(f"cannot write {folder}/{name} of a Delta table: {error.strerror or error}")
