"""The number of rows with each bit: 64 rows at a time are transposed, so that a word has one bit of all of them."""

from __future__ import annotations

import numpy as np
from numba import get_num_threads, prange
from numpy.typing import NDArray

from ...graph import LongArray
from ...runtime.cache import cached_njit
from ..arrays.bits import popcount
from ..programs.chunks import threads_for

ROWS = 64


@cached_njit
def _transpose(block):
    """Transpose 64 words of 64 bits in place (Warren, "Hacker's Delight", 2nd edition, 2012, section 7-3)."""
    size = 32
    mask = np.uint64(0x00000000FFFFFFFF)
    while size:
        k = 0
        while k < ROWS:
            other = k + size
            swapped = ((block[k] >> np.uint64(size)) ^ block[other]) & mask
            block[k] ^= swapped << np.uint64(size)
            block[other] ^= swapped
            k = (other + 1) & ~size
        size >>= 1
        mask ^= mask << np.uint64(size)


@cached_njit(parallel=True)
def _columns(masks, cuts, partial):
    words = masks.shape[1]
    for chunk in prange(cuts.size - 1):
        block = np.empty(ROWS, np.uint64)
        own = np.zeros(ROWS * words, np.int64)
        for first in range(cuts[chunk], cuts[chunk + 1], ROWS):
            count = min(ROWS, cuts[chunk + 1] - first)
            for w in range(words):
                some = np.uint64(0)
                for i in range(count):
                    block[i] = masks[first + i, w]
                    some |= block[i]
                if some:
                    block[count:] = np.uint64(0)
                    _transpose(block)
                    for column in range(ROWS):
                        own[ROWS * w + column] += np.int64(popcount(block[column]))
        partial[chunk] = own


def column_counts(masks: NDArray[np.uint64]) -> LongArray:
    """The number of rows with each bit."""
    chunks = get_num_threads()
    cuts = np.linspace(0, len(masks), chunks + 1).astype(np.int64)
    partial = np.empty((chunks, ROWS * masks.shape[1]), np.int64)
    with threads_for(masks.size):
        _columns(masks, cuts, partial)
    total: LongArray = partial.sum(axis=0)
    return total
