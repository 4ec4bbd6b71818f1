"""Chunks of rows with about equally many entries, which threads share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numba import get_num_threads, set_num_threads
from numpy.typing import NDArray

from ...graph import InRows, IntArray, LongArray
from ...runtime.cache import cached_njit
from ..arrays.intrinsics import places

CHUNKS_PER_THREAD = 16
"""Chunks per thread. More than one balances chunks that take different times."""

SERIAL_ENTRIES = 2**15
"""One thread is faster than several for at most this many entries, since threads take time to start."""

_ALL_ROWS = np.zeros(0, np.int32)


@cached_njit
def _add_lengths(offsets, rows, ends):
    ends[0] = total = 0
    for i in range(rows.size):
        total += offsets[rows[i] + 1] - offsets[rows[i]]
        ends[i + 1] = total


@cached_njit
def _find_cuts(ends, cuts):
    """Cut rows into chunks of equal work. The work before row i is ends[i] + i: rows without entries take time too."""
    count, chunks = ends.size - 1, cuts.size - 1
    work = ends[count] + count - ends[0]
    for chunk in range(chunks + 1):
        aim = ends[0] + work * chunk // chunks
        low, high = 0, count
        while low < high:
            middle = (low + high) // 2
            if ends[middle] + middle < aim:
                low = middle + 1
            else:
                high = middle
        cuts[chunk] = low
    cuts[0], cuts[chunks] = 0, count


@contextmanager
def threads_for(entries: int) -> Iterator[None]:
    """Within the context kernels use one thread if there are few entries."""
    before = get_num_threads()
    if before == 1 or entries > SERIAL_ENTRIES:
        yield
        return
    set_num_threads(1)
    try:
        yield
    finally:
        set_num_threads(before)


def chunk_starts(offsets: LongArray, rows: IntArray | None) -> LongArray:
    """The start of each chunk in `rows`, or in all rows, and the end of the last chunk."""
    return _cut(offsets if rows is None else entry_ends(offsets, rows))


def entry_ends(offsets: LongArray, rows: IntArray) -> LongArray:
    """The number of entries in the first i of some rows, int64 [rows + 1]."""
    ends = np.empty(len(rows) + 1, np.int64)
    _add_lengths(offsets, rows, ends)
    return ends


def _cut(ends: LongArray) -> LongArray:
    chunks = min(CHUNKS_PER_THREAD * get_num_threads(), max(len(ends) - 1, 1))
    cuts = np.empty(chunks + 1, np.int64)
    _find_cuts(ends, cuts)
    return cuts


def entry_chunks(offsets: LongArray, rows: IntArray) -> tuple[LongArray, LongArray]:
    """The start of each chunk in `rows` with the end of the last chunk, and the number of entries before each."""
    ends = entry_ends(offsets, rows)
    cuts = _cut(ends)
    return cuts, ends[cuts]


def even_chunks(count: int) -> LongArray:
    """The start of each of several chunks of `count` elements, and the end of the last one."""
    chunks = min(CHUNKS_PER_THREAD * get_num_threads(), max(count, 1))
    starts: LongArray = np.arange(chunks + 1) * count // chunks
    return starts


def packed(values: NDArray[Any], cuts: LongArray, counts: LongArray) -> NDArray[Any]:
    """The first `counts` [chunks] values of each chunk, without gaps. May be a view."""
    if int(counts.sum()) == len(values):
        return values
    return np.concatenate([values[first : first + count] for first, count in zip(cuts[:-1], counts, strict=True)])


class RowChunks(NamedTuple):
    """The selected rows of an `InRows`, or all of its rows, in chunks that threads share."""

    offsets: NDArray[Any]
    source: NDArray[Any]
    weight: NDArray[np.float64]
    """[entries]; empty for edges without weights."""
    all_rows: bool
    selected: IntArray
    """The rows to read, unless all are read."""
    cuts: LongArray
    """[chunks + 1] where each chunk starts in the selected rows."""

    @property
    def unsigned(self) -> RowChunks:
        """The same with unsigned offsets and sources; see `places`."""
        return self._replace(offsets=places(self.offsets), source=places(self.source))


@contextmanager
def row_chunks(rows: InRows, selected: IntArray | None) -> Iterator[RowChunks]:
    """Context that yields the chunks of the selected rows, or of all rows, and sets the number of threads for them."""
    cuts = chunk_starts(rows.offsets, selected)
    entries = len(rows) if selected is None else int((rows.offsets[selected + 1] - rows.offsets[selected]).sum())
    listed = _ALL_ROWS if selected is None else selected
    with threads_for(entries):
        yield RowChunks(rows.offsets, rows.source, rows.weights, selected is None, listed, cuts)
