"""Memory for arrays: CuPy's pool, what the device has room for, and pinned host memory for what does not fit.

Kernels could read arrays in mapped host memory directly, but slowly. Measured on one NVIDIA H200, over the link: copies
move 55 GB a second, and sequential reads of a kernel 1 to 6; a kernel makes 48 million random reads a second. So mapped
arrays are copied to the device part by part.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray


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


@dataclass(frozen=True)
class PinnedArray:
    """One array of pinned memory, seen by the host and by the device. `len()` is the number of elements.

    The memory is freed with the last of the two arrays. It does not come from CuPy's pool, which rounds sizes up to
    powers of two. Pinning takes 0.3 s a GiB.
    """

    host: NDArray[Any]
    device: Any
    """The same memory as a CuPy array: kernels read it over the link."""

    def __len__(self) -> int:
        return len(self.host)

    @classmethod
    def empty(cls, length: int, dtype: Any) -> PinnedArray:
        """An array of undefined content."""
        kind = np.dtype(dtype)
        size = max(length, 1) * kind.itemsize
        memory = cupy.cuda.PinnedMemory(size)
        host = np.frombuffer(cupy.cuda.PinnedMemoryPointer(memory, 0), kind, max(length, 1))[:length]
        address = cupy.cuda.UnownedMemory(memory.ptr, size, memory, cupy.cuda.runtime.getDevice())
        return cls(host, cupy.ndarray(length, kind, cupy.cuda.MemoryPointer(address, 0)))

    @classmethod
    def of(cls, array: NDArray[Any]) -> PinnedArray:
        """A copy of an array of the host."""
        made = cls.empty(len(array), array.dtype)
        made.host[:] = array
        return made


MAPPED_PART = 2**24
"""Elements of a part of an array in mapped host memory."""
_HOST = 1
"""cudaMemoryTypeHost."""


def room(wanted: int, freed: int = 0) -> int:
    """Bytes of the device's memory that can be allocated, plus `freed`.

    If these are less than twice `wanted`, the unused memory of CuPy's pool is returned to the device. Unused memory
    that cannot be returned then does not count.
    """
    pool = cupy.get_default_memory_pool()
    most = _from_the_device(pool) + int(pool.free_bytes()) + freed
    if most >= 2 * wanted:
        return most
    pool.free_all_blocks()
    return _from_the_device(pool) + freed


def empty(length: int, dtype: Any, spare: int) -> Any:
    """An array of undefined content: on the device if `spare` bytes stay free beside it, otherwise in mapped memory."""
    size = length * np.dtype(dtype).itemsize
    return cupy.empty(length, dtype) if spare + size <= room(spare + size) else PinnedArray.empty(length, dtype).device


def in_host_memory(array: Any) -> Any:
    """A copy of an array, as an array of CuPy whose memory is the host's."""
    copy = PinnedArray.empty(len(array), array.dtype)
    array.get(out=copy.host)
    return copy.device


def parts(*arrays: Any) -> Iterator[slice]:
    """Parts of arrays of one length: one part if all arrays are on the device, short parts if any is in mapped host
    memory.
    """
    length = len(arrays[0])
    size = MAPPED_PART if any(map(_is_mapped, arrays)) else max(length, 1)
    for first in range(0, length, size):
        yield slice(first, min(first + size, length))


def near(part: Any) -> Any:
    """A part of an array: the part itself if it is on the device, otherwise a copy on the device."""
    return part.copy() if _is_mapped(part) else part


def _is_mapped(array: Any) -> bool:
    runtime = cupy.cuda.runtime
    return bool(array.nbytes) and runtime.pointerGetAttributes(array.data.ptr).type == _HOST


def _from_the_device(pool: Any) -> int:
    free = int(cupy.cuda.runtime.memGetInfo()[0])
    return min(free, pool.get_limit() - pool.total_bytes()) if pool.get_limit() else free
