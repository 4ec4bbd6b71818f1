"""Compiles the kernels of a run in several processes, at the first run on a machine.

    python -m edgemill.kernels.gpu.preparing.processes SHARE SHARES

is one of these processes: it compiles every SHARES-th operation, from the SHARE-th on, into CuPy's cache. CUDA's
compiler runs one compilation at a time in a process for most of its work, so threads would not help.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL

import cupy

from ...runtime import cache

_SECONDS = 20
"""About what all operations take to compile in one process; a process takes about a second to start."""


def start(processes: int) -> list[subprocess.Popen[bytes]]:
    """Start up to `processes` processes that compile the operations of a run. The caller waits for them.

    What a process fails to compile is compiled when it is needed.
    """
    shares = max(1, min(processes, _SECONDS // 2))
    started = []
    with suppress(OSError):  # no further process may be allowed
        for share in range(shares):
            command = [sys.executable, "-m", __spec__.name, str(share), str(shares)]
            started.append(subprocess.Popen(command, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL))
    return started


def is_prepared(what: str) -> bool:
    """Whether `mark_prepared` was called with `what` on this machine, and CuPy's cache has not lost kernels since."""
    with suppress(OSError, RuntimeError, ValueError):
        return _cached() >= int(_mark(what).read_text())
    return False


def mark_prepared(what: str) -> None:
    """Note that all kernels for `what` are in CuPy's cache. Does nothing if the cache folder cannot be written."""
    with suppress(OSError, RuntimeError):
        _mark(what).parent.mkdir(parents=True, exist_ok=True)
        _mark(what).write_text(str(_cached()))


def _mark(what: str) -> Path:
    """A file whose name depends on all that compiled kernels depend on."""
    device = cupy.cuda.Device().compute_capability
    parts = (what, cupy.__version__, cupy.cuda.nvrtc.getVersion(), device, _cupy_folder(), _sources())
    return cache.folder() / f"gpu-{hashlib.sha256(repr(parts).encode()).hexdigest()[:32]}"


def _sources() -> str:
    """The hash of our CUDA sources."""
    whole = hashlib.sha256()
    for path in sorted((cache.KERNELS / "cuda").rglob("*.cu*")):
        whole.update(path.name.encode() + path.read_bytes())
    return whole.hexdigest()


def _cupy_folder() -> Path:
    """CuPy's cache folder, as its documentation has it."""
    return Path(os.environ.get("CUPY_CACHE_DIR") or Path.home() / ".cupy" / "kernel_cache").absolute()


def _cached() -> int:
    """The number of kernels in CuPy's cache."""
    return sum(name.endswith(".cubin") for name in os.listdir(_cupy_folder()))


def _main() -> None:
    from .operations import operations

    share, shares = map(int, sys.argv[1:])
    for operation in operations()[share::shares]:
        with suppress(Exception):  # the run that needs it will tell
            operation()
    cupy.cuda.get_current_stream().synchronize()


if __name__ == "__main__":
    _main()
