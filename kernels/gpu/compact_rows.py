"""Compact rows on the device, and peeling on them. Each row is a hash table. kernels/cuda/compact documents them."""

from __future__ import annotations

from math import isqrt
from typing import Any

import cupy
import numpy as np

from ..graph import GONE, Topology
from .runtime import source

SHRINK_AT = 0.5
"""Rows are rebuilt when this share of their edges is left."""
MOST_ROUNDS = 1000
"""Rounds of one launch. After each launch limits are checked and progress is reported."""
WARPS = 16
"""Warps of a block; equal to remove.cuh."""
_SHARED = WARPS * (8 * (16 + 16 + 4 + 4 + 4) + 192 * (8 + 8 + 4 + 1))
"""Bytes of shared memory of a block: `Work` of remove.cuh for each warp."""
_HEAVY = 2**18
"""Capacity of a round's list of parts of heavy edges; equal to remove.cuh."""
_TILE = 16
"""`row_at` has the row of every bucket whose index is a multiple of this; equal to rows.cuh."""
_PARTS = 16
"""Approximate number of parts in which rows are rebuilt. One part at a time takes additional memory."""
_LEAST_ROOM = 2**16
"""Least capacity of a list, in edges."""
_LEFT, _LEVEL, _LAST, _ROUND, _LEVELS = 0, 2, 3, 4, 5
"""Number of words of `State` in state.cuh."""
_STATE = 20
_BLOCK = 256


