"""Atomic changes on a disk: a file, a link or a folder appears at its path whole, or not at all.

Each is created under a temporary name in the same folder, flushed to the disk (fsync) and renamed. A symbolic link at
the path is replaced itself; its target stays. The next writer removes what a killed one left under such a name.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Self

from .own_files import default_permissions, finalize, link_own, locked, open_own, remove_own, take_flock

NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS)
"""Errors of file systems without links."""
_UNFINISHED = re.compile(r"\.(.+)\.edgemill-[0-9a-f]{8}(?:-gone)?")
_TRIES = 5
_NO_HARD_LINK = (*NO_LINKS, errno.EXDEV, errno.EMLINK)
"""The same, and of hard links between file systems, and of too many links."""


def temporary_path(path: Path) -> Path:
    """A path beside `path` for what is not finished yet; `remove_unfinished` knows its name."""
    return path.with_name(f".{path.name}.edgemill-{secrets.token_hex(4)}")


@contextmanager
def renamed_into(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`, and rename what the block creates there to `path`.

    If the block fails, what is at the temporary path is removed. Raises OSError.
    """
    temporary = temporary_path(path)
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        with suppress(OSError):
            temporary.unlink()


@contextmanager
def atomic_file(
    path: Path, check: Callable[[], None] = lambda: None, *, own: int = 1, private: bool = False
) -> Iterator[BinaryIO]:
    """Yield a binary file, open for reading and writing, that becomes `path` when the block ends.

    `check` runs just before the rename; if it or the block raises, `path` stays as it was. The file gets the folder's
    default permissions, or with `private` its user's alone. `own` is that of `open_own`. What killed writers of `path`
    left is removed, unless the file is private: those are in folders that are removed. Raises OSError.
    """
    if not private:
        remove_unfinished(path.parent, path.name)
    with _LockedUntilNamed() as lock, renamed_into(path) as temporary:
        with open(lock.create(temporary, own), "w+b") as file:
            yield file
            if private:
                file.flush()
                os.fsync(file.fileno())
        if not private:
            finalize(temporary, default_permissions(path.parent))
        check()


class _LockedUntilNamed:
    """Holds flock on a temporary file, so that `remove_unfinished` of others leaves it."""

    def __enter__(self) -> Self:
        self._handle: int | None = None
        return self

    def __exit__(self, *_: object) -> None:
        if self._handle is not None:
            os.close(self._handle)

    def create(self, temporary: Path, own: int = 1) -> int:
        """Create a file, and return a descriptor of it. Raises OSError."""
        while True:
            handle = open_own(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, own)
            take_flock(handle, fcntl.LOCK_EX)  # for a process that looks whether the file is locked
            if os.fstat(handle).st_nlink:
                self._handle = os.dup(handle)
                return handle
            os.close(handle)  # that process has removed it


def remove_unfinished(folder: Path, name: str | None = None) -> None:
    """Remove temporary files and folders in `folder` that killed writers of `name`, or of any file, left there.

    Those of writers that still work stay, as they are locked; a link stays the shortest time, and is made again.
    """
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            found = _UNFINISHED.fullmatch(entry.name)
            if found is None or name not in (None, found[1]):
                continue
            with suppress(OSError):  # it is another user's, or gone by now
                if entry.is_symlink():
                    os.unlink(entry.path)
                    continue
                with locked(Path(entry.path), wait=False) as is_left:
                    if is_left:
                        remove_own(Path(entry.path))


def write_new(path: Path, content: bytes, own: int = 1) -> None:
    """Create a private file, and flush it to the disk (fsync). A file that cannot be written whole is removed.

    Raises FileExistsError if anything is there, OSError.
    """
    with open(open_own(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, own), "wb") as file:
        try:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        except BaseException:
            path.unlink(missing_ok=True)
            raise


def create_file(path: Path, content: bytes) -> bool:
    """Create a file with the folder's default permissions; of several writers one succeeds. False if a file is there.

    Without hard links, two concurrent writers may both succeed. Raises OSError.
    """
    remove_unfinished(path.parent, path.name)
    temporary = temporary_path(path)
    with _LockedUntilNamed() as lock:
        try:
            with open(lock.create(temporary), "wb") as file:
                file.write(content)
            finalize(temporary, default_permissions(path.parent))
            try:
                os.link(temporary, path, follow_symlinks=False)
            except FileExistsError:
                return False
            except OSError as error:
                if error.errno not in _NO_HARD_LINK:
                    raise
                if path.exists():
                    return False
                os.replace(temporary, path)
            return True
        finally:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)


def make_link(path: Path, target: str) -> None:
    """Make `path` a symbolic link to `target`, and replace what is there. Raises OSError."""
    _replace(path, lambda temporary: temporary.symlink_to(target))


def link_or_copy(source: Path, target: Path, own: int = 1) -> None:
    """Make `target` a hard link of the file at `source`, or a copy where the file system has no such link.

    The last `own` components of `source` are not followed if they are links. Raises OSError.
    """
    try:
        try:
            link_own(source, target, own)
        except FileExistsError:
            _replace(target, lambda temporary: link_own(source, temporary, own))
    except OSError as error:
        if error.errno not in _NO_HARD_LINK:
            raise
        with open(open_own(source, os.O_RDONLY, own), "rb") as old, atomic_file(target) as new:
            shutil.copyfileobj(old, new, 1 << 20)


def _replace(path: Path, make: Callable[[Path], object]) -> None:
    """Replace what is at `path` by the link that `make` creates at a temporary path, which cannot be locked."""
    remove_unfinished(path.parent, path.name)
    for tries_left in reversed(range(_TRIES)):
        try:
            with renamed_into(path) as temporary:
                make(temporary)
            return
        except FileNotFoundError:  # another process took the link for one of a killed process
            if not tries_left:
                raise


def replace_folder(new: Path, target: Path, aside: Path) -> None:
    """Rename the folder `new` to `target`. A folder at `target` is renamed to `aside` first, and removed at the end.

    All three are in one folder. If `target` cannot be replaced, the old folder gets its name back. Raises OSError.
    """
    try:
        if os.path.lexists(target):
            os.rename(target, aside)
        os.rename(new, target)
    finally:
        settle_aside(aside, target)


def settle_aside(aside: Path, target: Path) -> None:
    """Finish a `replace_folder` that was interrupted: rename `aside` back if `target` is missing, else remove it.

    A link at `aside` was planted and is removed. A folder of which a file is still open over NFS may stay in part,
    under the name `aside` with `-gone`. Raises OSError.
    """
    if not os.path.lexists(aside):
        return
    if not os.path.lexists(target) and aside.is_dir() and not aside.is_symlink():
        os.rename(aside, target)
        return
    gone = aside.with_name(f"{aside.stem}-gone")  # an incomplete folder is never renamed back
    os.rename(aside, gone)
    with suppress(OSError):
        remove_own(gone)


def sync_folder(path: Path) -> None:
    """Flush the names in a folder to the disk (fsync). Raises OSError."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
