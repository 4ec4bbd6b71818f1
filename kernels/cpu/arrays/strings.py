"""Strings by their bytes: hashes, distinct strings, sorting by seven bytes at a time, and a test for plain numbers.

String i is content[offsets[i] : offsets[i + 1]]; `offsets` is int64 [strings + 1], `content` uint8. A sort stores the
seven bytes of a string that it compares at a time as its sort key.

NumPy sorts the keys of many strings. It uses vector instructions, and takes a third of the time of a kernel. The common
prefix of all strings, such as `https://`, is left out of the keys. UUIDs are sorted as two integers of 64 bits. Few
strings with equal keys are sorted by a multikey quicksort (Bentley, Sedgewick, SODA 1997) with cached keys (Ng, Kakehi,
CATS 2007).
"""

from __future__ import annotations

import secrets

import numpy as np
from numpy.typing import NDArray

from ...graph import IntArray, LongArray
from ...runtime.cache import cached_njit
from .intrinsics import load_word, mixed, prefetch


@cached_njit
def _are_plain(codes, delimiter):
    """One pass without branches over bytes, so that the compiler keeps the states in registers."""
    plain, starts, zero, minus = True, True, False, False
    for i in range(codes.size):
        code = codes[i]
        digit = np.uint8(code - np.uint8(48)) <= np.uint8(9)
        ends = (code == delimiter) | (code == np.uint8(10)) | (code == np.uint8(13))
        others = (code == np.uint8(46)) | (code == np.uint8(43)) | (code == np.uint8(45))
        others |= (code == np.uint8(69)) | (code == np.uint8(101))
        plain &= digit | ends | others
        plain &= not ((zero & digit) | (minus & (code == np.uint8(48))))
        zero = starts & (code == np.uint8(48))
        minus = starts & (code == np.uint8(45))
        starts = ends
    return plain


def are_plain_numbers(text: bytes, delimiter: int) -> bool:
    """Whether the text has only digits, signs, points, exponents, line ends and the byte `delimiter`, and no field in
    it begins with a zero before a digit, or with -0. The text begins with a field.

    Reads each byte once, without the GIL. NumPy would take and release the GIL for each operation.
    """
    codes: NDArray[np.uint8] = np.frombuffer(text, np.uint8)
    return bool(_are_plain(codes, np.uint8(delimiter)))


DIGIT = 7
"""Bytes of a string in one key. The lowest byte of a key is the number of bytes in it, plus one if the string
continues. Strings with equal keys are equal, or both continue.
"""
FEW = 16
"""Runs of at most this many strings are sorted by insertion."""
MANY = 2**12
"""NumPy sorts the next keys of at least this many strings with equal keys."""
STACK = 256
"""Capacity of the stack of runs. Twice log2 of the number of strings suffice, as the shortest of three runs is sorted
first.
"""


@cached_njit
def _key(offsets, content, which, depth):
    start = offsets[which] + depth
    left = offsets[which + 1] - start
    key = np.uint64(0)
    for i in range(min(left, DIGIT)):
        key = (key << np.uint64(8)) | np.uint64(content[start + i])
    key <<= np.uint64(8 * (DIGIT + 1 - min(left, DIGIT)))
    return key | np.uint64(min(left, DIGIT + 1))


@cached_njit
def _ends(key):
    """Whether the string ends within this key."""
    return key & np.uint64(0xFF) <= DIGIT


@cached_njit
def _compare(offsets, content, one, other, depth):
    """Negative, positive or zero if `one` is before, after or equal to `other`, both compared from `depth` on."""
    here, there = offsets[one] + depth, offsets[other] + depth
    left, rest = offsets[one + 1] - here, offsets[other + 1] - there
    for i in range(min(left, rest)):
        if content[here + i] != content[there + i]:
            return np.int64(content[here + i]) - np.int64(content[there + i])
    return left - rest


@cached_njit
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


@cached_njit
def _middle(a, b, c):
    return max(min(a, b), min(max(a, b), c))


@cached_njit
def _common_prefix(offsets, content, which, depth):
    """The length of the common prefix of all strings, of which `depth` bytes are known to be equal."""
    start = offsets[which[0]]
    common = offsets[which[0] + 1] - start
    for string in which:
        if common <= depth:
            break
        at = offsets[string]
        common = min(common, offsets[string + 1] - at)
        same = depth
        while same < common and content[at + same] == content[start + same]:
            same += 1
        common = same
    return common


