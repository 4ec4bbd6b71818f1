"""How many threads a kernel may use, and whose turn it is.

Numba runs parallel loops on one of three layers: TBB, OpenMP or its own work queue. The first two let several Python
threads run kernels at once. The work queue, all that is left on a machine without libgomp and libtbb (slim container
images), ends the process in that case, so there :func:`kernel_threads` lets one thread in at a time: slower, never
wrong. libgomp is the better cure (``apt-get install libgomp1``). The ``tbb`` package on PyPI is none: Numba does not
find its library in a virtual environment without ``LD_LIBRARY_PATH``.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import numba

_turn = threading.RLock()


def wait_passively() -> None:
    """Let idle OpenMP threads sleep instead of spinning on the cores of other kernels.

    The user's own ``OMP_WAIT_POLICY`` wins. libgomp reads the variable when it is loaded, which Numba does at the first
    parallel kernel: call this before.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")


def layer() -> str:
    """Numba's threading layer, ``tbb``, ``omp`` or ``workqueue``; started here if it was not.

    Raises ValueError where ``NUMBA_THREADING_LAYER`` demands one that the machine lacks.
    """
    numba.get_num_threads()  # starts the layer under Numba's own lock, with nothing to compile
    return str(numba.threading_layer())


@contextmanager
def kernel_threads(count: int) -> Iterator[int]:
    """Within it, parallel kernels called from this Python thread use `count` threads; yields the number in effect.

    `count` is clamped to 1 … ``NUMBA_NUM_THREADS``; other Python threads keep theirs, and the number from before
    returns at the end. While the layer is the work queue, the block is a turn that one Python thread has at a time, so
    call kernels in it and wait for nothing.
    """
    with _turn if layer() == "workqueue" else nullcontext():
        before = numba.get_num_threads()
        allowed = max(1, min(count, numba.config.NUMBA_NUM_THREADS))
        numba.set_num_threads(allowed)
        try:
            yield allowed
        finally:
            numba.set_num_threads(before)