class CompactRows:
    """Rows of both directions of edges with their counts. Takes 22.7 bytes an edge and 16 a vertex. See rows.cuh."""

    def __init__(self, low: Any, high: Any, vertices: int, count: Any) -> None:
        """`low` and `high` [edges] are ends < vertices; `count` [edges] are triangles."""
        self.vertices = vertices
        length = cupy.zeros(vertices, np.uint32)
        edges = np.int64(len(low))
        _over(len(low), "measure", edges, low, high, length)
        self._lay_out(length)
        self.slots: Any = _empty_slots(self.buckets)
        self.filters: Any = cupy.zeros(self.buckets // 2 + 1, np.uint32)
        _over(len(low), "fill", edges, low, high, count, self.row, self.slots, self.filters)

    def _lay_out(self, length: Any) -> None:
        """Compute the offsets of rows of these lengths, with three quarters of their slots full."""
        buckets = length + np.uint32(2)
        buckets //= np.uint32(3)
        self.stop: Any = cupy.cumsum(buckets, dtype=np.int64)
        del buckets
        self.buckets = int(self.stop[-1]) if self.vertices else 0
        self.row: Any = cupy.empty((self.vertices, 4), np.uint32)
        self.row_at: Any = cupy.empty(-(-self.buckets // _TILE) + 1, np.uint32)
        _over(self.vertices, "place", np.int64(self.vertices), self.stop, self.row, self.row_at)

    def shrink(self) -> None:
        """Rebuild rows from the entries of remaining edges, in the same memory, part after part."""
        length = cupy.zeros(self.vertices, np.uint32)
        _over(4 * self.buckets, "measure_left", self.row, self.slots, self.row_at, np.int64(4 * self.buckets), length)
        before = (self.row, self.slots, self.row_at)
        old = self.stop
        self._lay_out(length)
        del length
        shares = cupy.asarray([self.buckets * part // _PARTS for part in range(1, _PARTS)], np.int64)
        cuts = sorted({*cupy.searchsorted(self.stop, shares, side="right").get().tolist(), self.vertices} - {0})
        ends = cupy.asarray([0, *cuts])[1:] - 1
        spans, first, begin = [], 0, 0
        for last, end in zip(old[ends].get().tolist(), self.stop[ends].get().tolist(), strict=True):
            if end > begin:
                spans.append((first, last, begin, end))
            first, begin = last, end
        del old
        room = max((end - (begin & ~1) for _, _, begin, end in spans), default=0)
        part = _empty_slots(room)
        marks: Any = cupy.empty(room // 2 + 1, np.uint32)
        filters = self.filters.view(np.uint16)
        for first, last, begin, end in spans:
            base = begin & ~1
            _clear(part)
            marks.fill(0)
            span = (np.int64(first), np.int64(last))
            _over(4 * (last - first), "move", *before, *span, self.row, np.int64(base), part, marks)
            self.slots[4 * begin : 4 * end] = part[4 * (begin - base) : 4 * (end - base)]
            filters[begin:end] = marks.view(np.uint16)[begin - base : end - base]


class CompactPeeling:
    """The state of one subgraph's peeling; see `kernels.peeling`."""

    def __init__(self, topology: Topology, count: Any, low: Any = None, level: int = 0, levels: int = 0) -> None:
        self.left = self._edges = topology.edges
        self.level = level
        self._levels_before = self.levels = levels
        self._low, self._high = topology.low, topology.high
        if low is None:
            self._rows = CompactRows(topology.low, topology.high, topology.vertices, count)
            self._known = cupy.full(topology.edges, -1, np.int32)
        else:
            self._known = cupy.where(count < 0, low, np.int32(-1))
            stay = cupy.flatnonzero(count >= 0)
            self.left = len(stay)
            self._rows = CompactRows(topology.low[stay], topology.high[stay], topology.vertices, count[stay])
        self._state = cupy.zeros(_STATE, np.uint32)
        self._state.view(np.int32)[_LEVEL], self._state.view(np.int32)[_LAST] = level, level - 1
        self._state.view(np.uint64)[_LEFT] = self._in_rows = self.left
        self._starts = cupy.empty((isqrt(2 * self.left) + 2, 2), np.uint32)
        room = 1 << max(_LEAST_ROOM, self.left // 8).bit_length() - 1
        self._lists = [cupy.empty((size, 2), np.uint32) for size in (room, room // 2, room)]
        self._heavy = cupy.empty((_HEAVY, 4), np.uint32)

    @property
    def low(self) -> Any:
        """λ of the removed edges, 0 for the others."""
        self._settle(None)
        return self._known if not self.left else cupy.maximum(self._known, 0)

    @property
    def count(self) -> Any:
        """[edges] remaining triangles; GONE for removed edges. Peeling on other rows can continue from this state."""
        count = cupy.full(self._edges, GONE, np.int32)
        self._settle(count)
        return count

    def advance(self) -> None:
        """Peel levels until a rebuild of the rows pays off, and rebuild them."""
        kernel = source.kernel("compact/peel:peel", cooperative=True)
        block = 32 * WARPS
        rows = self._rows
        lists = [word for one in self._lists for word in (one, np.uint32(len(one)))]
        blocks = source.resident(kernel, block, _SHARED)
        arguments = (
            *(rows.row, rows.slots, rows.filters, rows.row_at, np.int64(4 * rows.buckets)),
            *(self._state, cupy.zeros(8, np.uint32), *lists, self._heavy, self._starts),
            *(np.uint64(int(SHRINK_AT * self._in_rows)), np.uint32(MOST_ROUNDS)),
        )
        kernel((blocks,), (block,), arguments, shared_mem=_SHARED)
        state = self._state.get()
        self.left = int(state.view(np.uint64)[_LEFT])
        self.level, self.levels = int(state[_LEVEL]), self._levels_before + int(state[_LEVELS])
        if 0 < self.left <= int(SHRINK_AT * self._in_rows):
            self._settle(None)
            self._rows.shrink()
            self._in_rows = self.left
            self._state.view(np.int32)[_LAST] = self.level - 1  # the noted slots are no longer valid

    def _settle(self, count: Any) -> None:
        """Store λ of the edges removed since the last call, and write the triangles of the others to `count`."""
        rows, levels = self._rows, self.levels - self._levels_before
        arguments = (self._low, self._high, rows.row, rows.slots, self._starts, np.int32(levels), self._known)
        _over(self._edges, "known", np.int64(self._edges), *arguments, 0 if count is None else count)


def _over(items: int, name: str, *arguments: Any) -> None:
    source.kernel(f"compact/build:{name}")((source.grid(items, _BLOCK, 32),), (_BLOCK,), arguments)


def _empty_slots(buckets: int) -> Any:
    slots = cupy.empty((4 * buckets, 2), np.uint32)
    _clear(slots)
    return slots


def _clear(slots: Any) -> None:
    if len(slots):
        slots.data.memset_async(0xFF, slots.nbytes)
