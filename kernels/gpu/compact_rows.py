"""Compact rows on the device: each row is a hash table. kernels/cuda/compact documents them."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from .runtime import source

_TILE = 16
"""`row_at` has the row of every bucket whose index is a multiple of this; equal to rows.cuh."""
_PARTS = 16
"""Approximate number of parts in which rows are rebuilt. One part at a time takes additional memory."""
_BLOCK = 256


class CompactRows:
    """Rows of both directions of edges with their counts. Takes 22.7 bytes an edge and 24 a vertex. See rows.cuh."""

    def __init__(self, offsets: Any, high: Any, known: Any) -> None:
        """Edges of a CSR, `offsets` [vertices + 1] and `high` [edges]: those with `known` [edges] below 0.

        It is their number of triangles, times -1.
        """
        self.vertices = len(offsets) - 1
        self._edges = (offsets, np.int64(self.vertices), high)
        length = cupy.zeros(self.vertices, np.uint32)
        edges = np.int64(len(high))
        _over(len(high), "measure", edges, *self._edges, known, length)
        self._lay_out(length)
        self.slots: Any = _empty_slots(self.buckets)
        self.filters: Any = cupy.zeros(self.buckets // 2 + 1, np.uint32)
        _over(len(high), "fill", edges, *self._edges, known, self.row, self.slots, self.filters)

    @property
    def nbytes(self) -> int:
        """Bytes of the rows."""
        return sum(int(array.nbytes) for array in (self.stop, self.row, self.row_at, self.slots, self.filters))

    def settle(self, starts: Any, levels: int, known: Any, counts: bool) -> None:
        """Write λ of edges that have left to `known` [edges], which is below 0 for edges of these rows.

        `starts` [levels, 2] are the first round and the number of each level. With `counts` the other edges get their
        remaining triangles, times -1.
        """
        edges = len(known)
        rows = (self.row, self.slots, starts, np.int32(levels), counts)
        _over(edges, "known", np.int64(edges), *self._edges, *rows, known)

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


def _over(items: int, name: str, *arguments: Any) -> None:
    source.kernel(f"compact/build:{name}")((source.grid(items, _BLOCK, 32),), (_BLOCK,), arguments)


def _empty_slots(buckets: int) -> Any:
    slots = cupy.empty((4 * buckets, 2), np.uint32)
    _clear(slots)
    return slots


def _clear(slots: Any) -> None:
    if len(slots):
        slots.data.memset_async(0xFF, slots.nbytes)
