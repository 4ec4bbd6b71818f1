"""Runs of rows with about equally many entries: what threads share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numba import get_num_threads, set_num_threads

from ...graph import IntArray, LongArray
from ...in_rows import InRows

PIECES = 16
"""Runs for each thread: rows of one run may take longer than those of another."""

SMALL = 2**15
"""Entries that one thread reads sooner than several have begun."""

_ALL = np.zeros(0, np.int32)


@contextmanager
def threads_for(entries: int) -> Iterator[None]:
    """Within it, kernels use one thread if there are few entries."""
    before = get_num_threads()
    set_num_threads(before if entries > SMALL else 1)
    try:
        yield
    finally:
        set_num_threads(before)


def pieces(offsets: LongArray, rows: IntArray | None) -> LongArray:
    """Where each of consecutive runs starts in `rows`, or among all rows, and where the last one ends."""
    ends = offsets if rows is None else np.concatenate(([0], np.cumsum(offsets[rows + 1] - offsets[rows])))
    count = len(ends) - 1
    work = ends + np.arange(count + 1)  # rows without entries are work, too
    runs = min(PIECES * get_num_threads(), max(count, 1))
    cuts = np.searchsorted(work, np.linspace(work[0], work[-1], runs + 1).astype(np.int64))
    cuts[0], cuts[-1] = 0, count
    return cuts.astype(np.int64)


@contextmanager
def shared(rows: InRows, wanted: IntArray | None) -> Iterator[tuple[bool, IntArray, LongArray]]:
    """Whether all rows are read, else which, and where runs of them start; within it there are threads for them."""
    cuts = pieces(rows.offsets, wanted)
    entries = len(rows) if wanted is None else int((rows.offsets[wanted + 1] - rows.offsets[wanted]).sum())
    with threads_for(entries):
        yield wanted is None, _ALL if wanted is None else wanted, cuts
