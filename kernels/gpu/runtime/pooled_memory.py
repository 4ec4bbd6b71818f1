"""A memory pool for a run's arrays in a process where CuPy requests each array from the driver.

CuPy has a pool, which keeps the memory of deleted arrays. A process may turn it off, and `import cudf` replaces it by
RMM, which has no pool by default. A run creates and deletes arrays all the time: requesting each from the driver takes
a fifth to a third of the run's time.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import cupy


@contextmanager
def pooled_memory() -> Iterator[None]:
    """Within the context this thread takes memory from CuPy's pool if CuPy would request each array from the driver.

    Other threads keep the allocator that the process has chosen. This thread keeps it too if it is a pool, managed
    memory, or an allocator of the user's own.
    """
    if _requests_each_array():
        with cupy.cuda.using_allocator(cupy.get_default_memory_pool().malloc):
            yield
    else:
        yield


def release_pool() -> None:
    """Return the unused memory of CuPy's pool to the driver if the process requests its own arrays from the driver."""
    if _requests_each_array():
        cupy.get_default_memory_pool().free_all_blocks()


def _requests_each_array() -> bool:
    chosen = cupy.cuda.get_allocator()
    with cupy.cuda.using_allocator(None):
        if chosen == cupy.cuda.get_allocator():
            return True
    rmm = sys.modules.get("rmm")
    if rmm is None or getattr(chosen, "__module__", None) != "rmm.allocators.cupy":
        return False
    return type(rmm.mr.get_current_device_resource()) is rmm.mr.CudaMemoryResource
