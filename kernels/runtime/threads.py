"""The number of threads of a kernel, and the lock that one of Numba's threading layers needs.

Numba runs parallel loops on one of three layers: TBB, OpenMP or its own work queue. With the first two, several Python
threads can run kernels at the same time. The work queue is the only layer on a machine without libgomp and libtbb (slim
container images), and it aborts the process in that case. There :func:`kernel_threads` admits one Python thread at a
time: correct, but slower. Installing libgomp is better (``apt-get install libgomp1``). The ``tbb`` package on PyPI does
not help: Numba does not find its library in a virtual environment without ``LD_LIBRARY_PATH``.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

_work_queue_lock = threading.RLock()


SPINS, SPINNING_CORES = 1000, 8
"""How often an idle OpenMP thread of libgomp looks for work before it sleeps, about a microsecond, with so many cores.

On 16 quiet cores λ of R-MAT 18 and 20 took 0.87 to 0.89 of the time without spinning, and SSSP on cnr-2000 0.78. On two
cores with a load of 5 it took 1.25 to 1.44 times as long.
"""


def cores() -> int:
    """Number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def set_passive_waiting() -> None:
    """Make idle OpenMP threads sleep soon; by default they spin for long on cores that other kernels could use.

    Does not change an ``OMP_WAIT_POLICY`` or a ``GOMP_SPINCOUNT`` that the user has set. Call this before the first
    parallel kernel: Numba then loads libgomp, which reads the variables.
    """
    if "OMP_WAIT_POLICY" in os.environ:
        return
    os.environ["OMP_WAIT_POLICY"] = "passive"
    if cores() >= SPINNING_CORES:
        os.environ.setdefault("GOMP_SPINCOUNT", str(SPINS))


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
def kernel_threads(count: int) -> Iterator[int]:
    """Within the context, parallel kernels of this Python thread use `count` threads. Yields the number in effect.

    `count` is clamped to 1 … ``NUMBA_NUM_THREADS``. Other Python threads keep their number, and this thread's previous
    number is restored at the end. With the work queue the context holds a lock, so only call kernels within it, and do
    not wait for other threads.
    """
    import numba

    with _work_queue_lock if layer() == "workqueue" else nullcontext():
        before = numba.get_num_threads()
        allowed = max(1, min(count, numba.config.NUMBA_NUM_THREADS))
        numba.set_num_threads(allowed)
        try:
            yield allowed
        finally:
            numba.set_num_threads(before)
