"""Runs of rows with about equally many entries: what threads share."""

from __future__ import annotations

import numpy as np
from numba import get_num_threads

from ...graph import IntArray, LongArray

PIECES = 16
"""Runs for each thread: rows of one run may take longer than those of another."""


def pieces(offsets: LongArray, rows: IntArray | None) -> LongArray:
    """Where each of consecutive runs starts in `rows`, or among all rows, and where the last one ends."""
    ends = offsets if rows is None else np.concatenate(([0], np.cumsum(offsets[rows + 1] - offsets[rows])))
    count = len(ends) - 1
    work = ends + np.arange(count + 1)  # rows without entries are work, too
    runs = min(PIECES * get_num_threads(), max(count, 1))
    cuts = np.searchsorted(work, np.linspace(work[0], work[-1], runs + 1).astype(np.int64))
    cuts[0], cuts[-1] = 0, count
    return cuts.astype(np.int64)
