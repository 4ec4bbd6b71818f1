"""One run at a time for each output: a lock file that names its holder."""

from __future__ import annotations

import errno
import fcntl
import glob
import os
from contextlib import suppress
from pathlib import Path

from ..tasks.errors import OutputLocked, UsageError
from ..tasks.own_files import open_own, read_own
from .holder import Holder

__all__ = ["FolderLock", "locked", "look_at_lock"]

_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS)
_MOST_BYTES = 1 << 16
"""Read of a lock file; one takes some 400."""


class FolderLock:
    """The lock file `path`, which appears whole or not at all, with a lock of the kernel (flock) on it.

    That lock goes with its process. Where the file system has none, or it does not reach other hosts, what the file
    says decides: a holder whose process is gone is followed, one that may live is not.
    """

    def __init__(self, path: Path, out: str, run_id: str) -> None:
        self.path = path
        self.holder = Holder.here(run_id)
        self._out = out
        self._own = path.with_name(f"{path.name}-{run_id}")
        self._handle: int | None = None

    def take(self) -> Holder | None:
        """Take the lock; gives the run that left it behind, if one did. Raises OutputLocked, at once, and OSError."""
        left_by = None
        try:
            self._handle = _write_locked(self._own, self.holder, os.O_CREAT)
            while not self._put():
                left_by = self._follow() or left_by
        except BaseException:
            self._let_go()
            raise
        finally:
            self._own.unlink(missing_ok=True)
        self._clear()
        return left_by

    def is_held(self) -> bool:
        """Whether the lock is still this run's: a person may have removed it."""
        try:
            return self._handle is not None and Holder.parse(read_own(self.path) or b"") == self.holder
        except OSError:
            return False

    def release(self) -> None:
        """Give the lock back, if it is held."""
        if self.is_held():
            self.path.unlink(missing_ok=True)
        self._let_go()

    def _let_go(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _put(self) -> bool:
        """Whether the lock file was free, and now is ours."""
        try:
            os.link(self._own, self.path)
        except FileExistsError:
            return False
        except FileNotFoundError:  # cleared by a run that came between
            self._let_go()
            self._handle = _write_locked(self._own, self.holder, os.O_CREAT)
            return False
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            try:
                handle = _write_locked(self.path, self.holder, os.O_CREAT | os.O_EXCL)
            except FileExistsError:
                return False
            self._let_go()
            self._handle = handle
        return True

    def _follow(self) -> Holder | None:
        """Take the lock file of a dead run away; None if it went by itself."""
        gone = self._own.with_name(f"{self._own.name}.gone")
        try:
            handle = _open(self.path)
        except FileNotFoundError:
            return None
        try:
            free = _flock(handle)
            with suppress(FileNotFoundError):
                if not os.path.samestat(os.fstat(handle), os.stat(self.path)):
                    return None
                holder = Holder.parse(os.read(handle, _MOST_BYTES))
                if free is False or holder is None or not holder.is_gone(let_go=free is True):
                    raise locked(self._out, holder, str(self.path), certain=free is False)
                os.rename(self.path, gone)
                if os.path.samestat(os.fstat(handle), os.stat(gone)):
                    return holder
                self._restore(gone)  # another run followed first, and this is its lock
            return None
        finally:
            gone.unlink(missing_ok=True)
            os.close(handle)

    def _restore(self, gone: Path) -> None:
        """Put a lock back that was taken away in error; should a third run have come, that one's stays."""
        try:
            os.link(gone, self.path)
        except FileExistsError:
            return
        except OSError:
            os.rename(gone, self.path)

    def _clear(self) -> None:
        """Remove what runs left that were killed while they took the lock."""
        for left in self.path.parent.glob(f"{glob.escape(self.path.name)}-*"):
            with suppress(FileNotFoundError):
                handle = _open(left)
                try:
                    if _flock(handle):
                        left.unlink()
                finally:
                    os.close(handle)


def look_at_lock(path: Path) -> tuple[Holder | None, bool | None] | None:
    """Who holds the lock file, as far as it can be read, and whether that run lives; None where there is no telling.

    None in all if there is no lock. Raises OSError. Where processes are visible nothing is touched; elsewhere the
    kernel's lock is asked for, for a moment.
    """
    try:
        handle = _open(path)
    except FileNotFoundError:
        return None
    try:
        holder = Holder.parse(os.read(handle, _MOST_BYTES))
        if holder is not None and holder.is_certain:
            return holder, not holder.is_gone()
        free = _flock(handle, fcntl.LOCK_SH)
    finally:
        os.close(handle)
    if free is False:
        return holder, True
    gone = holder is not None and holder.is_gone(let_go=free is True)
    return holder, False if gone else None


def locked(out: str, holder: Holder | None, lock: str, *, certain: bool) -> OutputLocked:
    """The error that tells who holds `out`; what to do depends on whether that run certainly lives."""
    who = f": {holder}" if holder is not None else ""
    what = "wait for it to end" if certain else f"wait for it to end or, if it is surely dead, remove {lock}"
    return OutputLocked(f"another run is writing {out}{who}; {what}")


def _write_locked(path: Path, holder: Holder, how: int) -> int:
    """Write a file and wait until it is on the disk; its open handle has the kernel's lock, where there is one."""
    handle = open_own(path, os.O_RDWR | os.O_TRUNC | how, mode=0o644)  # who is refused reads who holds it
    try:
        _flock(handle)
        os.write(handle, holder.as_json())
        os.fsync(handle)
    except BaseException:
        path.unlink(missing_ok=True)
        os.close(handle)
        raise
    return handle


def _open(path: Path) -> int:
    """The lock file, open to be read. Raises UsageError if a link, a folder or a pipe is in its place, OSError."""
    try:
        try:
            return open_own(path, os.O_RDWR)
        except PermissionError:  # another user's
            return open_own(path, os.O_RDONLY)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EINVAL, errno.EISDIR, errno.ENXIO):
            what = "a link, a folder or a pipe, not a lock file that edgemill wrote"
            raise UsageError(f"{path} is {what}: remove it") from error
        raise


def _flock(handle: int, kind: int = fcntl.LOCK_EX) -> bool | None:
    """Whether nobody else holds the kernel's lock; None where there is no telling."""
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
        return True
    except BlockingIOError:
        return False
    except OSError:
        return None
