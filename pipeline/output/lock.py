"""One run at a time for each output: a lock that names its owner, and whether the owner's process is still alive.

On a disk the lock is a locked file. In an object store it is an object.
"""

from __future__ import annotations

import fcntl
import getpass
import glob
import os
import socket
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Annotated

import psutil
from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from ...tasks.errors import EdgemillError, OutputLocked, UsageError
from ...tasks.storage.atomic import NO_LINKS
from ...tasks.storage.folders import Folder
from ...tasks.storage.own_files import NOT_A_FILE, open_own, plain_name, read_own
from ...tasks.storage.stores import is_refused_condition

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_MACHINE_ID = Path("/etc/machine-id")
_CLOCK_STEP_SECONDS = 2
"""Two start times that differ by less are of one process: the system clock may be set between two looks."""


class LockOwner(BaseModel):
    """Identity of a run, as its lock file holds it in JSON."""

    model_config = ConfigDict(frozen=True)

    run: Annotated[str, AfterValidator(plain_name)]
    user: str
    host: str
    pid: Annotated[int, Field(gt=0, lt=2**31)]
    since: AwareDatetime
    machine: str
    """Hash of the machine's id, which must not be published itself; empty if the machine has none."""
    boot: str
    """Id of the machine's current boot. Containers of one machine have the same."""
    processes: str
    """PID namespace of `pid`. Each container has its own."""
    process_start: Annotated[int, Field(ge=0, lt=2**63)] | None
    """Start of the process in clock ticks since the boot: pids are reused. None if it is not known."""
    log: str | None = None
    """Path of the run's log on that host; None if the log lies beside the output."""

    @classmethod
    def here(cls, run: str, log: str | None = None) -> LockOwner:
        """The identity of this process, for the run with the id `run`."""
        return cls(
            run=run,
            user=_user(),
            host=socket.gethostname(),
            pid=os.getpid(),
            since=datetime.now(UTC).replace(microsecond=0),
            machine=_machine(),
            boot=_read(_BOOT_ID),
            processes=_pid_namespace(),
            process_start=_start_ticks(psutil.Process()),
            log=log,
        )

    @classmethod
    def parse(cls, content: bytes) -> LockOwner | None:
        """The owner that a lock file names; None if the content is not what `as_json` makes."""
        try:
            return cls.model_validate_json(content)
        except ValidationError:
            return None

    def as_json(self) -> bytes:
        """Content of a lock file."""
        return self.model_dump_json(indent=1).encode() + b"\n"

    @property
    def is_on_this_machine(self) -> bool:
        """Whether the run began on this machine, in any container, since the machine's last boot."""
        return bool(self.boot) and self.boot == _read(_BOOT_ID)

    @property
    def is_certain(self) -> bool:
        """Whether the process is visible from here, so that `is_dead` is certain either way."""
        return self.is_on_this_machine and bool(self.processes) and self.processes == _pid_namespace()

    def is_dead(self, *, unlocked: bool = False) -> bool:
        """Whether the run has certainly ended. A run on another machine may always be alive.

        `unlocked` says that no process of this machine holds the kernel's lock (flock) on the lock file.
        """
        if self.is_certain:
            return not _is_alive(self.pid, self.process_start)
        if self.is_on_this_machine:
            return unlocked
        return bool(self.machine) and (self.machine, self.host) == (_machine(), socket.gethostname())

    def __str__(self) -> str:
        return (
            f"run {self.run} of {self.user}, process {self.pid} on {self.host}, since {self.since:%Y-%m-%d %H:%M:%S %Z}"
        )


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # in a container the user id may have no name
        return str(os.getuid())


def _machine() -> str:
    machine_id = _read(_MACHINE_ID)
    return sha256(b"edgemill" + machine_id.encode()).hexdigest()[:16] if machine_id else ""


def _pid_namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def _is_alive(pid: int, start: int | None) -> bool:
    """Whether the process with this pid and start runs. A zombie does not."""
    try:
        process = psutil.Process(pid)
        if process.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD):
            return False
        now = _start_ticks(process)
    except psutil.AccessDenied:
        return True
    except psutil.NoSuchProcess:
        return _is_hidden(pid)
    return now is None or (start is not None and abs(now - start) <= _CLOCK_STEP_SECONDS * _ticks_per_second())


