"""Where a benchmark runs: which cores, how much memory, which versions, how busy. Linux."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")


def pin(threads: int, cpus: Sequence[int] | None = None) -> None:
    """Keep this process, and those it starts, on `threads` cores: `cpus`, or the first ones it may use.

    Raises ValueError if there are not as many, RuntimeError if Numba is loaded and has counted the cores already.
    """
    if "numba" in sys.modules:
        raise RuntimeError("pin the process before numba is imported")
    chosen = sorted(os.sched_getaffinity(0))[:threads] if cpus is None else sorted(set(cpus))
    if len(chosen) != threads:
        raise ValueError(f"{threads} threads need {threads} cores, got {chosen}")
    os.sched_setaffinity(0, chosen)


def describe() -> str:
    """One line for the head of a table."""
    cpus = ",".join(map(str, sorted(os.sched_getaffinity(0))))
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    versions = ", ".join(f"{name} {version(name)}" for name in ("edgemill", "numba", "numpy", "pyarrow", "dask"))
    return (
        f"{_processor()}, core {cpus} of {os.cpu_count()}, {memory:.0f} GiB, {platform.system()} {platform.release()}, "
        f"Python {platform.python_version()}, {versions}, load at start {os.getloadavg()[0]:.1f}"
    )


def short_name(threads: int) -> str:
    """The processor and the number of cores used, as the record names a machine."""
    return f"{_processor()}, {threads} cores"


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def resident_bytes() -> int:
    """Memory of this process that is in RAM now."""
    return _status("VmRSS")


def peak_bytes() -> int:
    """The most there was since `forget_peak`.

    getrusage's ru_maxrss is the same counter but never falls, and starts at that of the process that started this one.
    """
    return _status("VmHWM")


def forget_peak() -> None:
    """Let the peak start again from what is resident now; OSError where the system does not allow it."""
    _CLEAR.write_text("5")


def _status(name: str) -> int:
    for line in _STATUS.read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise OSError(f"{_STATUS} has no {name}")
