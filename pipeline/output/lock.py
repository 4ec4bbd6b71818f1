"""One run at a time for each output folder: a lock file that names its owner."""

from __future__ import annotations

import fcntl
import glob
import os
from contextlib import suppress
from pathlib import Path

from ...tasks.errors import OutputLocked, UsageError
from ...tasks.storage.atomic import NO_LINKS
from ...tasks.storage.own_files import NOT_A_FILE, open_own, read_own
from .lock_owner import LockOwner

_MAX_BYTES = 1 << 16
"""Read of a lock file, which has about 400."""


class FolderLock:
    """The lock file `path`. It appears whole or not at all, and its owner holds a lock of the kernel (flock) on it.

    The kernel releases flock when the process ends. Where the file system has no flock, or flock does not reach other
    hosts, the content of the file decides: the lock of a dead run is taken over, the lock of a run that may be alive is
    not.
    """

    def __init__(self, path: Path, out: str, run_id: str) -> None:
        self.path = path
        self.owner = LockOwner.here(run_id)
        self._out = out
        self._temporary = path.with_name(f"{path.name}-{run_id}")
        self._handle: int | None = None

    def take(self) -> LockOwner | None:
        """Take the lock, without waiting. Returns the dead run that left it behind, or None.

        Raises OutputLocked, OSError.
        """
        left_by = None
        try:
            self._handle = _write_locked(self._temporary, self.owner, os.O_CREAT)
            while not self._create():
                left_by = self._remove_dead() or left_by
        except BaseException:
            self._close()
            raise
        finally:
            self._temporary.unlink(missing_ok=True)
        self._remove_leftovers()
        return left_by

    def is_held(self) -> bool:
        """Whether this run still owns the lock file: a person may have removed it."""
        try:
            return self._handle is not None and LockOwner.parse(read_own(self.path) or b"") == self.owner
        except OSError:
            return False

    def release(self) -> None:
        """Remove the lock file if this run owns it."""
        if self.is_held():
            self.path.unlink(missing_ok=True)
        self._close()

    def _close(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _create(self) -> bool:
        """Give the temporary file the name of the lock file. False if a lock file exists."""
        try:
            os.link(self._temporary, self.path)
        except FileExistsError:
            return False
        except FileNotFoundError:  # another run removed the temporary file as a leftover
            self._close()
            self._handle = _write_locked(self._temporary, self.owner, os.O_CREAT)
            return False
        except OSError as error:
            if error.errno not in NO_LINKS:
                raise
            try:
                handle = _write_locked(self.path, self.owner, os.O_CREAT | os.O_EXCL)
            except FileExistsError:
                return False
            self._close()
            self._handle = handle
        return True

    def _remove_dead(self) -> LockOwner | None:
        """Remove the lock file of a dead run and return its owner; None if the file was gone already.

        Raises OutputLocked if the run may be alive.
        """
        gone = self._temporary.with_name(f"{self._temporary.name}.gone")
        try:
            handle = _open(self.path)
        except FileNotFoundError:
            return None
        try:
            unlocked = _flock(handle)
            with suppress(FileNotFoundError):
                if not os.path.samestat(os.fstat(handle), os.stat(self.path)):
                    return None
                owner = LockOwner.parse(os.read(handle, _MAX_BYTES))
                if unlocked is False or owner is None or not owner.is_dead(unlocked=unlocked is True):
                    raise locked_error(self._out, owner, str(self.path), certain=unlocked is False)
                os.rename(self.path, gone)
                if os.path.samestat(os.fstat(handle), os.stat(gone)):
                    return owner
                self._restore(gone)  # another run took the lock over first; the renamed file is its lock
            return None
        finally:
            gone.unlink(missing_ok=True)
            os.close(handle)

    def _restore(self, gone: Path) -> None:
        """Undo the rename of another run's lock file. If a third run has a lock file by now, that one stays."""
        try:
            os.link(gone, self.path)
        except FileExistsError:
            return
        except OSError:
            os.rename(gone, self.path)

    def _remove_leftovers(self) -> None:
        """Remove temporary files of runs that were killed while they took the lock."""
        for left in self.path.parent.glob(f"{glob.escape(self.path.name)}-*"):
            with suppress(FileNotFoundError):
                handle = _open(left)
                try:
                    if _flock(handle):
                        left.unlink()
                finally:
                    os.close(handle)


def inspect_lock(path: Path) -> tuple[LockOwner | None, bool | None] | None:
    """The owner of the lock file at `path`, and whether that run is alive. None if there is no lock file.

    The owner is None if the file cannot be parsed; the state is None if it is not known. Only if the process is not
    visible from here, flock is taken, shared and for a moment. Raises UsageError, OSError.
    """
    try:
        handle = _open(path)
    except FileNotFoundError:
        return None
    try:
        owner = LockOwner.parse(os.read(handle, _MAX_BYTES))
        if owner is not None and owner.is_certain:
            return owner, not owner.is_dead()
        unlocked = _flock(handle, fcntl.LOCK_SH)
    finally:
        os.close(handle)
    if unlocked is False:
        return owner, True
    dead = owner is not None and owner.is_dead(unlocked=unlocked is True)
    return owner, False if dead else None


def locked_error(out: str, owner: LockOwner | None, lock: str, *, certain: bool) -> OutputLocked:
    """The error for an output `out` that another run has locked. `certain` says that this run is alive."""
    who = f": {owner}" if owner is not None else ""
    advice = "wait for it to end" if certain else f"wait for it to end or, if it is surely dead, remove {lock}"
    return OutputLocked(f"another run is writing {out}{who}; {advice}")


def _write_locked(path: Path, owner: LockOwner, flags: int) -> int:
    """Write a lock file and flush it to the disk. Returns its descriptor, with flock on it where flock works."""
    handle = open_own(path, os.O_RDWR | os.O_TRUNC | flags, mode=0o644)  # other users read the owner
    try:
        _flock(handle)
        os.write(handle, owner.as_json())
        os.fsync(handle)
    except BaseException:
        path.unlink(missing_ok=True)
        os.close(handle)
        raise
    return handle


def _open(path: Path) -> int:
    """A descriptor of a lock file. Raises UsageError for a link, a folder or a pipe, OSError."""
    try:
        try:
            return open_own(path, os.O_RDWR)
        except PermissionError:  # another user's
            return open_own(path, os.O_RDONLY)
    except OSError as error:
        if error.errno in NOT_A_FILE:
            raise UsageError(
                f"{path} is a link, a folder or a pipe, not a lock file that edgemill wrote: remove it"
            ) from error
        raise


def _flock(handle: int, kind: int = fcntl.LOCK_EX) -> bool | None:
    """Try to take flock. False if another process holds it; None if the file system does not support it."""
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
        return True
    except BlockingIOError:
        return False
    except OSError:
        return None
