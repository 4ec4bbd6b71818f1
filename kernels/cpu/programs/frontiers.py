"""Lists of vertices that several threads take from and append to.

Threads take some vertices at a time. Rows with many entries are set aside, and all threads share each of them after the
others: a search often has a few vertices with most of the entries. A thread keeps some elements before it adds them.
"""

from __future__ import annotations

import numpy as np

from ...runtime.cache import cached_njit
from ..arrays.intrinsics import fetch_add

KEPT = 1024
"""Elements that a thread keeps before it adds them to the list."""
PARALLEL_ENTRIES = 2**13
"""Up to this number of entries one thread is faster than several, which take time to start."""
LONG_ROW = 2**12
"""Entries of a row that one thread reads alone."""
LONG_ROWS = 2**12
"""Rows that are set aside at most; threads read further ones alone."""
SHARE, SHARES = 64, 8
"""Vertices that a thread takes at a time at most, and how often each thread takes some at least, if there are many."""


@cached_njit
def add_kept(kept, held, counters, counter, listed):
    """Add the first `held` of the `kept` elements to a list, whose length is one of the counters."""
    at = fetch_add(counters, counter, held)
    for i in range(held):
        listed[at + i] = kept[i]


@cached_njit
def share_of(size, lanes):
    """Vertices of a list of this size that a thread takes at a time."""
    return max(1, min(SHARE, size // (SHARES * lanes)))


@cached_njit
def piece(start, end, at, pieces):
    """The first entry and the end of a piece of a row; the whole row if there is one piece."""
    if pieces == 1:
        return start, end
    long = np.int64(end - start)
    return start + np.uint64(at * long // pieces), start + np.uint64((at + 1) * long // pieces)
