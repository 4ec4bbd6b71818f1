"""Atomic changes on a disk: a file, a link or a folder appears at its path whole, or not at all.

Each is created under a temporary name in the same folder, flushed to the disk (fsync) and renamed. A symbolic link at
the path is replaced itself; its target stays.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from .own_files import default_permissions, finalize, link_own, open_own, remove_own

NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS)
"""Errors of file systems without links."""
_NO_HARD_LINK = (*NO_LINKS, errno.EXDEV, errno.EMLINK)
"""The same, and of hard links between file systems, and of too many links."""


@contextmanager
def renamed_into(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`, and rename what the block creates there to `path`.

    If the block fails, what is at the temporary path is removed. Raises OSError.
    """
    temporary = path.with_name(f".{path.name}.edgemill-{secrets.token_hex(4)}")
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
    default permissions, or with `private` its user's alone. `own` is that of `open_own`. Raises OSError.
    """
    with renamed_into(path) as temporary:
        with open(open_own(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, own), "w+b") as file:
            yield file
            if private:
                file.flush()
                os.fsync(file.fileno())
        if not private:
            finalize(temporary, default_permissions(path.parent))
        check()


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
    temporary = path.with_name(f".{path.name}.edgemill-{secrets.token_hex(4)}")
    try:
        write_new(temporary, content)
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


def link_or_copy(source: Path, target: Path, own: int = 1) -> None:
    """Make `target` a hard link of the file at `source`, or a copy where the file system has no such link.

    The last `own` components of `source` are not followed if they are links. Raises OSError.
    """
    with renamed_into(target) as temporary:
        try:
            link_own(source, temporary, own)
        except OSError as error:
            if error.errno not in _NO_HARD_LINK:
                raise
            _copy(source, temporary, own)


def _copy(source: Path, temporary: Path, own: int) -> None:
    with (
        open(open_own(source, os.O_RDONLY, own), "rb") as old,
        open(open_own(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as new,
    ):
        shutil.copyfileobj(old, new, 1 << 20)
    finalize(temporary, default_permissions(temporary.parent))


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