def _is_hidden(pid: int) -> bool:
    """Whether a process exists that /proc does not show, since it is mounted with hidepid."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _start_ticks(process: psutil.Process) -> int | None:
    """Start of a process in clock ticks since the boot; None if it is not known. Raises psutil.NoSuchProcess."""
    try:
        boot = psutil.boot_time()
        return round((process.create_time() - boot) * _ticks_per_second())
    except (psutil.AccessDenied, OSError, RuntimeError):
        return None


def _ticks_per_second() -> int:
    return os.sysconf("SC_CLK_TCK")


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


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


LOCK_NAME = ".edgemill.lock"


class StoreLock:
    """The object `.edgemill.lock` in `out`, created by a conditional write (`If-None-Match: *` on S3).

    The lock is written a second time, to test whether the store obeys the condition. A store that accepts both writes,
    or refuses the condition, is a UsageError. With `single_writer` the lock is read first and then written instead, and
    `weakness` gives the reason. The lock of a dead process of this machine is taken over. A lock of another machine is
    not, since a store cannot tell whether its run is alive.
    """

    def __init__(self, out: Folder, run_id: str, log: str | None = None, *, single_writer: bool = False) -> None:
        self.owner = LockOwner.here(run_id, log)
        self.weakness: str | None = None
        """Why the store cannot exclude a second run; None if it can."""
        self._out = out
        self._single_writer = single_writer
        self._held = False

    def take(self) -> LockOwner | None:
        """Take the lock, without waiting. Returns the dead run that left it behind, or None.

        Raises OutputLocked, UsageError.
        """
        own, left_by = self.owner.as_json(), None
        while True:
            present = self._out.read(LOCK_NAME)  # first: a store that ignores conditions would replace another's lock
            if present is None:
                if self.create(LOCK_NAME, own):
                    break
                continue
            if present == own:  # an earlier try succeeded, but its answer was lost
                break
            owner = LockOwner.parse(present)
            if owner is None or not owner.is_dead():
                raise self._taken(owner)
            if self._out.read(LOCK_NAME) == present:  # no other run has taken it over meanwhile
                self._out.remove(LOCK_NAME)
            left_by = owner
        self._held = True
        if self.weakness is None and self._out.create(LOCK_NAME, own):
            self._weaken("accepts a conditional write (If-None-Match: * on S3) and does not obey it")
        if not self.is_held():
            raise self._taken(LockOwner.parse(self._out.read(LOCK_NAME) or b""))
        return left_by

    def create(self, name: str, content: bytes) -> bool:
        """Create an object, by a conditional write if the store supports it; False if the object exists.

        Raises UsageError.
        """
        if self.weakness is None:
            try:
                return self._out.create(name, content)
            except EdgemillError as error:
                if not is_refused_condition(error):
                    raise
                self._weaken(f"refuses conditional writes (If-None-Match: * on S3): {error}")
        if self._out.read(name) is not None:
            return False
        self._out.write(name, content)
        return True

    def is_held(self) -> bool:
        """Whether this run still owns the lock."""
        return self._held and self._out.read(LOCK_NAME) == self.owner.as_json()

    def release(self) -> None:
        """Remove the lock if this run owns it."""
        if self.is_held():
            self._out.remove(LOCK_NAME)
        self._held = False

    def _weaken(self, reason: str) -> None:
        """Continue without conditional writes if the settings allow it. Raises UsageError."""
        reason = f"the store {reason}"
        if not self._single_writer:
            raise UsageError(
                f"output.path {self._out}: {reason}, so concurrent runs cannot lock the output; "
                "use a store that supports them, or set output.single_writer=true if no other run writes there"
            )
        self.weakness = reason

    def _taken(self, owner: LockOwner | None) -> OutputLocked:
        return locked_error(str(self._out), owner, f"{self._out}/{LOCK_NAME}", certain=False)


def inspect_store_lock(out: Folder) -> tuple[LockOwner | None, bool | None] | None:
    """The owner of the lock in `out`, and whether that run is alive. None if there is no lock.

    The owner is None if the lock cannot be parsed; the state is None if it is not known. Raises UsageError.
    """
    content = out.read(LOCK_NAME)
    if content is None:
        return None
    owner = LockOwner.parse(content)
    if owner is None:
        return None, None
    dead = owner.is_dead()
    return owner, False if dead else True if owner.is_certain else None
