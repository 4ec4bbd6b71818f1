"""The run that owns the lock of an output, and whether its process is still alive."""

from __future__ import annotations

import getpass
import os
import socket
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Annotated

import psutil
from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from ...tasks.storage.own_files import plain_name

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
