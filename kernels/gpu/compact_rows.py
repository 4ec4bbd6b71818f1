"""Compact rows on the device: each row is a hash table. kernels/cuda/compact documents them.

A slot has a key and a word. Both are in one array, or in separate arrays if the keys do not all fit the device.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import cupy
import numpy as np

from .runtime import source
from .runtime.memory import PinnedArray, near, parts, room

EMPTY = np.uint32(0xFFFFFFFF)
"""The key of a free slot."""
_VACANT = -(2**28) - 1
"""The word of a free slot; equal to word.cuh."""
_BOTH = np.uint64((_VACANT & 0xFFFFFFFF) << 32 | int(EMPTY))


class SlotsTogether:
    """Slots of buckets, four each, in one array: each word is beside its key."""

    apart = 0
    """The value of the macro APART of kernels that read these slots."""

    def __init__(self, buckets: int) -> None:
        """All slots are free."""
        self.both: Any = cupy.empty((4 * buckets, 2), np.uint32)
        self.clear()

    @property
    def arguments(self) -> tuple[Any, ...]:
        """Arguments of kernels: keys, words, keys in host memory, and the number of slots whose keys are there."""
        return self.both[:, 0], self.both[:, 1], 0, np.int64(0)

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        return int(self.both.nbytes)

    def clear(self) -> None:
        """Make all slots free."""
        self.both.view(np.uint64).fill(_BOTH)


class SlotsApart:
    """Slots of buckets, with the keys of the first buckets in mapped host memory and the others on the device."""

    apart = 1

    def __init__(self, buckets: int) -> None:
        """Only the words: all slots are free, and keys have no place yet."""
        self.words = cupy.empty(4 * buckets, np.int32)
        self.words.fill(_VACANT)
        self.near: Any = cupy.empty((0,), np.uint32)
        self.far: Any = self.near

    def place_keys(self, far: int) -> None:
        """Place the keys of the first `far` buckets in host memory, with undefined content, and the others on the
        device, as those of free slots.
        """
        self.near = cupy.empty(len(self.words) - 4 * far, np.uint32)
        self.near.fill(EMPTY)
        self.far = PinnedArray.empty(4 * far, np.uint32).device

    @property
    def arguments(self) -> tuple[Any, ...]:
        """As for SlotsTogether."""
        return self.near, self.words, self.far, np.int64(len(self.far))

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        return int(self.words.nbytes + self.near.nbytes)


_TILE = 16
"""`row_at` has the row of every bucket whose index is a multiple of this; equal to rows.cuh."""
_PARTS = 16
"""Approximate number of parts in which rows are rebuilt. One part at a time takes additional memory."""
_PART_BYTES = 1.5
"""Bytes an edge of the graph of one part of the keys, which is built on the device and copied to host memory."""
_BLOCK = 256

EDGE_BYTES = 22.7
"""Bytes of an edge on the device."""
VERTEX_BYTES = 36
"""Bytes of a vertex, while rows are built."""


class CompactRows:
    """Rows of both directions of edges with their counts. Takes 22.7 bytes an edge and 24 a vertex. See rows.cuh.

    If keys are in host memory the device holds at least 12 of these bytes, and the host at most 10.7.
    """

    def __init__(self, offsets: Any, high: Any, known: Any, spare: int | None = None) -> None:
        """Build rows of those edges of a CSR, `offsets` [vertices + 1] and `high` [edges], that have `known` below 0.

        `known` [edges] of such an edge is -1 times its triangles. If `spare` is given, that many bytes of the device
        stay free: as many keys as necessary, those of the shortest rows, are in mapped host memory. Such rows cannot
        shrink.
        """
        self.vertices = len(offsets) - 1
        self._offsets, self._high = offsets, high
        self.apart = int(spare is not None)
        length = cupy.zeros(self.vertices, np.uint32)
        self._over_edges("measure", known, length)
        self._lay_out(length)
        del length
        self.slots: Any = SlotsApart(self.buckets) if self.apart else SlotsTogether(self.buckets)
        self.filters: Any = cupy.zeros(self.buckets // 2 + 1, np.uint32)
        if spare is None:
            self._fill(known, 0, self.vertices, 0, self.slots.arguments[0])
        else:
            self._fill_apart(known, spare)

    def _fill(self, known: Any, first: int, last: int, base: int, keys: Any) -> None:
        """Fill the rows of the vertices from `first` to `last` - 1. `keys` starts at the bucket `base`."""
        span = (np.uint32(first), np.uint32(last), np.int64(base))
        self._over_edges("fill", known, self.row, *span, keys, self.slots.arguments[1], self.filters)

    def _fill_apart(self, known: Any, spare: int) -> None:
        """Build the keys. Those that go to host memory are built on the device and copied, part after part."""
        part_bytes = int(_PART_BYTES * self.buckets * 1.5)
        free = room(16 * self.buckets + part_bytes + spare) - part_bytes - spare
        wanted = self.buckets - max(0, free) // 16
        vertex = int(cupy.searchsorted(self.stop, cupy.asarray([wanted]))[0]) + 1 if wanted > 0 else 0
        far = int(self.stop[vertex - 1]) if vertex else 0
        self.slots.place_keys(far)
        self._fill(known, vertex, self.vertices, far, self.slots.near)
        spans = self._spans(far, vertex, -(-16 * far // max(part_bytes, 1)))
        part: Any = cupy.empty(4 * max((end - begin for _, _, begin, end in spans), default=0), np.uint32)
        for first, last, begin, end in spans:
            part.fill(EMPTY)
            self._fill(known, first, last, begin, part)
            self.slots.far[4 * begin : 4 * end] = part[: 4 * (end - begin)]

    def _spans(self, buckets: int, vertices: int, parts: int) -> list[tuple[int, int, int, int]]:
        """Cut the first rows into about `parts` parts: (first vertex, last + 1, first bucket, last + 1) of each."""
        shares = cupy.asarray([buckets * part // parts for part in range(1, parts)], np.int64)
        cuts = cupy.searchsorted(self.stop[:vertices], shares, side="right").get().tolist()
        ends = sorted({*cuts, vertices} - {0})
        stops = self.stop[cupy.asarray(ends, np.int64) - 1].get().tolist()
        both = zip(pairwise([0, *ends]), pairwise([0, *stops]), strict=True)
        return [(*of_vertices, *of_buckets) for of_vertices, of_buckets in both if of_buckets[1] > of_buckets[0]]

    @property
    def nbytes(self) -> int:
        """Bytes of the rows on the device."""
        arrays = (self.stop, self.row, self.row_at, self.filters)
        return sum(int(array.nbytes) for array in arrays) + self.slots.nbytes

    def settle(self, starts: Any, levels: int, known: Any, counts: bool) -> None:
        """Write λ of removed edges to `known` [edges], which is below 0 for edges of these rows.

        `starts` [levels, 2] are the first round and the number of each level. With `counts`, `known` of each other edge
        of these rows becomes -1 times its remaining triangles.
        """
        rows = (self.row, *self.slots.arguments, starts, np.int32(levels), counts)
        self._over_edges("known", known, *rows, changes=True)

    def _lay_out(self, length: Any) -> None:
        """Compute the offsets of rows of these lengths, whose slots are at most three quarters full."""
        buckets = length + np.uint32(2)
        buckets //= np.uint32(3)
        self.stop: Any = cupy.cumsum(buckets, dtype=np.int64)
        del buckets
        self.buckets = int(self.stop[-1]) if self.vertices else 0
        self.row: Any = cupy.empty((self.vertices, 4), np.uint32)
        self.row_at: Any = cupy.empty(-(-self.buckets // _TILE) + 1, np.uint32)
        self._over(self.vertices, "place", np.int64(self.vertices), self.stop, self.row, self.row_at)

    def shrink(self) -> None:
        """Rebuild rows from the entries of remaining edges, in the same memory, part after part."""
        length = cupy.zeros(self.vertices, np.uint32)
        row, row_at, stop, size = self.row, self.row_at, self.stop, 4 * self.buckets
        self._over(size, "measure_left", row, *self.slots.arguments, row_at, np.int64(size), length)
        self._lay_out(length)
        del length
        spans = self._spans(self.buckets, self.vertices, _PARTS)
        ends = cupy.asarray([last for _, last, _, _ in spans], np.int64) - 1
        stops = [0, *stop[ends].get().tolist()]  # old rows between two spans have no edges left
        del stop
        part = SlotsTogether(max((end - (begin & ~1) for _, _, begin, end in spans), default=0))
        marks: Any = cupy.empty(len(part.both) // 8 + 1, np.uint32)
        filters = self.filters.view(np.uint16)
        for (first, last), (_, _, begin, end) in zip(pairwise(stops), spans, strict=True):
            base = begin & ~1
            part.clear()
            marks.fill(0)
            old = (row, *self.slots.arguments, row_at, np.int64(first), np.int64(last))
            self._over(4 * (last - first), "move", *old, self.row, np.int64(base), *part.arguments[:2], marks)
            self.slots.both[4 * begin : 4 * end] = part.both[4 * (begin - base) : 4 * (end - base)]
            filters[begin:end] = marks.view(np.uint16)[begin - base : end - base]

    def _over_edges(self, name: str, known: Any, *arguments: Any, changes: bool = False) -> None:
        """Run a kernel over the edges and their `known`. `changes` says whether the kernel changes `known`."""
        for part in parts(known, self._high):
            here = known[part]
            values = near(here)
            edges = (np.int64(part.start), np.int64(len(values)), self._offsets, np.int64(self.vertices))
            self._over(len(values), name, *edges, near(self._high[part]), values, *arguments)
            if changes and values is not here:
                here[...] = values

    def _over(self, items: int, name: str, *arguments: Any) -> None:
        kernel = source.kernel(f"compact/build:{name}", APART=self.apart)
        kernel((source.grid(items, _BLOCK, 32),), (_BLOCK,), arguments)
