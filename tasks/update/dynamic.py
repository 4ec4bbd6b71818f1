"""A graph in memory that takes batches of edges: sorted rows, and the support of every edge.

The structure and its measure follow cuSTINGER (Green and Bader, "cuSTINGER: Supporting dynamic graph algorithms for
GPUs", HPEC 2016), with sorted rows instead of lists with room. A batch is sorted, and each row that it touches is
merged with its part and written to the end of the array. When the array is full the rows are packed into a new one.
Rows lie in the memory of the host or of a GPU, and batches in the same one.
"""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels.dynamic_rows import dynamic_rows
from ...kernels.runtime.threads import kernel_threads
from ..device import MemorySpace

Ends = NDArray[np.int32]
FEW = 256
"""Batches of fewer pairs are worked on by one thread, as it takes longer to start the others."""
ROOM = 1.25
"""Size of a new array over that of the entries that it must hold: packing then costs a few entries for each one that is
written.
"""


class DynamicRows:
    """The rows of a graph whose vertices are 0 to `vertices` - 1, in the memory `space`. Not thread-safe.

    With `supports`, the number of triangles of each edge is exact after each batch.
    """

    def __init__(self, vertices: int, supports: bool = True, space: MemorySpace = MemorySpace.HOST) -> None:
        self.supports = supports
        self.edges = 0
        """Number of edges."""
        self._begin, self._length = (space.place(np.zeros(vertices, np.int64)) for _ in range(2))
        self._neighbour, self._support = (space.place(np.zeros(0, np.int32)) for _ in range(2))
        self._end = 0
        self._kernel = dynamic_rows(self._begin)

    def insert(self, source: Ends, target: Ends) -> int:
        """Add edges, given by their ends [pairs] in any order. Returns the number added.

        Loops, repeated pairs and edges that are there are left out.
        """
        with kernel_threads(1) if len(source) < FEW else nullcontext():
            return self._insert(*_pairs(source, target))

    def delete(self, source: Ends, target: Ends) -> int:
        """Remove edges. Returns the number removed; pairs that are no edges, and repeated ones, are left out."""
        with kernel_threads(1) if len(source) < FEW else nullcontext():
            return self._delete(*_pairs(source, target))

    def _insert(self, low: Ends, high: Ends) -> int:
        new = ~self.contains(low, high)
        low, high = low[new], high[new]
        if not len(low):
            return 0
        rows, starts, ends = self._kernel.group_by_row(low, high)
        sizes = self._length[rows] + starts[1:] - starts[:-1]
        places = np.cumsum(sizes)
        total = int(places[-1])
        if self._end + total > len(self._neighbour):
            self._pack(total)
        places -= sizes
        places += self._end
        self._kernel.merge_into(rows, starts, ends, *self._arrays(), places)
        self._end += total
        self.edges += len(low)
        if self.supports:
            own = self._kernel.change_supports(low, high, *self._arrays(), 1)
            self._kernel.set_supports(low, high, *self._arrays(), own)
        return len(low)

    def _delete(self, low: Ends, high: Ends) -> int:
        there = self.contains(low, high)
        low, high = low[there], high[there]
        if not len(low):
            return 0
        if self.supports:
            self._kernel.set_flags(low, high, *self._arrays())
            self._kernel.change_supports(low, high, *self._arrays(), -1)
        self._kernel.leave_out_of(*self._kernel.group_by_row(low, high), *self._arrays())
        self.edges -= len(low)
        return len(low)

    def contains(self, low: Ends, high: Ends) -> NDArray[np.bool_]:
        """Whether each pair, low < high, is an edge, bool [pairs]."""
        found: NDArray[np.bool_] = self._kernel.present(self._begin, self._length, self._neighbour, low, high)
        return found

    def supports_of(self, low: Ends, high: Ends) -> Ends:
        """The support of edges that are there, low < high, int32 [pairs]."""
        found: Ends = self._kernel.get_supports(low, high, *self._arrays())
        return found

    def pairs(self) -> tuple[Ends, Ends]:
        """All edges, low < high, sorted."""
        starts = self._packed()
        row = kernels.row_numbers(starts)
        entry = np.arange(len(row), like=row) + (self._begin - starts[:-1])[row]
        other = self._neighbour[entry]
        return row[row < other], other[row < other]

    def _arrays(self) -> tuple[NDArray[np.int64], NDArray[np.int64], Ends, Ends]:
        return self._begin, self._length, self._neighbour, self._support

    def _packed(self) -> NDArray[np.int64]:
        """[vertices + 1] where the rows would start, and the last one end, without gaps."""
        starts = np.zeros(len(self._length) + 1, np.int64, like=self._length)
        np.cumsum(self._length, out=starts[1:])
        return starts

    def _pack(self, room: int) -> None:
        starts = self._packed()
        live = int(starts[-1])
        size = int(ROOM * (live + room))
        new = np.empty(size, np.int32, like=self._length), np.empty(size, np.int32, like=self._length)
        self._kernel.pack(*self._arrays(), starts[:-1], *new)
        self._begin, self._neighbour, self._support, self._end = starts[:-1], *new, live


def _pairs(source: Ends, target: Ends) -> tuple[Ends, Ends]:
    """Distinct pairs, low < high, sorted, without loops."""
    low, high = np.minimum(source, target), np.maximum(source, target)
    keys = np.unique((low.astype(np.int64) << np.int64(32) | high)[low != high])
    return (keys >> np.int64(32)).astype(np.int32), keys.astype(np.int32)
