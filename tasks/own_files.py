"""Files and folders that edgemill makes on a disk: with plain names, for their user alone, and without following links.

A location that a user names may lead through symbolic links. What edgemill makes there has names that others can guess,
so a link at one of these names may be planted. The functions here take a path and `own`, the number of its last names
that edgemill chose: none of those is followed if it is a link.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from .errors import UsageError

__all__ = [
    "Modes",
    "followed",
    "is_own_folder",
    "make_own_folder",
    "open_own",
    "plain",
    "plain_names",
    "publish",
    "read_own",
    "remove_own",
    "remove_set_aside",
    "replacing",
    "usual_modes",
]

_FOLDER, _FILE = 0o700, 0o600
_MORE_REMOVALS = 20
"""How often a folder that was set aside is removed again."""
_ANY_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
_OWN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OWN_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NO_MODES = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS)
"""Errors of file systems that keep no permissions."""


@dataclass(frozen=True)
class Modes:
    """Permissions that a file system gives to what any program makes in a folder, by umask and access lists."""

    folder: int
    file: int


def plain(name: str) -> str:
    """The same name, if it is one of a file or folder and no path. Raises ValueError."""
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise ValueError(f"{name!r} is not a plain name of a file or folder")
    return name


def plain_names(path: str) -> str:
    """The same relative path, if it is plain names with "/" between them. Raises ValueError."""
    for name in path.split("/"):
        plain(name)
    return path


def is_own_folder(path: Path) -> bool:
    """Whether there is a folder of this user at `path`; False if nothing is there.

    Raises UsageError if a link, something else than a folder, or a folder of another user is there.
    """
    try:
        found = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise UsageError(f"cannot look at {path}: {error.strerror}") from error
    if not stat.S_ISDIR(found.st_mode):
        raise UsageError(f"{path} is {_kind(found.st_mode)}, not a folder that edgemill made: remove it")
    if found.st_uid not in _own_users(path.parent, found.st_uid):
        raise UsageError(f"{path} belongs to another user (uid {found.st_uid}), so nothing is read or written there")
    return True


def make_own_folder(path: Path, own: int = 1) -> None:
    """Make a new folder that its user alone can enter. Raises FileExistsError if anything is there, OSError."""
    with _parent(path, own) as folder:
        os.mkdir(path.name, _FOLDER, dir_fd=folder)


def open_own(path: Path, flags: int, own: int = 1, mode: int = _FILE) -> int:
    """A handle of the regular file at `path`; a new one is its user's alone, unless `mode` lets others read it.

    Raises OSError; of the number ELOOP for a link, EINVAL for a pipe or a device.
    """
    with _parent(path, own) as folder:
        handle = os.open(path.name, flags | _OWN_FILE, mode, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    return handle


def read_own(path: Path, own: int = 1) -> bytes | None:
    """What the file at `path` holds; None if there is none. Raises OSError."""
    try:
        with open(open_own(path, os.O_RDONLY, own), "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def remove_own(path: Path, own: int = 1) -> None:
    """Remove a file, a link itself, or a folder with all that is in it; nothing need be there. Raises OSError."""
    with suppress(FileNotFoundError), _parent(path, own) as folder:
        if stat.S_ISDIR(os.stat(path.name, dir_fd=folder, follow_symlinks=False).st_mode):
            shutil.rmtree(path.name, dir_fd=folder)
        else:
            os.unlink(path.name, dir_fd=folder)


def remove_set_aside(path: Path, own: int = 1) -> None:
    """Remove a folder that has been renamed. A task that outlives its run may have had it open then, and make one more
    file in it while it is removed: so it is tried again. Raises OSError if it cannot be removed.
    """
    for last in (*[False] * _MORE_REMOVALS, True):
        try:
            remove_own(path, own)
        except OSError as error:
            if last or error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        if not os.path.lexists(path):
            return


def usual_modes(folder: Path) -> Modes:
    """The permissions that new files and folders in `folder` get from it and from the process. Raises OSError."""
    tried = folder / f".edgemill-{secrets.token_hex(8)}"
    tried.mkdir()
    try:
        of_folder = tried.lstat().st_mode
    finally:
        tried.rmdir()
    handle = os.open(tried, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _OWN_FILE, 0o666)
    try:
        return Modes(stat.S_IMODE(of_folder), stat.S_IMODE(os.fstat(handle).st_mode))
    finally:
        os.close(handle)
        tried.unlink()


def followed(path: Path) -> Path:
    """The path that a user named, without links: his own, and those of parent folders, are followed.

    Raises UsageError if another user's link is at the very place.
    """
    try:
        found = path.lstat()
    except OSError:
        return Path(os.path.realpath(path))
    if stat.S_ISLNK(found.st_mode) and found.st_uid not in _own_users(path.parent, found.st_uid) | {0}:
        raise UsageError(f"{path} is a symbolic link of another user (uid {found.st_uid}): name the folder itself")
    return Path(os.path.realpath(path))


def publish(path: Path, modes: Modes) -> None:
    """Give a folder with all that is in it, or a file, these permissions, and wait until it is on the disk.

    Raises OSError, for a link in it too.
    """
    for place, folders, files in os.walk(path, topdown=False):
        links = [name for name in folders if os.path.islink(Path(place, name))]
        for name in files + links:
            _publish(Path(place, name), modes.file)
        _publish(Path(place), modes.folder)
    if not path.is_dir():
        _publish(path, modes.file)


@contextmanager
def replacing(path: Path, check: Callable[[], None] = lambda: None) -> Iterator[BinaryIO]:
    """A new file beside `path` that takes its place when the block ends, after `check`, and is removed if one of them
    fails. A link there is replaced itself. Raises OSError.
    """
    beside = path.with_name(f".{path.name}.edgemill-{secrets.token_hex(4)}")
    try:
        with open(open_own(beside, os.O_RDWR | os.O_CREAT | os.O_EXCL), "w+b") as file:
            yield file
        publish(beside, usual_modes(path.parent))
        check()
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def _publish(path: Path, mode: int) -> None:
    handle = os.open(path, os.O_RDONLY | _OWN_FILE)
    try:
        if stat.S_IMODE(os.fstat(handle).st_mode) != mode:
            try:
                os.fchmod(handle, mode)
            except OSError as error:
                if error.errno not in _NO_MODES:
                    raise
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _parent(path: Path, own: int) -> Iterator[int]:
    """A handle of the folder that `path` lies in, whose last `own - 1` names may be no links."""
    given = max(len(path.parts) - own, 0)
    handle = os.open(Path(*path.parts[:given]), _ANY_FOLDER)
    try:
        for name in path.parts[given:-1]:
            inner = os.open(plain(name), _OWN_FOLDER, dir_fd=handle)
            os.close(handle)
            handle = inner
        yield handle
    finally:
        os.close(handle)


def _own_users(parent: Path, found: int) -> set[int]:
    """Ids that this process may have as an owner of files: a network's file system may give it another."""
    own = {os.geteuid()}
    if found not in own:
        tried = parent / f".edgemill-{secrets.token_hex(8)}"
        with suppress(OSError):
            tried.mkdir(_FOLDER)
            own.add(tried.lstat().st_uid)
            tried.rmdir()
    return own


def _kind(mode: int) -> str:
    return "a symbolic link" if stat.S_ISLNK(mode) else "a file" if stat.S_ISREG(mode) else "a pipe or a device"
