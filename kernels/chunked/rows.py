"""Rows in chunks, which chunks a gather needs, and gathers over them; `kernels.programs` has their contracts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..graph import Extreme, InRows, IntArray, LongArray
from ..runtime.sizes import NUMPY_ALLOCATOR, Allocator

SEGMENTS = 4096
"""Segments of the sources. A chunk is skipped if no source that sent is in a segment that the chunk has sources of."""

DIRECT_FACTOR = 8
"""Rows are read where they lie, without their chunk, if their entries are fewer than one in DIRECT_FACTOR of it."""


@dataclass(frozen=True, eq=False)
class Chunk:
    """Consecutive rows whose entries are read together. `len()` is the number of entries."""

    number: int
    first: int
    """First row."""
    last: int
    """The row after the last one."""
    begin: int
    """First entry."""
    end: int
    """The entry after the last one."""

    def __len__(self) -> int:
        return self.end - self.begin


class Feed(Protocol):
    """Brings chunks of entries to the memory of the processor."""

    chunks: Sequence[Chunk]
    """All chunks, in the order of their rows. Each row is in one of them."""
    bytes_copied: int
    """Bytes of chunks that were brought so far."""
    bytes_direct: int
    """Bytes of rows that gathers have read without their chunk."""

    def visit(self, numbers: Sequence[int]) -> Iterator[tuple[Chunk, IntArray, NDArray[np.float64] | None]]:
        """Each of these chunks once, in any order, with its sources and weights. They are valid until the next one."""
        ...

    def is_near(self, number: int) -> bool:
        """Whether the chunk can be visited without bringing anything."""
        ...


def cut_chunks(offsets: LongArray, entries: int) -> list[Chunk]:
    """Cut rows into chunks of at most `entries` entries. A longer row is a chunk by itself.

    `offsets` [rows + 1] are in host memory.
    """
    rows, found, first = len(offsets) - 1, list[Chunk](), 0
    while first < rows:
        last = int(np.searchsorted(offsets, offsets[first] + entries, side="right")) - 1
        last = min(max(last, first + 1), rows)
        found.append(Chunk(len(found), first, last, int(offsets[first]), int(offsets[last])))
        first = last
    return found


class SourceSegments:
    """The segments of sources that each chunk has, noted when it is first visited."""

    def __init__(self, chunks: int) -> None:
        self.chunks = chunks
        self.noted: set[int] = set()
        self.has: NDArray[np.bool_] | None = None
        """[chunks, SEGMENTS] True where not noted yet."""

    def note(self, number: int, source: IntArray, sources: int) -> None:
        """Note the segments of one chunk's `source` [entries], of `sources` in all."""
        if number in self.noted:
            return
        if self.has is None:
            self.has = np.full_like(source, True, np.bool_, shape=(self.chunks, SEGMENTS))
        own = np.full_like(source, False, np.bool_, shape=(SEGMENTS,))
        own[source // np.int32(_width(sources))] = True
        self.has[number] = own
        self.noted.add(number)

    def wanted(self, active: NDArray[np.bool_]) -> list[bool]:
        """[chunks] whether a chunk may have an `active` [sources] source."""
        if self.has is None:
            return [True] * self.chunks
        width = _width(len(active))
        padded = np.full_like(active, False, shape=(SEGMENTS * width,))
        padded[: len(active)] = active
        found: NDArray[np.bool_] = np.any(self.has & padded.reshape(SEGMENTS, width).any(axis=1), axis=1)
        return list(found.tolist())


def _width(sources: int) -> int:
    """Sources in a segment."""
    return max(1, -(-sources // SEGMENTS))


@dataclass(frozen=True, eq=False)
class ChunkedRows(InRows):
    """Rows whose entries a feed brings in chunks.

    `offsets` are in the memory of the processor. `source` and `weight` are arrays of its type over the place of all
    entries, so that any kernel can read some rows where they lie: a GPU reads pinned host memory, at the speed of the
    link.
    """

    feed: Feed = field(kw_only=True)
    segments: SourceSegments = field(kw_only=True)
    home: InRows = field(kw_only=True)
    """The same rows for the host."""
    allocator: Allocator = field(kw_only=True, default=NUMPY_ALLOCATOR)
    """For arrays of entries that the host makes from these."""

    @classmethod
    def of(cls, rows: InRows, feed: Feed, home: InRows, allocator: Allocator = NUMPY_ALLOCATOR) -> ChunkedRows:
        """`rows` over a feed."""
        lists = rows.offsets, rows.source, rows.weight
        segments = SourceSegments(len(feed.chunks))
        return cls(*lists, feed=feed, segments=segments, home=home, allocator=allocator)

    @property
    def entry_bytes(self) -> int:
        """Bytes of an entry."""
        return 4 if self.weight is None else 12

    def visit(self, numbers: Sequence[int]) -> Iterator[tuple[Chunk, InRows]]:
        """Each of these chunks once, in any order, as rows in memory. They are valid until the next one."""
        for chunk, source, weight in self.feed.visit(numbers):
            offsets = self.offsets[chunk.first : chunk.last + 1] - chunk.begin
            yield chunk, InRows(offsets, source, weight, chunk)

    def direct(self, rows: IntArray) -> InRows:
        """All rows, to read the entries of some `rows` where they lie."""
        self.feed.bytes_direct += self.entry_bytes * int((self.offsets[rows + 1] - self.offsets[rows]).sum())
        return self.in_place()

    def in_place(self) -> InRows:
        """All rows, to read entries where they lie; the caller adds their bytes to those of the feed."""
        return InRows(self.offsets, self.source, self.weight)


@dataclass(frozen=True)
class Part:
    """Some rows that a kernel for rows in memory reads at once."""

    rows: InRows
    selected: IntArray | None
    """[selected] the rows to read; None for all."""
    place: Any
    """Where their results belong: a slice, or positions."""
    chunk: Chunk | None
    """Their chunk; None for rows of several chunks."""
    first: int
    """Number of the first of `rows` among all rows."""


def parts_of(rows: ChunkedRows, selected: IntArray | None, wanted: Sequence[bool] | None = None) -> Iterator[Part]:
    """The `selected` rows, ascending, or all rows, in parts; rows without entries may be left out.

    Chunks that are not `wanted` [chunks] are left out. Selected rows with few of the entries of their chunk are read
    where they lie, all together.
    """
    chunks = rows.feed.chunks
    if selected is None:
        numbers = [chunk.number for chunk in chunks if len(chunk) and (wanted is None or wanted[chunk.number])]
        for chunk, own in rows.visit(numbers):
            yield Part(own, None, slice(chunk.first, chunk.last), chunk, chunk.first)
        return
    if not len(selected) or not chunks:
        return
    starts = np.array([chunk.first for chunk in chunks] + [chunks[-1].last], selected.dtype)
    cuts = np.searchsorted(selected, np.asarray(starts, like=selected))
    ends = np.zeros_like(rows.offsets, shape=(len(selected) + 1,))
    np.cumsum(rows.offsets[selected + 1] - rows.offsets[selected], out=ends[1:])
    counts, at = np.diff(ends[cuts]).tolist(), cuts.tolist()
    read = [count > 0 and (wanted is None or wanted[k]) for k, count in enumerate(counts)]
    whole = [
        own and (DIRECT_FACTOR * counts[k] >= len(chunks[k]) or rows.feed.is_near(k)) for k, own in enumerate(read)
    ]
    few = np.asarray(np.array(read) & ~np.array(whole), like=selected)
    if bool(few.any()):
        place = np.flatnonzero(few[np.searchsorted(cuts[1:-1], np.arange(len(selected), like=cuts), side="right")])
        yield Part(rows.direct(selected[place]), selected[place], place, None, 0)
    for chunk, own_rows in rows.visit([k for k, own in enumerate(whole) if own]):
        run = slice(at[chunk.number], at[chunk.number + 1])
        yield Part(own_rows, selected[run] - np.int32(chunk.first), run, chunk, chunk.first)


def _results(rows: ChunkedRows, selected: IntArray | None, like: NDArray[Any], value: Any) -> NDArray[Any]:
    """An array for the results of the `selected` rows, or of all; `value` is that of rows without entries."""
    found: NDArray[Any] = np.full_like(like, value, shape=(rows.rows if selected is None else len(selected),))
    return found


class ChunkGathers:
    """The gathers of a `twin`, which has the kernels for rows in memory, over rows in chunks."""

    def __init__(self, twin: ModuleType) -> None:
        self._twin = twin

    def row_sums(self, rows: ChunkedRows, values: NDArray[np.float64], along: str) -> NDArray[np.float64]:
        """The sum of the values over the entries of each row."""
        out = _results(rows, None, values, 0.0)
        for part in parts_of(rows, None):
            out[part.place] = self._twin.row_sums(part.rows, values, along)
        return out

    def row_extremes(
        self, rows: ChunkedRows, selected: IntArray | None, values: NDArray[Any], extreme: Extreme
    ) -> tuple[NDArray[Any], IntArray]:
        """The best value over the entries of each row, and its first source. Chunks whose sources all have the worst
        value are skipped.
        """
        worst = extreme.worst(values.dtype)
        out = _results(rows, selected, values, worst)
        best = np.full_like(out, -1, np.int32)
        wanted = rows.segments.wanted(values != worst)
        for part in parts_of(rows, selected, wanted):
            if part.chunk is not None:
                rows.segments.note(part.chunk.number, part.rows.source, len(values))
            out[part.place], best[part.place] = self._twin.row_extremes(part.rows, part.selected, values, extreme)
        return out, best

    def first_active_sources(
        self, rows: ChunkedRows, receiving: NDArray[np.bool_] | None, active: NDArray[np.bool_]
    ) -> tuple[IntArray, IntArray, int]:
        """The receiving rows with an active source, the first of each, and the entries of all receiving rows. Chunks
        without both are skipped.
        """
        best = np.full_like(active, -1, np.int32, shape=(rows.rows,))
        selected = None if receiving is None else np.flatnonzero(receiving).astype(np.int32)
        for part in parts_of(rows, selected, rows.segments.wanted(active)):
            mask = None
            if part.chunk is not None:
                rows.segments.note(part.chunk.number, part.rows.source, len(active))
                mask = None if receiving is None else receiving[part.chunk.first : part.chunk.last]
            elif part.selected is not None:
                mask = np.full_like(active, False, shape=(rows.rows,))
                mask[part.selected] = True
            found, first, _ = self._twin.first_active_sources(part.rows, mask, active)
            best[found + np.int32(part.first)] = first
        came = np.flatnonzero(best >= 0).astype(np.int32)
        return came, best[came], self._twin.count_entries(rows, receiving)

    def row_modes(self, rows: ChunkedRows, selected: IntArray | None, values: NDArray[Any], none: int) -> NDArray[Any]:
        """The smallest most frequent value of each row."""
        out = _results(rows, selected, values, none)
        for part in parts_of(rows, selected):
            out[part.place] = self._twin.row_modes(part.rows, part.selected, values, none)
        return out

    def row_h_indices(self, rows: ChunkedRows, selected: IntArray | None, values: NDArray[Any]) -> NDArray[Any]:
        """The largest k such that k entries of the row have values of at least k."""
        out = _results(rows, selected, values, 0)
        for part in parts_of(rows, selected):
            out[part.place] = self._twin.row_h_indices(part.rows, part.selected, values)
        return out


def source_counts_of_chunks(rows: ChunkedRows, sources: int) -> LongArray:
    """The number of entries of each of `sources` sources."""
    counts = np.zeros_like(rows.offsets, shape=(sources,))
    for part in parts_of(rows, None):
        counts += np.bincount(part.rows.source, minlength=sources)
    return counts