@cached_njit
def _keys_of(offsets, content, which, depth):
    """The keys of one or more strings, from the bytes after their common prefix, and the length of this prefix."""
    depth = _common_prefix(offsets, content, which, depth)
    keys = np.empty(which.size, np.uint64)
    for i in range(which.size):
        keys[i] = _key(offsets, content, which[i], depth)
    return keys, depth


@cached_njit
def _sort_run(offsets, content, order, keys, repeats, depth):
    """Sort strings. `keys` are their keys from the bytes from `depth` on."""
    waiting = np.empty((STACK, 3), np.int64)
    waiting[0, 0], waiting[0, 1], waiting[0, 2] = 0, order.size, depth
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


@cached_njit
def _sort_equal(offsets, content, order, keys, repeats, depth):
    """Sort the strings of each run of equal keys by the bytes from `depth` on, which follow the bytes of the keys.

    Runs of MANY strings or more are not sorted. Returns where these runs begin and end, int64 [runs, 2].
    """
    left = np.empty((keys.size // MANY + 1, 2), np.int64)
    found = start = 0
    while start < keys.size:
        stop = start + 1
        while stop < keys.size and keys[stop] == keys[start]:
            stop += 1
        if _ends(keys[start]):
            repeats[start + 1 : stop] = True
        elif stop - start >= MANY:
            left[found, 0], left[found, 1] = start, stop
            found += 1
        elif stop - start > 1:
            for i in range(start, stop):
                keys[i] = _key(offsets, content, order[i], depth)
            _sort_run(offsets, content, order[start:stop], keys[start:stop], repeats[start:stop], depth)
        start = stop
    return left[:found]


UUID_LENGTH = 36
_LOWER, _UPPER, _OTHER = 0x20, 0x40, 0x80
_HEX = np.full(256, _OTHER, np.uint8)
_HEX[ord("0") : ord("9") + 1] = np.arange(10)
_HEX[ord("a") : ord("f") + 1] = np.arange(10, 16) | _LOWER
_HEX[ord("A") : ord("F") + 1] = np.arange(10, 16) | _UPPER


@cached_njit
def _read_uuids(offsets, content, high, low):
    """Write the first and the last 64 bits of each UUID. False if a string is no UUID, or letters are of both cases."""
    seen = np.uint8(0)
    for i in range(high.size):
        start = offsets[i]
        if offsets[i + 1] - start != UUID_LENGTH:
            return False
        for at in (8, 13, 18, 23):
            if content[start + at] != 45:
                return False
        value = np.uint64(0)
        for at in range(UUID_LENGTH):
            if at in (8, 13, 18, 23):
                if at == 18:
                    high[i] = value
                continue
            digit = _HEX[content[start + at]]
            seen |= digit
            value = (value << np.uint64(4)) | np.uint64(digit & 15)
        low[i] = value
        if seen & _OTHER:
            return False
    return seen & (_LOWER | _UPPER) != _LOWER | _UPPER


@cached_njit
def _sort_by_low(order, high, low, repeats):
    """Sort by `low` each run of equal elements of `high`, which is in the order of the strings in `order`."""
    start = 0
    while start < high.size:
        stop, differs, first = start + 1, False, low[order[start]]
        while stop < high.size and high[stop] == high[start]:
            differs |= low[order[stop]] != first
            repeats[stop] = True
            stop += 1
        if differs:
            by = np.argsort(low[order[start:stop]], kind="mergesort")
            order[start:stop] = order[start:stop][by]
            for i in range(start + 1, stop):
                repeats[i] = low[order[i]] == low[order[i - 1]]
        start = stop


def _sort_uuids(offsets: LongArray, content: NDArray[np.uint8], repeats: NDArray[np.bool_]) -> LongArray | None:
    """As `sort_strings`, with `repeats` to fill in; None if not all strings are UUIDs with letters of one case."""
    high, low = np.empty((2, len(repeats)), np.uint64)
    if not _read_uuids(offsets, content, high, low):
        return None
    order = np.argsort(high)
    high.sort()
    _sort_by_low(order, high, low, repeats)
    return order


@cached_njit
def _hash_strings(offsets, content, base):
    found = np.empty(offsets.size - 1, np.uint64)
    for i in range(found.size):
        value = np.uint64(0)
        for at in range(offsets[i + 1] - 1, offsets[i] - 1, -1):
            value = value * base + np.uint64(content[at]) + np.uint64(1)
        found[i] = value
    return found


def hash_strings(offsets: LongArray, content: NDArray[np.uint8], base: np.uint64) -> NDArray[np.uint64]:
    """A hash of each string, uint64 [strings]: the polynomial in `base` with coefficients byte + 1, modulo 2^64.

    Reads each byte once, and takes 8 bytes of memory a string.
    """
    hashes: NDArray[np.uint64] = _hash_strings(*_read_only(offsets, content), base)
    return hashes


WORD = 8
"""Bytes that are hashed and compared at a time."""
AHEAD = 16
"""Strings whose slots, ends and bytes are fetched before the first of them is looked up."""
TRIED = 2**16
"""Strings after which a table is given up if RARE or fewer repeat an earlier string: sorting all is then faster."""
RARE = TRIED // 32
_NUMBER = 0xFFFFFFFF
"""The bits of a slot that are the number of a string plus one. The others are the upper bits of its hash."""


@cached_njit
def _hash(content, start, stop, seed):
    """A hash of the bytes and their number."""
    bits = seed ^ np.uint64(stop - start)
    at = start
    while stop - at >= WORD:
        bits = mixed(bits ^ load_word(content, at))
        at += WORD
    if at == stop:
        return bits
    if stop - start >= WORD:
        return mixed(bits ^ load_word(content, stop - WORD))
    word = np.uint64(0)
    while at < stop:
        word = (word << np.uint64(8)) | np.uint64(content[at])
        at += 1
    return mixed(bits ^ word)


@cached_njit
def _are_equal(content, start, stop, known, first):
    """Whether the bytes from `start` to `stop` are those of `known` from `first` on."""
    at = start
    while stop - at >= WORD:
        if load_word(content, at) != load_word(known, first + at - start):
            return False
        at += WORD
    if at < stop and stop - start >= WORD:
        return load_word(content, stop - WORD) == load_word(known, first + stop - start - WORD)
    while at < stop:
        if content[at] != known[first + at - start]:
            return False
        at += 1
    return True


@cached_njit
def _number(offsets, content, code, first, last, slots, ends, known, count, seed):
    """Number the strings from `first` to `last` by the distinct strings in `known`, to which new ones are appended.

    Stops when the table is half full. Returns where it stopped, and the number of distinct strings.
    """
    mask = np.uint64(slots.size - 1)
    bits = np.empty(AHEAD, np.uint64)
    while first < last:
        stop = min(first + AHEAD, last)
        if 2 * (count + stop - first) > slots.size:
            break
        for i in range(first, stop):
            bits[i - first] = _hash(content, offsets[i], offsets[i + 1], seed)
            prefetch(slots, np.int64(bits[i - first] & mask))
        for i in range(stop - first):
            prefetch(ends, np.int64(slots[bits[i] & mask] & np.uint64(_NUMBER)))
        for i in range(stop - first):
            before = np.int64(slots[bits[i] & mask] & np.uint64(_NUMBER)) - 1
            if before >= 0:
                prefetch(known, ends[before])
        for i in range(first, stop):
            start, stop_of, own = offsets[i], offsets[i + 1], bits[i - first]
            at = own & mask
            while True:
                slot = slots[at]
                if slot == 0:
                    there = ends[count]
                    for byte in range(stop_of - start):
                        known[there + byte] = content[start + byte]
                    code[i] = count
                    count += 1
                    ends[count] = there + stop_of - start
                    slots[at] = (own & ~np.uint64(_NUMBER)) | np.uint64(count)
                    break
                if (slot ^ own) & ~np.uint64(_NUMBER) == 0:
                    number = np.int64(slot & np.uint64(_NUMBER)) - 1
                    there = ends[number]
                    if ends[number + 1] - there == stop_of - start and _are_equal(
                        content, start, stop_of, known, there
                    ):
                        code[i] = number
                        break
                at = (at + np.uint64(1)) & mask
        first = stop
    return first, count


@cached_njit
def _enter(slots, ends, known, count, seed):
    """Enter the distinct strings in an empty table."""
    mask = np.uint64(slots.size - 1)
    for number in range(count):
        own = _hash(known, ends[number], ends[number + 1], seed)
        at = own & mask
        while slots[at]:
            at = (at + np.uint64(1)) & mask
        slots[at] = (own & ~np.uint64(_NUMBER)) | np.uint64(number + 1)


def number_strings(
    offsets: LongArray, content: NDArray[np.uint8]
) -> tuple[LongArray, NDArray[np.uint8], IntArray] | None:
    """The distinct strings, in the order in which they occur first, and the number of each string among them.

    Returns the offsets and bytes of the distinct strings, and the numbers, int32 [strings]; None if hardly any of the
    first TRIED strings occur twice. There may be 2^31 - 1 strings.

    Open addressing with linear probes, two to eight slots a distinct string, of 8 bytes each. The hashes have a random
    seed, so that no input is slow by intent.
    """
    offsets, content = _read_only(offsets, content)
    count = len(offsets) - 1
    seed = np.uint64(secrets.randbits(64))
    code = np.empty(count, np.int32)
    slots = np.zeros(2 ** max(10, (count // 2).bit_length()), np.uint64)
    ends, known = np.zeros(count + 1, np.int64), np.empty(int(offsets[-1] - offsets[0]), np.uint8)
    done = found = 0
    while done < count:
        last = TRIED if done < TRIED < count else count
        done, found = _number(offsets, content, code, done, last, slots, ends, known, found, seed)
        if done == TRIED < count and done - found <= RARE:
            return None
        if done < last:
            slots = np.zeros(2 * len(slots), np.uint64)
            _enter(slots, ends, known, found, seed)
    return ends[: found + 1], known[: int(ends[found])], code


def sort_strings(offsets: LongArray, content: NDArray[np.uint8]) -> tuple[LongArray, NDArray[np.bool_]]:
    """Sort strings by their bytes. Returns the permutation, int64 [strings], and in sorted order whether each string
    equals the string before it, bool [strings].

    Takes 17 bytes of memory a string, 25 for UUIDs. Reads about as many bytes of each string as distinguish it.
    """
    offsets, content = _read_only(offsets, content)
    count = len(offsets) - 1
    repeats = np.zeros(count, np.bool_)
    if not count:
        return np.zeros(0, np.int64), repeats
    if offsets[1] - offsets[0] == UUID_LENGTH and (uuids := _sort_uuids(offsets, content, repeats)) is not None:
        return uuids, repeats
    keys, depth = _keys_of(offsets, content, np.arange(count), 0)
    order = np.argsort(keys)
    runs = _sort_behind(offsets, content, order, keys, repeats, depth)
    del keys
    while runs:
        start, stop, depth = runs.pop()
        more = _sort_strings_of_a_run(offsets, content, order[start:stop], repeats[start:stop], depth)
        runs += [(start + first, start + last, behind) for first, last, behind in more]
    return order, repeats


def _sort_strings_of_a_run(
    offsets: LongArray, content: NDArray[np.uint8], order: LongArray, repeats: NDArray[np.bool_], depth: int
) -> list[tuple[int, int, int]]:
    """Sort many strings whose first `depth` bytes are equal. Returns unsorted runs, as `_sort_behind`."""
    keys, depth = _keys_of(offsets, content, order, depth)
    order[:] = order[np.argsort(keys)]
    return _sort_behind(offsets, content, order, keys, repeats, depth)


def _sort_behind(
    offsets: LongArray,
    content: NDArray[np.uint8],
    order: LongArray,
    keys: NDArray[np.uint64],
    repeats: NDArray[np.bool_],
    depth: int,
) -> list[tuple[int, int, int]]:
    """Sort strings with equal keys by the bytes that follow. `order` is sorted by the keys, which have the bytes from
    `depth` on.

    Leaves long runs of equal keys unsorted. Returns where each begins and ends, and how many bytes are known to be
    equal in it.
    """
    keys.sort()  # in place: faster than a gather in the order of the keys, and without more memory
    behind = depth + DIGIT
    left = _sort_equal(offsets, content, order, keys, repeats, behind)
    return [(first, last, behind) for first, last in left.tolist()]


def _read_only(offsets: LongArray, content: NDArray[np.uint8]) -> tuple[LongArray, NDArray[np.uint8]]:
    """Both as read-only arrays. Arrow's arrays may be writable or not, and Numba would compile kernels for both."""
    offsets, content = offsets.view(), content.view()
    offsets.flags.writeable = content.flags.writeable = False
    return offsets, content
