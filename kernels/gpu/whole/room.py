"""Where large arrays of a whole graph are placed: on the device, or in mapped host memory if it has no room.

Both are arrays of CuPy, so kernels could read both alike. Measured on one NVIDIA H200: over the link copies move 55 GB
a second, a kernel's reads in sequence 1 to 6, and 48 million random reads. So mapped arrays are copied part by part.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import cupy
import numpy as np

from ..streamed.pinned import PinnedArray

MAPPED_PART = 2**24
"""Elements of a part of an array in mapped host memory."""
_HOST = 1
"""cudaMemoryTypeHost."""


def room(wanted: int, freed: int = 0) -> int:
    """Bytes of the device's memory that can be taken, and `freed` bytes.

    If these are less than twice `wanted`, the unused memory of CuPy's pool is returned to the device, and what cannot
    be returned does not count.
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
    """Parts of arrays of one length: the whole of them if all are on the device, or short parts if one is in mapped
    host memory.
    """
    length = len(arrays[0])
    size = MAPPED_PART if any(map(_is_mapped, arrays)) else max(length, 1)
    for first in range(0, length, size):
        yield slice(first, min(first + size, length))


def near(part: Any) -> Any:
    """A part of an array: itself if it is on the device, otherwise a copy there."""
    return part.copy() if _is_mapped(part) else part


def _is_mapped(array: Any) -> bool:
    runtime = cupy.cuda.runtime
    return bool(array.nbytes) and runtime.pointerGetAttributes(array.data.ptr).type == _HOST


def _from_the_device(pool: Any) -> int:
    free = int(cupy.cuda.runtime.memGetInfo()[0])
    return min(free, pool.get_limit() - pool.total_bytes()) if pool.get_limit() else free
