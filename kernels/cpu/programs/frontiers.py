"""Lists of vertices that several threads take from and append to.

Threads take some vertices at a time. Rows with many entries are set aside; after the other rows, all threads share each
of these long rows, since a few vertices often have most of the entries. A thread collects new elements in a buffer, and
appends the full buffer to a list.
"""

from __future__ import annotations

import numpy as np

from ...runtime.cache import cached_njit
from ..arrays.intrinsics import fetch_add

KEPT = 1024
"""Capacity of the buffer of a thread, in elements."""
PARALLEL_ENTRIES = 2**13
"""One thread is faster than several for at most this many entries, since threads take time to start."""
LONG_ROW = 2**12
"""One thread alone reads a row of at most this many entries."""
LONG_ROWS = 2**12
"""Maximum number of rows that are set aside. One thread alone reads each further long row."""
SHARE, SHARES = 64, 8
"""Maximum number of vertices that a thread takes at a time, and how often each thread takes some at least."""


@cached_njit
def add_kept(kept, held, counters, counter, listed):
    """Add the first `held` of the `kept` elements to a list, whose length is one of the counters."""
    at = fetch_add(counters, counter, held)
    for i in range(held):
        listed[at + i] = kept[i]


@cached_njit
def share_of(size, lanes):
    """The number of vertices that a thread takes at a time from a list of this size."""
    return max(1, min(SHARE, size // (SHARES * lanes)))


@cached_njit
def piece(start, end, at, pieces):
    """The first entry and the end of a piece of a row; the whole row if there is one piece."""
    if pieces == 1:
        return start, end
    long = np.int64(end - start)
    return start + np.uint64(at * long // pieces), start + np.uint64((at + 1) * long // pieces)
