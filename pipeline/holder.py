"""Who writes an output, as its lock says, and whether that run can still be alive."""

from __future__ import annotations

import getpass
import os
import socket
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, ValidationError

from ..tasks.own_files import plain

__all__ = ["Holder"]

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_MACHINE = Path("/etc/machine-id")


class Holder(BaseModel):
    """What a run tells of itself in its lock, as JSON."""

    model_config = ConfigDict(frozen=True)

    run: Annotated[str, AfterValidator(plain)]
    user: str
    host: str
    pid: int
    since: AwareDatetime
    machine: str
    """Hash of the machine's id, which is not to be shown as it is; empty if there is none."""
    boot: str
    """Changes when the machine starts; containers of one machine have the same."""
    processes: str
    """Name space in which `pid` means something; containers have their own."""
    process_start: int | None
    """Start of the process, in ticks of the kernel since the boot: numbers of processes are used again."""
    log: str | None = None
    """Where its log is on that host, if it does not lie beside the output."""

    @classmethod
    def here(cls, run: str, log: str | None = None) -> Holder:
        """What this process tells of itself."""
        return cls(
            run=run,
            user=_user(),
            host=socket.gethostname(),
            pid=os.getpid(),
            since=datetime.now(UTC).replace(microsecond=0),
            machine=_machine(),
            boot=_read(_BOOT),
            processes=_processes(),
            process_start=_start(_read(Path("/proc/self/stat"))),
            log=log,
        )

    @classmethod
    def parse(cls, content: bytes) -> Holder | None:
        """What a lock says; None if it cannot be read."""
        try:
            return cls.model_validate_json(content)
        except ValidationError:
            return None

    def as_json(self) -> bytes:
        """What `parse` reads."""
        return self.model_dump_json(indent=1).encode() + b"\n"

    @property
    def is_on_this_machine(self) -> bool:
        """Whether that run began on this machine since it last started, in whatever container."""
        return bool(self.boot) and self.boot == _read(_BOOT)

    @property
    def is_certain(self) -> bool:
        """Whether `is_gone` is certain either way: the process can be looked for here."""
        return self.is_on_this_machine and bool(self.processes) and self.processes == _processes()

    def is_gone(self, *, let_go: bool = False) -> bool:
        """Whether that run is certainly over; of a run on another machine nothing is certain.

        `let_go` tells that nobody on this machine holds a lock of the kernel on its lock file, as that run did.
        """
        if self.is_certain:
            return not _runs(self.pid, self.process_start)
        if self.is_on_this_machine:
            return let_go
        return bool(self.machine) and (self.machine, self.host) == (_machine(), socket.gethostname())

    def __str__(self) -> str:
        return (
            f"run {self.run} of {self.user}, process {self.pid} on {self.host}, since {self.since:%Y-%m-%d %H:%M:%S %Z}"
        )


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may run under a number without a name
        return str(os.getuid())


def _machine() -> str:
    known = _read(_MACHINE)
    return sha256(b"edgemill" + known.encode()).hexdigest()[:16] if known else ""


def _processes() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def _runs(pid: int, start: int | None) -> bool:
    """Whether the process that started then is there; one that only waits for its parent is not."""
    if line := _read(Path(f"/proc/{pid}/stat")):
        return _start(line) == start
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's
        return True
    return True  # there, but hidden


def _start(stat: str) -> int | None:
    """The start of a process by its line in /proc; None for a dead one."""
    state, *fields = stat.rpartition(")")[2].split() or ["X"]
    return None if state in "ZX" else int(fields[18])


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
