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


def set_passive_waiting() -> None:
    """Make idle OpenMP threads sleep; by default they spin on cores that other kernels could use.

    Does not change an ``OMP_WAIT_POLICY`` that the user has set. Call this before the first parallel kernel: Numba then
    loads libgomp, which reads the variable.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")


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
