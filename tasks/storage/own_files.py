"""Files and folders that edgemill creates on a disk: for their user alone, and never through a symbolic link.

A path that a user names may lead through symbolic links. The names that edgemill adds to it can be guessed, so another
user may plant a link there. Functions here take a path and `own`, the number of its last components that edgemill
chose. None of these components may be a link.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ..errors import UsageError

_FOLDER_MODE, _FILE_MODE = 0o700, 0o600
_REMOVAL_TRIES = 21
_REMOVERS = 16
"""Threads that remove the files of a folder."""
_OPEN_AT_ONCE = 128
"""Files that are open at a time while they are flushed."""
_ANY_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
_OWN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OWN_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NO_PERMISSIONS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS)
"""Errors of file systems that store no permissions."""
NOT_A_FILE = (errno.ELOOP, errno.EINVAL, errno.EISDIR, errno.ENOTDIR, errno.ENXIO)
"""Errors of opening a link, a folder, a pipe or a device in place of a file, or of a link in place of its folder."""


@dataclass(frozen=True)
class Permissions:
    """Permissions that new files and folders get in a folder, by the umask and its access lists."""

    folder: int
    file: int


def plain_name(name: str) -> str:
    """Return the name if it is one path component. Raises ValueError for "", ".", "..", a slash or a NUL."""
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise ValueError(f"{name!r} is not a plain name of a file or folder")
    return name


def plain_path(path: str) -> str:
    """Return the relative path if each of its components is a plain name. Raises ValueError."""
    for name in path.split("/"):
        plain_name(name)
    return path


def is_own_folder(path: Path) -> bool:
    """Whether `path` is a folder of this user; False if nothing is there.

    Raises UsageError if a link, a file or another user's folder is there.
    """
    try:
        found = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise UsageError(f"cannot look at {path}: {error.strerror}") from error
    if not stat.S_ISDIR(found.st_mode):
        raise UsageError(f"{path} is {_kind(found.st_mode)}, not a folder that edgemill made: remove it")
    if found.st_uid not in _user_ids(path.parent, found.st_uid):
        raise UsageError(f"{path} belongs to another user (uid {found.st_uid}), so nothing is read or written there")
    return True


def make_own_folder(path: Path, own: int = 1) -> None:
    """Make a folder that only its user can enter. Raises FileExistsError if anything is there, OSError."""
    with _parent(path, own) as folder:
        os.mkdir(path.name, _FOLDER_MODE, dir_fd=folder)


def open_own(path: Path, flags: int, own: int = 1, mode: int = _FILE_MODE) -> int:
    """Open the regular file at `path` with `flags` of os.open; returns a file descriptor. `mode` is for a new file.

    Raises OSError, with ELOOP for a link and EINVAL for a pipe or a device.
    """
    with _parent(path, own) as folder:
        handle = os.open(path.name, flags | _OWN_FILE, mode, dir_fd=folder)
    try:
        _refuse_special(os.fstat(handle), path)
    except OSError:
        os.close(handle)
        raise
    return handle


def read_own(path: Path, own: int = 1) -> bytes | None:
    """The content of the file at `path`; None if there is no file. Raises OSError."""
    try:
        with open(open_own(path, os.O_RDONLY, own), "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def size_of_own(path: Path, own: int = 1) -> int | None:
    """The bytes of the regular file at `path`; None if nothing is there. Raises OSError as `open_own` does."""
    try:
        with _parent(path, own) as folder:
            found = os.stat(path.name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    _refuse_special(found, path)
    return found.st_size


def link_own(source: Path, target: Path, own: int = 1) -> None:
    """Make `target` a hard link of the regular file at `source`, whose last components `own` counts.

    Raises OSError as `open_own` does; then nothing is at `target`.
    """
    with _parent(source, own) as folder:
        os.link(source.name, target, src_dir_fd=folder, follow_symlinks=False)
    try:
        _refuse_special(target.lstat(), source)
    except OSError:
        target.unlink()
        raise


def _refuse_special(found: os.stat_result, path: Path) -> None:
    if stat.S_ISLNK(found.st_mode):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))


def remove_own(path: Path, own: int = 1) -> None:
    """Remove a file, a link (not its target), or a folder with its content; a missing path is fine. Raises OSError.

    Threads remove the files of a folder: the system frees the memory that caches them, 0.25 s a GB with one thread.
    """
    with suppress(FileNotFoundError), _parent(path, own) as folder:
        if stat.S_ISDIR(os.stat(path.name, dir_fd=folder, follow_symlinks=False).st_mode):
            for _, _, files, inside in os.fwalk(path.name, topdown=False, dir_fd=folder):
                with ThreadPoolExecutor(_REMOVERS) as removers:  # ends before `inside` is closed, also after an error
                    list(removers.map(partial(os.unlink, dir_fd=inside), files))
            shutil.rmtree(path.name, dir_fd=folder)
        else:
            os.unlink(path.name, dir_fd=folder)


def remove_busy_folder(path: Path, own: int = 1) -> None:
    """Remove a folder into which tasks of an ended run may still write: retry when a new file appears meanwhile.

    Rename the folder first, so that no task opens another file in it. Raises OSError if the folder stays.
    """
    for tries_left in reversed(range(_REMOVAL_TRIES)):
        try:
            remove_own(path, own)
        except OSError as error:
            if not tries_left or error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        if not os.path.lexists(path):
            return


@contextmanager
def locked(path: Path, wait: bool = True) -> Iterator[bool]:
    """Hold the kernel's lock (flock) on a file or folder, which no link is followed to, within the block.

    Yields False if another process holds it, unless it is waited for, and where the file system has no such lock. The
    kernel releases the lock of a process that is killed. Raises OSError if the path cannot be opened.
    """
    handle = os.open(path, os.O_RDONLY | _OWN_FILE)
    try:
        yield take_flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.close(handle)


def take_flock(handle: int, kind: int) -> bool:
    """Lock an open file or folder until it is closed; `kind` is that of flock. False as `locked` yields it."""
    try:
        fcntl.flock(handle, kind)
    except OSError:
        return False
    return True


def default_permissions(folder: Path) -> Permissions:
    """The permissions that new files and folders get in `folder`. Creates a file without a name to find out, or a file
    and a folder where the file system has no such files. Raises OSError.
    """
    with suppress(OSError, AttributeError):
        modes = []
        for mode in (0o777, 0o666):
            handle = os.open(folder, os.O_WRONLY | os.O_TMPFILE | os.O_CLOEXEC, mode)
            modes.append(stat.S_IMODE(os.fstat(handle).st_mode))
            os.close(handle)
        return Permissions(modes[0] | (folder.stat().st_mode & stat.S_ISGID), modes[1])
    probe = folder / f".edgemill-{secrets.token_hex(8)}"
    probe.mkdir()
    try:
        of_folder = probe.lstat().st_mode
    finally:
        probe.rmdir()
    handle = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _OWN_FILE, 0o666)
    try:
        return Permissions(stat.S_IMODE(of_folder), stat.S_IMODE(os.fstat(handle).st_mode))
    finally:
        os.close(handle)
        probe.unlink()


def resolved(path: Path) -> Path:
    """The path without symbolic links: the user's own links and links of parent folders are followed.

    Raises UsageError if the last component is another user's link.
    """
    try:
        found = path.lstat()
    except OSError:
        return Path(os.path.realpath(path))
    if stat.S_ISLNK(found.st_mode) and found.st_uid not in _user_ids(path.parent, found.st_uid) | {0}:
        raise UsageError(f"{path} is a symbolic link of another user (uid {found.st_uid}): name the folder itself")
    return Path(os.path.realpath(path))


def finalize(path: Path, permissions: Permissions) -> None:
    """Set the permissions of a file, or of a folder and its content, and flush all of it to the disk (fsync).

    Permissions of many files are set before any of these is flushed: a journal writes them all at the first flush.
    Raises OSError, also for a link in the folder.
    """
    modes: list[tuple[Path, int]] = []
    for folder, subfolders, files in os.walk(path, topdown=False):
        links = [name for name in subfolders if os.path.islink(Path(folder, name))]
        modes += [(Path(folder, name), permissions.file) for name in files + links]
        modes.append((Path(folder), permissions.folder))
    if not modes:
        modes.append((path, permissions.file))
    for first in range(0, len(modes), _OPEN_AT_ONCE):
        with ExitStack() as stack:
            handles: list[int] = []
            for each, mode in modes[first : first + _OPEN_AT_ONCE]:
                handles.append(os.open(each, os.O_RDONLY | _OWN_FILE))
                stack.callback(os.close, handles[-1])
                _set_permissions(handles[-1], mode)
            for handle in handles:
                os.fsync(handle)


def _set_permissions(handle: int, mode: int) -> None:
    if stat.S_IMODE(os.fstat(handle).st_mode) == mode:
        return
    try:
        os.fchmod(handle, mode)
    except OSError as error:
        if error.errno not in _NO_PERMISSIONS:
            raise


@contextmanager
def _parent(path: Path, own: int) -> Iterator[int]:
    """A descriptor of the parent folder of `path`. Its last `own - 1` components are opened without following links."""
    named_by_user = max(len(path.parts) - own, 0)
    handle = os.open(Path(*path.parts[:named_by_user]), _ANY_FOLDER)
    try:
        for name in path.parts[named_by_user:-1]:
            inner = os.open(plain_name(name), _OWN_FOLDER, dir_fd=handle)
            os.close(handle)
            handle = inner
        yield handle
    finally:
        os.close(handle)


def _user_ids(parent: Path, owner: int) -> set[int]:
    """User ids that files of this process may have: a network file system may map the effective id to another."""
    own = {os.geteuid()}
    if owner not in own:
        probe = parent / f".edgemill-{secrets.token_hex(8)}"
        with suppress(OSError):
            probe.mkdir(_FOLDER_MODE)
            own.add(probe.lstat().st_uid)
            probe.rmdir()
    return own


def _kind(mode: int) -> str:
    return "a symbolic link" if stat.S_ISLNK(mode) else "a file" if stat.S_ISREG(mode) else "a pipe or a device"
