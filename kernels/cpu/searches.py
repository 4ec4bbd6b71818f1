"""Breadth-first searches from many sources at once, on the CPU: each source is a bit in the words of a vertex.

A row, its order and its values determine the row's result bitwise, however rows are distributed. `at` has one or more
words for each position of a source, `seen` as many for each row. Bits that no search uses must be set in `seen`.
"""

from __future__ import annotations

import numpy as np
from numba import get_num_threads, prange
from numpy.typing import NDArray

from ..graph import InRows, IntArray, LongArray
from ..runtime.cache import cached_njit
from .arrays.intrinsics import popcount
from .programs.chunks import row_chunks, threads_for

Masks = NDArray[np.uint64]
Floats = NDArray[np.float64]


@cached_njit(parallel=True)
def _level(rows, at, seen, fresh):
    offsets, source, _, _, selected, cuts = rows
    words = at.shape[1]
    for chunk in prange(cuts.size - 1):
        bits = np.empty(words, np.uint64)
        for i in range(cuts[chunk], cuts[chunk + 1]):
            row = selected[i]
            for w in range(words):
                bits[w] = seen[row, w]
            for q in range(offsets[row], offsets[row + 1]):
                position = source[q]
                everything = ~np.uint64(0)
                for w in range(words):
                    bits[w] |= at[position, w]
                    everything &= bits[w]
                if everything == ~np.uint64(0):
                    break
            for w in range(words):
                fresh[i, w] = bits[w] & ~seen[row, w]


def search_level(rows: InRows, selected: IntArray, at: Masks, seen: Masks) -> Masks:
    """One level of a breadth-first search. Returns for each selected row the bits of its sources that are new for the
    row, uint64 [selected, words].

    `at` [sources, words] are the bits of the vertices of the last level, `seen` [rows, words] the bits of all levels so
    far. Reads a row until all its bits are seen: 4 + 8 × words bytes an entry (Then et al., "The more the merrier:
    efficient multi-source graph traversal", PVLDB 8(4), 2014).
    """
    fresh = np.empty((len(selected), at.shape[1]), np.uint64)
    with row_chunks(rows, selected) as chunks:
        _level(chunks, at, seen, fresh)
    return fresh


@cached_njit
def _reached(transposed, changed, at, closed, marked):
    offsets, row_of = transposed
    reached = np.empty(marked.size, np.int32)
    count = 0
    for s in changed:
        for q in range(offsets[s], offsets[s + 1]):
            row = row_of[q]
            if not marked[row]:
                for w in range(at.shape[1]):
                    if at[s, w] & ~closed[row, w]:
                        marked[row] = True
                        reached[count] = row
                        count += 1
                        break
    for i in range(count):
        marked[reached[i]] = False
    return reached[:count]


def reached_rows(
    transposed: InRows, changed: IntArray, at: Masks, closed: Masks, marked: NDArray[np.bool_]
) -> IntArray:
    """The rows, int32, ascending, with a `changed` source that has a bit of `at` [sources, words] which is not in
    `closed` [rows, words].

    `transposed` is from `transpose_rows`. `marked` [rows] is scratch, which must be false and is left so. Reads the
    entries of the changed sources in one thread.
    """
    return np.sort(_reached((transposed.offsets, transposed.source), changed, at, closed, marked))


ROWS = 64


@cached_njit
def _transpose_bits(block):
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
                    _transpose_bits(block)
                    for column in range(ROWS):
                        own[ROWS * w + column] += np.int64(popcount(block[column]))
        partial[chunk] = own


def column_counts(masks: NDArray[np.uint64]) -> LongArray:
    """The number of rows with each bit of `masks` [rows, words], int64 [64 × words]. Reads each word once."""
    chunks = get_num_threads()
    cuts = np.linspace(0, len(masks), chunks + 1).astype(np.int64)
    partial = np.empty((chunks, ROWS * masks.shape[1]), np.int64)
    with threads_for(masks.size):
        _columns(masks, cuts, partial)
    total: LongArray = partial.sum(axis=0)
    return total
