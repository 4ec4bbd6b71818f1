"""Where a run's arrays come from in a process that has CuPy ask the driver for each array.

CuPy has a pool, which keeps what arrays leave. It may be turned off, and `import cudf` puts RMM in its place, which has
no pool unless it is given one. A run makes and leaves arrays all the time: asking the driver for each costs a fifth to
a third of its time.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import cupy

__all__ = ["give_back", "own_memory"]


@contextmanager
def own_memory() -> Iterator[None]:
    """Within it this thread takes memory from CuPy's pool where CuPy would ask the driver each time.

    Other threads keep what the process has chosen. So does this one where that is a pool, memory that the driver moves
    to the host and back, or an allocator of somebody's own.
    """
    if _asks_each_time():
        with cupy.cuda.using_allocator(cupy.get_default_memory_pool().malloc):
            yield
    else:
        yield


def give_back() -> None:
    """Give what CuPy's pool keeps unused back to the driver where the process takes its own arrays from there."""
    if _asks_each_time():
        cupy.get_default_memory_pool().free_all_blocks()


def _asks_each_time() -> bool:
    chosen = cupy.cuda.get_allocator()
    with cupy.cuda.using_allocator(None):
        if chosen == cupy.cuda.get_allocator():
            return True
    rmm = sys.modules.get("rmm")
    if rmm is None or getattr(chosen, "__module__", None) != "rmm.allocators.cupy":
        return False
    return type(rmm.mr.get_current_device_resource()) is rmm.mr.CudaMemoryResource
