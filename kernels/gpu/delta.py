"""Pages of integers in Parquet's encoding DELTA_BINARY_PACKED, made on the GPU.

Source: https://github.com/apache/parquet-format/blob/master/Encodings.md. Arrow's encoder takes 19 ns a value of one
core, and the copy of the values to the host takes longer than the copy of the pages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from ..runtime.sizes import SizedArrays
from .arrays import transfer
from .runtime import source

_BLOCK = 128
"""Differences of a block."""
_THREADS, _CHECKING = 256, 1024


@dataclass(frozen=True)
class Pages(SizedArrays):
    """Encoded pages of a column in which every value is there. `len()` is their number."""

    content: Any
    """uint8 [bytes], in the memory that has the values. The other arrays are in host memory."""
    offsets: NDArray[np.int64]
    """[pages + 1] page i is content[offsets[i] : offsets[i + 1]]: its levels and values, without a header."""
    checksum: NDArray[np.uint32]
    """[pages] CRC-32 of each page."""
    smallest: NDArray[np.int64]
    """[pages] the smallest value of each page."""
    largest: NDArray[np.int64]
    """[pages] the largest value of each page."""

    def __len__(self) -> int:
        return len(self.checksum)


def encode(values: Any, starts: NDArray[np.int64]) -> Pages:
    """Encode int32 or int64 values of the device. Page i has the values from starts[i] to starts[i + 1], at least one.

    The kernels that write the values have ended. Runs in the stream of this thread, beside the kernels of others. Takes
    up to 5 bytes of memory for each value of int32, and 9 for each of int64.
    """
    with transfer.own_stream():
        pages, kind = len(starts) - 1, values.dtype.name
        blocks = -(-(np.diff(starts) - 1) // _BLOCK)
        firsts = np.concatenate([[0], np.cumsum(blocks)]).astype(np.int64)
        cuts, first = cupy.array(starts), cupy.array(firsts)
        count, number = int(firsts[-1]), np.int32(pages)
        begins, sizes = cupy.empty(pages, np.int32), cupy.empty(count, np.int32)
        smallest = values[cuts[:-1]].astype(np.int64)
        largest = smallest.copy()
        begin = _Kernel(f"delta:begin_pages_{kind}", pages)
        begin(values, cuts, number, begins, np.uint64(0), np.uint64(0))
        if count:
            own = (values, cuts, first, number)
            _Kernel(f"delta:measure_{kind}", 32 * count)(*own, sizes, smallest, largest)
        before = _starts(sizes)  # of each block, among all blocks
        heads = _starts(begins)  # of each page, among all heads
        offsets = heads + before[first]
        content = cupy.empty(int(transfer.wait_for(offsets[-1])), np.uint8)
        begin(values, cuts, number, begins, offsets, content)
        if count:
            _Kernel(f"delta:pack_{kind}", 32 * count)(*own, heads, before, content)
        checksum = cupy.empty(pages, np.uint32)
        source.kernel("delta:check")((pages,), (_CHECKING,), (content, offsets, checksum))
        return Pages(content, *map(transfer.to_host, (offsets, checksum, smallest, largest)))


class _Kernel:
    """A kernel whose threads stride over `threads` items."""

    def __init__(self, name: str, threads: int) -> None:
        self._kernel, self._grid = source.kernel(name), source.grid(threads, _THREADS)

    def __call__(self, *arguments: Any) -> None:
        self._kernel((self._grid,), (_THREADS,), arguments)


def _starts(sizes: Any) -> Any:
    """[len(sizes) + 1] the sum of all sizes before each."""
    found = cupy.zeros(len(sizes) + 1, np.int64)
    cupy.cumsum(sizes, dtype=np.int64, out=found[1:])
    return found
