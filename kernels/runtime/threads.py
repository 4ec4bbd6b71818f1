"""The number of threads of a kernel, and the lock that one of Numba's threading layers needs.

Numba runs parallel loops on one of three layers: TBB, OpenMP or its own work queue. With the first two, several Python
threads can run kernels at the same time. The work queue then aborts the process. It is the only layer on a machine
without libgomp and libtbb (slim container images). There :func:`kernel_threads` admits one Python thread at a time,
which is slower, so install libgomp (``apt-get install libgomp1``). The ``tbb`` package on PyPI does not help: Numba
does not find its library in a virtual environment without ``LD_LIBRARY_PATH``.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import cache
from pathlib import Path

_work_queue_lock = threading.RLock()
_of_thread = threading.local()
"""`wanted`: number of threads for the kernels of this Python thread, which is set when Numba is loaded."""
_loaded = threading.Event()
"""Set once a module of kernels has loaded Numba."""


SPINS, SPINNING_CORES = 1000, 8
"""Times that an idle thread of libgomp checks for work before it sleeps (about 1 µs), on machines with at least so many
cores. Saves a tenth of the time of λ on 16 idle cores, and loses more on few busy cores (docs/engineering/cpus.md).
"""


MOST_FOR_KERNELS = 48
"""Most threads of a kernel by default. With 64 on 64 cores a parallel loop takes 20 times as long to start and end, as
some thread always waits for a core (docs/engineering/cpus.md).
"""


def cores() -> int:
    """Number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def most_threads() -> int:
    """Number of threads for the kernels of this process: its cores, at most `MOST_FOR_KERNELS`."""
    return min(cores(), MOST_FOR_KERNELS)


def set_passive_waiting() -> None:
    """Make idle OpenMP threads sleep soon. By default they spin for long on cores that other kernels could use.

    Does not change an ``OMP_WAIT_POLICY`` or a ``GOMP_SPINCOUNT`` that the user has set. Call this before the first
    parallel kernel. It sets these variables, loads libgomp, which reads them at that time only, and removes them. Other
    code of this process, and processes that it starts later, do not see them.
    """
    if "OMP_WAIT_POLICY" in os.environ:
        return
    own = {"OMP_WAIT_POLICY": "passive"}
    if cores() >= SPINNING_CORES and "GOMP_SPINCOUNT" not in os.environ:
        own["GOMP_SPINCOUNT"] = str(SPINS)
    os.environ.update(own)
    try:
        _load_openmp()
    finally:
        for name in own:
            os.environ.pop(name, None)


def layer() -> str:
    """Numba's threading layer: ``tbb``, ``omp`` or ``workqueue``. Starts the layer if it is not running.

    Raises ValueError if ``NUMBA_THREADING_LAYER`` demands a layer that the machine does not have.
    """
    import numba

    numba.get_num_threads()  # starts the layer under Numba's own lock, without compiling anything
    return str(numba.threading_layer())


def threads_now() -> int:
    """The number of threads that parallel kernels of this Python thread use."""
    import numba

    return int(numba.get_num_threads())


@contextmanager
def kernel_threads(count: int, later: bool = False) -> Iterator[int]:
    """Within the context, parallel kernels of this Python thread use `count` threads. Yields the number in effect.

    `count` is clamped to 1 … ``NUMBA_NUM_THREADS``. Other Python threads keep their number, and this thread's previous
    number is restored at the end. With the work queue the context holds a lock, so only call kernels within it, and do
    not wait for other threads.

    With `later`, does not load Numba, which takes long to import, if its layer will be OpenMP. If this Python thread
    loads it within the context, the number is set then. If another Python thread does, kernels of this thread use
    ``NUMBA_NUM_THREADS`` threads until the context ends.
    """
    if later and not _loaded.is_set() and _has_openmp():
        before, _of_thread.wanted = getattr(_of_thread, "wanted", None), count
        try:
            yield max(1, min(count, cores()))
        finally:
            _of_thread.wanted = before
            if _loaded.is_set():
                _set_wanted()
        return
    import numba

    with _work_queue_lock if layer() == "workqueue" else nullcontext():
        before = numba.get_num_threads()
        numba.set_num_threads(_allowed(count))
        try:
            yield numba.get_num_threads()
        finally:
            numba.set_num_threads(before)


def numba_is_loaded() -> None:
    """Set the number of threads that `kernel_threads` has deferred. Called by `cache`, which CPU kernels import."""
    _loaded.set()
    if getattr(_of_thread, "wanted", None) is not None:
        _set_wanted()


def numba_was_loaded() -> bool:
    """Whether this process has loaded Numba for a kernel."""
    return _loaded.is_set()


def _set_wanted() -> None:
    import numba

    wanted = getattr(_of_thread, "wanted", None)
    numba.set_num_threads(numba.config.NUMBA_NUM_THREADS if wanted is None else _allowed(wanted))


def _allowed(count: int) -> int:
    import numba

    return max(1, min(count, numba.config.NUMBA_NUM_THREADS))


def _has_openmp() -> bool:
    """Whether Numba will find OpenMP, so that kernels need no lock. False if Numba's settings may name a layer."""
    if any(name.startswith("NUMBA_THREADING_LAYER") for name in os.environ) or Path(".numba_config.yaml").exists():
        return False
    return _load_openmp()


@cache
def _load_openmp() -> bool:
    """Load GNU's OpenMP library, which Numba uses. Returns False if the machine does not have it."""
    try:
        ctypes.CDLL("libgomp.so.1")
    except OSError:
        return False
    return True


class _Fork:
    """Whether this process lost the threads of its kernels when it was forked."""

    lost = False

    def happened(self) -> None:
        """Called in a child process: record whether the parent's kernels ran in threads of OpenMP.

        If so, Numba ends the process at the next parallel kernel. Its other layers start new threads.
        """
        global _work_queue_lock
        _work_queue_lock = threading.RLock()  # a thread of the parent may have held it
        numba = sys.modules.get("numba")
        with suppress(AttributeError, ValueError):  # Numba is not loaded, or no parallel kernel has run
            self.lost = self.lost or numba.threading_layer() == "omp"  # type: ignore[union-attr]


_fork = _Fork()
os.register_at_fork(after_in_child=_fork.happened)


def lost_by_fork() -> bool:
    """Whether this process cannot run kernels, as it was forked from one that ran kernels in threads of OpenMP."""
    return _fork.lost
