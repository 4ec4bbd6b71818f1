"""Compiles the kernels of a run in several processes, at the first run on a machine.

    python -m edgemill.kernels.gpu.preparing.processes

is one of these processes. It reads the numbers of operations from standard input, which is one pipe for all processes,
and compiles them into CuPy's cache. CUDA's compiler does most of its work for one thread of a process at a time, so
threads would not help.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from subprocess import DEVNULL

import cupy

from ...runtime import cache_folder
from .operations import operations

_MOST = 12
"""Most processes. Each takes about two seconds to start. All operations together take about twenty to compile, those of
shards as many.
"""
_LOCK = "gpu.lock"
"""File in the cache folder that the process has locked which compiles."""
_NUMBER = 2
"""Bytes of the number of an operation in the pipe. The system never gives one of them to two processes."""


def start(processes: int, shards: bool) -> list[subprocess.Popen[bytes]]:
    """Start up to `processes` processes that compile the operations of a run, by `shards` or whole. The caller waits
    for them.

    What a process fails to compile is compiled when it is needed.
    """
    started = []
    reader, writer = os.pipe()
    try:
        os.write(writer, b"".join(number.to_bytes(_NUMBER, "little") for number in range(len(operations(shards)))))
        os.close(writer)
        with suppress(OSError):  # no further process may be allowed
            for _ in range(min(processes, _MOST)):
                command = [sys.executable, "-m", __spec__.name]
                started.append(subprocess.Popen(command, stdin=reader, stdout=DEVNULL, stderr=DEVNULL))
    finally:
        os.close(reader)
    return started


@contextmanager
def preparing(what: str) -> Iterator[None]:
    """Within the context the caller compiles all kernels for `what`, or loads them from CuPy's cache.

    At the first run on a machine one process compiles, and the others wait for it. If it ends before all is compiled,
    the next one goes on.
    """
    with ExitStack() as lock:
        if not is_prepared(what):
            with suppress(OSError, RuntimeError):  # without a folder for the cache each process compiles
                _folder().mkdir(parents=True, exist_ok=True)
                file = lock.enter_context(Path(_folder(), _LOCK).open("w"))
                fcntl.flock(file, fcntl.LOCK_EX)
            if is_prepared(what):
                lock.close()
        yield
        if not is_prepared(what):
            mark_prepared(what)


def is_prepared(what: str) -> bool:
    """Whether `mark_prepared` was called with `what` on this machine, and CuPy's cache has not lost kernels since."""
    with suppress(OSError, RuntimeError, ValueError):
        if _cached() >= int(_mark(what).read_text()):
            with suppress(OSError):
                os.utime(_folder())  # folders that are unused for long are removed
            return True
    return False


def mark_prepared(what: str) -> None:
    """Note that all kernels for `what` are in CuPy's cache. Does nothing if the cache folder cannot be written."""
    with suppress(OSError, RuntimeError):
        _mark(what).parent.mkdir(parents=True, exist_ok=True)
        _mark(what).write_text(str(_cached()))


def _mark(what: str) -> Path:
    """A file whose name depends on all that compiled kernels depend on."""
    parts = (what, cupy.__version__, cupy.cuda.nvrtc.getVersion(), _device(), _cupy_folder(), _sources())
    return _folder() / f"gpu-{hashlib.sha256(repr(parts).encode()).hexdigest()[:32]}"


def _folder() -> Path:
    """The folder of the marks and the lock. Does not depend on Numba, which takes long to import."""
    return cache_folder.home() / cache_folder.sources()


def _device() -> str:
    return str(cupy.cuda.Device().compute_capability)


def _sources() -> str:
    """The hash of our CUDA sources."""
    whole = hashlib.sha256()
    for path in sorted((cache_folder.KERNELS / "cuda").rglob("*.cu*")):
        whole.update(path.name.encode() + path.read_bytes())
    return whole.hexdigest()


def _cupy_folder() -> Path:
    """CuPy's cache folder, as its documentation has it."""
    return Path(os.environ.get("CUPY_CACHE_DIR") or Path.home() / ".cupy" / "kernel_cache").absolute()


def _cached() -> int:
    """The number of kernels in CuPy's cache."""
    return sum(name.endswith(".cubin") for name in os.listdir(_cupy_folder()))


def _main() -> None:
    all_of_them = operations(shards=True)
    while number := os.read(sys.stdin.fileno(), _NUMBER):
        with suppress(Exception):  # the run that needs it will tell
            all_of_them[int.from_bytes(number, "little")]()
    cupy.cuda.get_current_stream().synchronize()


if __name__ == "__main__":
    _main()
