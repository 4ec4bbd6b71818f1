"""A graph in memory that takes batches of edges: sorted rows, and the support of every edge.

The structure and its measure follow cuSTINGER (Green and Bader, "cuSTINGER: Supporting dynamic graph algorithms for
GPUs", HPEC 2016), with sorted rows instead of lists with room. A batch is sorted, and each row that it touches is
merged with its part and written to the end of the array. When the array is full the rows are packed into a new one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...kernels.cpu.update import dynamic_rows as kernel

Ends = NDArray[np.int32]
ROOM = 1.25
"""Size of a new array over that of the entries that it must hold: packing then costs a few entries for each one that is
written.
"""


class DynamicRows:
    """The rows of a graph whose vertices are 0 to `vertices` - 1. Not thread-safe.

    With `supports`, the number of triangles of each edge is exact after each batch.
    """

    def __init__(self, vertices: int, supports: bool = True) -> None:
        self.supports = supports
        self.edges = 0
        """Number of edges."""
        self._begin, self._length = np.zeros(vertices, np.int64), np.zeros(vertices, np.int64)
        self._neighbour, self._support = np.zeros((2, 0), np.int32)
        self._end = 0

    def insert(self, source: Ends, target: Ends) -> int:
        """Add edges, given by their ends [pairs] in any order. Returns the number added.

        Loops, repeated pairs and edges that are there are left out.
        """
        low, high = _pairs(source, target)
        new = ~self.contains(low, high)
        low, high = low[new], high[new]
        if not len(low):
            return 0
        rows, starts, ends = kernel.group_by_row(low, high)
        sizes = self._length[rows] + np.diff(starts)
        total = int(sizes.sum())
        if self._end + total > len(self._neighbour):
            self._pack(total)
        to = self._end + np.cumsum(sizes) - sizes
        kernel.merge_into(rows, starts, ends, *self._arrays(), to)
        self._end += total
        self.edges += len(low)
        if self.supports:
            kernel.set_supports(low, high, *self._arrays(), kernel.change_supports(low, high, *self._arrays(), 1))
        return len(low)

    def delete(self, source: Ends, target: Ends) -> int:
        """Remove edges. Returns the number removed; pairs that are no edges, and repeated ones, are left out."""
        low, high = _pairs(source, target)
        there = self.contains(low, high)
        low, high = low[there], high[there]
        if not len(low):
            return 0
        if self.supports:
            kernel.set_flags(low, high, *self._arrays())
            kernel.change_supports(low, high, *self._arrays(), -1)
        kernel.leave_out_of(*kernel.group_by_row(low, high), *self._arrays())
        self.edges -= len(low)
        return len(low)

    def contains(self, low: Ends, high: Ends) -> NDArray[np.bool_]:
        """Whether each pair, low < high, is an edge, bool [pairs]."""
        found: NDArray[np.bool_] = kernel.present(self._begin, self._length, self._neighbour, low, high)
        return found

    def supports_of(self, low: Ends, high: Ends) -> NDArray[np.int32]:
        """The support of edges that are there, low < high, int32 [pairs]."""
        found: Ends = kernel.get_supports(low, high, *self._arrays())
        return found

    def pairs(self) -> tuple[Ends, Ends]:
        """All edges, low < high, sorted."""
        row = np.repeat(np.arange(len(self._length), dtype=np.int32), self._length)
        entry = np.arange(len(row)) + np.repeat(self._begin - np.cumsum(self._length) + self._length, self._length)
        other = self._neighbour[entry]
        return row[row < other], other[row < other]

    def _arrays(self) -> tuple[NDArray[np.int64], NDArray[np.int64], Ends, Ends]:
        return self._begin, self._length, self._neighbour, self._support

    def _pack(self, room: int) -> None:
        live = int(self._length.sum())
        begin = np.cumsum(self._length) - self._length
        new = np.empty(int(ROOM * (live + room)), np.int32), np.empty(int(ROOM * (live + room)), np.int32)
        kernel.pack(*self._arrays(), begin, *new)
        self._begin, self._neighbour, self._support, self._end = begin, *new, live


def _pairs(source: Ends, target: Ends) -> tuple[Ends, Ends]:
    """Distinct pairs, low < high, sorted, without loops."""
    low, high = np.minimum(source, target), np.maximum(source, target)
    keys = np.unique((low.astype(np.int64) << 32 | high)[low != high])
    return (keys >> 32).astype(np.int32), keys.astype(np.int32)
