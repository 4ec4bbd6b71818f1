"""Strings by their bytes: hashes, and a quicksort by seven bytes at a time, which are kept beside each other.

Multikey quicksort (Bentley, Sedgewick, SODA 1997) with cached keys (Ng, Kakehi, CATS 2007).
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ..graph import LongArray

DIGIT = 7
"""Bytes of a string in one key. The key's lowest byte says how many there are, and one more where the string goes on:
strings with equal keys are the same, or both go on.
"""
FEW = 16
"""Strings that are sorted by insertion."""
STACK = 256
"""Runs that wait, at most twice as many as log2 of the strings: the shortest of three goes first."""


@njit(cache=True, nogil=True)
def _key(offsets, content, which, depth):
    start = offsets[which] + depth
    left = offsets[which + 1] - start
    key = np.uint64(0)
    for i in range(min(left, DIGIT)):
        key = (key << np.uint64(8)) | np.uint64(content[start + i])
    key <<= np.uint64(8 * (DIGIT + 1 - min(left, DIGIT)))
    return key | np.uint64(min(left, DIGIT + 1))


@njit(cache=True, nogil=True)
def _ends(key):
    """Whether a string ends with this key."""
    return key & np.uint64(0xFF) <= DIGIT


@njit(cache=True, nogil=True)
def _compare(offsets, content, one, other, depth):
    """Below, above or at zero, as `one` comes before `other`, after it or is the same; both from `depth` on."""
    here, there = offsets[one] + depth, offsets[other] + depth
    left, others = offsets[one + 1] - here, offsets[other + 1] - there
    for i in range(min(left, others)):
        if content[here + i] != content[there + i]:
            return np.int64(content[here + i]) - np.int64(content[there + i])
    return left - others


@njit(cache=True, nogil=True)
def _insert(offsets, content, order, keys, repeats, start, stop, depth):
    """Sort a short run by insertion."""
    for i in range(start + 1, stop):
        which, key = order[i], keys[i]
        j = i
        while j > start:
            before = keys[j - 1]
            if before < key:
                break
            if before == key:
                more = np.int64(0)
                if not _ends(key):
                    more = _compare(offsets, content, order[j - 1], which, depth + DIGIT)
                if more <= 0:
                    break
            order[j], keys[j] = order[j - 1], before
            j -= 1
        order[j], keys[j] = which, key
    for i in range(start + 1, stop):
        if keys[i] == keys[i - 1]:
            repeats[i] = _ends(keys[i]) or _compare(offsets, content, order[i - 1], order[i], depth + DIGIT) == 0


@njit(cache=True, nogil=True)
def _middle(a, b, c):
    return max(min(a, b), min(max(a, b), c))


@njit(cache=True, nogil=True)
def _sort_strings(offsets, content):
    count = offsets.size - 1
    order = np.arange(count)
    repeats = np.zeros(count, np.bool_)
    keys = np.empty(count, np.uint64)
    for i in range(count):
        keys[i] = _key(offsets, content, i, 0)
    waiting = np.empty((STACK, 3), np.int64)
    waiting[0, 0], waiting[0, 1], waiting[0, 2] = 0, count, 0
    runs = 1
    sizes = np.empty(3, np.int64)
    while runs:
        runs -= 1
        start, stop, depth = waiting[runs, 0], waiting[runs, 1], waiting[runs, 2]
        if stop - start <= FEW:
            _insert(offsets, content, order, keys, repeats, start, stop, depth)
            continue
        quarter = (stop - start) // 4
        pivot = _middle(keys[start + quarter], keys[start + 2 * quarter], keys[start + 3 * quarter])
        below, above, i = start, stop, start
        while i < above:
            key = keys[i]
            if key < pivot:
                keys[i], keys[below] = keys[below], key
                order[i], order[below] = order[below], order[i]
                below += 1
                i += 1
            elif key > pivot:
                above -= 1
                keys[i], keys[above] = keys[above], key
                order[i], order[above] = order[above], order[i]
            else:
                i += 1
        if _ends(pivot):
            repeats[below + 1 : above] = True
            sizes[0] = 0
        else:
            for i in range(below, above):
                keys[i] = _key(offsets, content, order[i], depth + DIGIT)
            sizes[0] = above - below
        sizes[1], sizes[2] = below - start, stop - above
        while sizes.max() > 1:
            part = sizes.argmax()
            sizes[part] = 0
            waiting[runs, 0] = below if part == 0 else start if part == 1 else above
            waiting[runs, 1] = above if part == 0 else below if part == 1 else stop
            waiting[runs, 2] = depth + DIGIT if part == 0 else depth
            runs += 1
    return order, repeats


@njit(cache=True, nogil=True)
def _hash_strings(offsets, content, base):
    found = np.empty(offsets.size - 1, np.uint64)
    for i in range(found.size):
        value = np.uint64(0)
        for at in range(offsets[i + 1] - 1, offsets[i] - 1, -1):
            value = value * base + np.uint64(content[at]) + np.uint64(1)
        found[i] = value
    return found


def hash_strings(offsets: LongArray, content: NDArray[np.uint8], base: np.uint64) -> NDArray[np.uint64]:
    """Each string as a polynomial in `base`, whose coefficients are its bytes + 1, modulo 2^64."""
    hashes: NDArray[np.uint64] = _hash_strings(*_constant(offsets, content), base)
    return hashes


def sort_strings(offsets: LongArray, content: NDArray[np.uint8]) -> tuple[LongArray, NDArray[np.bool_]]:
    """The permutation that sorts strings by their bytes, and, in that order, which are the same as the one before."""
    order, repeats = _sort_strings(*_constant(offsets, content))
    return order, repeats


def _constant(offsets: LongArray, content: NDArray[np.uint8]) -> tuple[LongArray, NDArray[np.uint8]]:
    """Both as arrays that cannot be written to. Arrow's are or are not, which would be two types to the compiler."""
    offsets, content = offsets.view(), content.view()
    offsets.flags.writeable = content.flags.writeable = False
    return offsets, content
