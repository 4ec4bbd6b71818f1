"""Chunks of rows with about equally many entries, which threads share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numba import get_num_threads, set_num_threads
from numpy.typing import NDArray

from ...graph import IntArray, LongArray
from ...in_rows import InRows

CHUNKS_PER_THREAD = 16
"""Chunks per thread. More than one balances chunks that take different times."""

SERIAL_ENTRIES = 2**15
"""Up to this number of entries one thread is faster than several, which take time to start."""

_ALL_ROWS = np.zeros(0, np.int32)


@contextmanager
def threads_for(entries: int) -> Iterator[None]:
    """Context in which kernels use one thread if there are few entries."""
    before = get_num_threads()
    set_num_threads(before if entries > SERIAL_ENTRIES else 1)
    try:
        yield
    finally:
        set_num_threads(before)


def chunk_starts(offsets: LongArray, rows: IntArray | None) -> LongArray:
    """The start of each chunk in `rows`, or in all rows, and the end of the last chunk."""
    ends = offsets if rows is None else np.concatenate(([0], np.cumsum(offsets[rows + 1] - offsets[rows])))
    count = len(ends) - 1
    work = ends + np.arange(count + 1)  # rows without entries count as work, too
    chunks = min(CHUNKS_PER_THREAD * get_num_threads(), max(count, 1))
    cuts = np.searchsorted(work, np.linspace(work[0], work[-1], chunks + 1).astype(np.int64))
    cuts[0], cuts[-1] = 0, count
    return cuts.astype(np.int64)


def even_chunks(count: int) -> LongArray:
    """The start of each of several chunks of `count` elements, and the end of the last one."""
    chunks = min(CHUNKS_PER_THREAD * get_num_threads(), max(count, 1))
    return np.linspace(0, count, chunks + 1).astype(np.int64)


def packed(values: NDArray[Any], cuts: LongArray, counts: LongArray) -> NDArray[Any]:
    """The first `counts` [chunks] values of each chunk, without gaps. May be a view."""
    if int(counts.sum()) == len(values):
        return values
    return np.concatenate([values[first : first + count] for first, count in zip(cuts[:-1], counts, strict=True)])


@contextmanager
def row_chunks(rows: InRows, selected: IntArray | None) -> Iterator[tuple[bool, IntArray, LongArray]]:
    """Context with threads for the selected rows: (whether all rows are read, the selected rows, chunk starts)."""
    cuts = chunk_starts(rows.offsets, selected)
    entries = len(rows) if selected is None else int((rows.offsets[selected + 1] - rows.offsets[selected]).sum())
    with threads_for(entries):
        yield selected is None, _ALL_ROWS if selected is None else selected, cuts
