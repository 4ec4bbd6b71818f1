"""Distinct strings in a hash table, and columns of strings as positions among them.

Open addressing with linear probes. A slot is 64 bits: the upper half of the string's hash, and the number of the string
plus one. So a string is compared by its bytes with few others than its equal.
"""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...graph import IntArray, LongArray
from ...runtime.cache import cached_njit
from .intrinsics import load_word, mixed, prefetch
from .strings import read_only

WORD = 8
"""Bytes that are hashed and compared at a time."""
AHEAD = 16
"""Strings whose slots, ends and bytes are fetched before the first of them is looked up."""
LEAST = 2**10
"""Fewest slots."""

_FACTOR = 0x9E3779B97F4A7C15
_HASH = 0xFFFFFFFF00000000


@cached_njit
def _tail(content, start, stop):
    """The last bytes of a string as a word, where fewer than WORD of them are left after `start`."""
    word = np.uint64(0)
    for at in range(start, stop):
        word = (word << np.uint64(8)) | np.uint64(content[at])
    return word


@cached_njit
def _hash(content, start, stop, seed):
    """A hash of the bytes and their number: each word is a permutation of the bits before it."""
    bits = seed ^ (np.uint64(stop - start) * np.uint64(_FACTOR))
    at = start
    while stop - at >= WORD:
        bits = (bits ^ load_word(content, at)) * np.uint64(_FACTOR)
        bits ^= bits >> np.uint64(32)
        at += WORD
    if at < stop:
        last = load_word(content, stop - WORD) if stop - start >= WORD else _tail(content, at, stop)
        bits = (bits ^ last) * np.uint64(_FACTOR)
    return mixed(bits)


@cached_njit
def _same(content, start, stop, others, first):
    """Whether the bytes from `start` to `stop` are those of `others` from `first` on."""
    at = start
    while stop - at >= WORD:
        if load_word(content, at) != load_word(others, first + at - start):
            return False
        at += WORD
    if at < stop and stop - start >= WORD:
        return load_word(content, stop - WORD) == load_word(others, first + stop - start - WORD)
    while at < stop:
        if content[at] != others[first + at - start]:
            return False
        at += 1
    return True


@cached_njit
def _add(offsets, content, codes, begin, slots, ends, known, count, seed):
    """Number the strings from `begin` on, until all are or the table is too full. Returns where it ended, and the
    number of distinct strings.
    """
    mask = np.uint64(slots.size - 1)
    bits = np.empty(AHEAD, np.uint64)
    for first in range(begin, codes.size, AHEAD):
        last = min(first + AHEAD, codes.size)
        if 2 * (count + last - first) > slots.size:
            return first, count
        for i in range(first, last):
            bits[i - first] = _hash(content, offsets[i], offsets[i + 1], seed)
            prefetch(slots, np.int64(bits[i - first] & mask))
        for i in range(last - first):
            prefetch(ends, np.int64(slots[bits[i] & mask] & ~np.uint64(_HASH)))
        for i in range(last - first):
            prefetch(known, ends[np.int64(slots[bits[i] & mask] & ~np.uint64(_HASH)) - 1])
        for i in range(first, last):
            start, stop, own = offsets[i], offsets[i + 1], bits[i - first]
            at = own & mask
            while True:
                slot = slots[at]
                if slot == 0:
                    to = ends[count]
                    for byte in range(stop - start):
                        known[to + byte] = content[start + byte]
                    count += 1
                    ends[count] = to + stop - start
                    slots[at] = (own & np.uint64(_HASH)) | np.uint64(count)
                    codes[i] = count - 1
                    break
                if (slot ^ own) & np.uint64(_HASH) == 0:
                    code = np.int64(slot & ~np.uint64(_HASH)) - 1
                    there = ends[code]
                    if ends[code + 1] - there == stop - start and _same(content, start, stop, known, there):
                        codes[i] = code
                        break
                at = (at + np.uint64(1)) & mask
    return codes.size, count


@cached_njit
def _fill(slots, ends, known, count, seed):
    """Enter the distinct strings in an empty table."""
    mask = np.uint64(slots.size - 1)
    for code in range(count):
        own = _hash(known, ends[code], ends[code + 1], seed)
        at = own & mask
        while slots[at]:
            at = (at + np.uint64(1)) & mask
        slots[at] = (own & np.uint64(_HASH)) | np.uint64(code + 1)


def warm_table() -> None:
    """Compile the kernels of a table, or load them."""
    one = np.zeros(1, np.int32)
    slots, ends, known, seed = np.zeros(2, np.uint64), np.zeros(2, np.int64), np.zeros(1, np.uint8), np.uint64(0)
    _add(*read_only(np.zeros(2, np.int64), known), one, 0, slots, ends, known, 0, seed)
    _fill(np.zeros(2, np.uint64), ends, known, 1, seed)


class StringTable:
    """Distinct strings, numbered in the order in which they were added first. Mutable; for one thread.

    It takes two to four slots of 8 bytes, an offset of 8 bytes and the bytes of each distinct string. The seed of its
    hashes is random, so that no input is slow by intent. Numbers do not depend on it.

    `room` is the most bytes that the distinct strings take, if that is known. Memory is taken when strings fill it.
    """

    def __init__(self, room: int = 0) -> None:
        self._seed = np.uint64(secrets.randbits(64))
        self._slots = np.zeros(LEAST, np.uint64)
        self._ends = np.zeros(LEAST, np.int64)
        self._content = np.empty(room, np.uint8)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, offsets: LongArray, content: NDArray[np.uint8]) -> IntArray:
        """The number of each string, int32 [strings]. String i is content[offsets[i] : offsets[i + 1]], as in
        `sort_strings`. There may be 2^31 - 1 distinct strings.
        """
        offsets, content = read_only(offsets, content)
        codes, done = np.empty(len(offsets) - 1, np.int32), 0
        _make_room(self._ends, self._count + 1, len(codes))
        _make_room(self._content, int(self._ends[self._count]), int(offsets[-1] - offsets[0]))
        while True:
            done, self._count = _add(
                offsets, content, codes, done, self._slots, self._ends, self._content, self._count, self._seed
            )
            if done == len(codes):
                return codes
            self._slots = np.zeros(2 * len(self._slots), np.uint64)
            _fill(self._slots, self._ends, self._content, self._count, self._seed)

    def strings(self) -> tuple[LongArray, NDArray[np.uint8]]:
        """The offsets of the distinct strings [strings + 1] and their bytes, in the order of their numbers. These are views:
        add no more strings.
        """
        ends = self._ends[: self._count + 1]
        return ends, self._content[: int(ends[-1])]


def _make_room(array: NDArray[Any], used: int, more: int) -> None:
    """Enlarge the array for `more` elements behind those that are used, by moving its pages instead of a copy."""
    if used + more > len(array):
        array.resize(max(used + more, used + used // 4), refcheck=False)
