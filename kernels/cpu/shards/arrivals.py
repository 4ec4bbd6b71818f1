"""Puts what arrived in runs, one behind the other, in the order of the merged runs."""

from __future__ import annotations

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from ...graph import LongArray

CHUNK = 2**16
"""Edges that a thread takes at a time."""


@njit(parallel=True, cache=True, nogil=True)
def _count_owned(origin, owned, chunk, counts):
    for c in prange(counts.size):
        total = 0
        for i in range(c * chunk, min((c + 1) * chunk, origin.size)):
            total += owned[origin[i]]
        counts[c] = total


@njit(parallel=True, cache=True, nogil=True)
def _arrange(origin, owned, number, low, support, row, runs, senders, chunk, start, low_to, support_to, bucket, row_to):
    for c in prange(start.size - 1):
        to = start[c]
        for i in range(c * chunk, min((c + 1) * chunk, origin.size)):
            o = origin[i]
            low_to[i] = low[o]
            support_to[i] = support[o]
            if owned[o]:
                run, stop = 0, senders.size
                while stop - run > 1:
                    middle = (run + stop) >> 1
                    if runs[middle] <= o:
                        run = middle
                    else:
                        stop = middle
                bucket[to] = senders[run]
                row_to[to] = row[number[o] - np.uint32(1)]
                to += 1


def arrange(
    origin: NDArray[np.uint32],
    owned: NDArray[np.bool_],
    low: NDArray[np.uint32],
    support: NDArray[np.int32],
    row: NDArray[np.int32],
    runs: LongArray,
    senders: NDArray[np.int16],
) -> tuple[NDArray[np.uint32], NDArray[np.int32], NDArray[np.int16], NDArray[np.int32]]:
    """Low ends and supports [edges] in the order that `origin` [edges] has them in, and sender and row of the `owned`.

    `low`, `support` and `owned` [edges] are as they arrived, `row` [owned edges] too. `runs` [senders + 1] says where
    the edges of each of the `senders` start.
    """
    number = np.cumsum(owned, dtype=np.uint32)
    counts = np.zeros(-(-len(origin) // CHUNK), np.int64)
    _count_owned(origin, owned, CHUNK, counts)
    start = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    low_to, support_to = np.empty_like(low), np.empty_like(support)
    bucket, row_to = np.empty(len(row), np.int16), np.empty(len(row), np.int32)
    fixed = (origin, owned, number, low, support, row, runs, senders)
    _arrange(*fixed, CHUNK, start, low_to, support_to, bucket, row_to)
    return low_to, support_to, bucket, row_to
