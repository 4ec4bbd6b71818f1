"""The distinct strings of several arrays: a hash table finds equal ones, CuPy's radix sort orders the others.

The sort goes from the last bytes to the first, DIGIT bytes at a time, behind the common prefix of all. Strings that
need too many such passes are sorted by the kernel for CPUs, without repeats.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import cupy
import numpy as np
from numpy.typing import NDArray

from ...graph import LongArray
from ..runtime import source
from ..runtime.constants import STRING_DIGIT
from . import transfer

MAX_PASSES = 16
"""Passes of the sort. Each takes about as long as reading the strings once."""
_BLOCK = 256
_NONE = np.uint64(2**64 - 1)
"""An empty slot of the hash table."""


class DistinctStrings(NamedTuple):
    """The distinct strings of some arrays, ascending by their bytes."""

    offsets: LongArray
    """[strings + 1] in host memory. String i is content[offsets[i] : offsets[i + 1]]."""
    content: NDArray[np.uint8]
    """In host memory."""
    code: Any
    """The position of each string of the arrays, in order, among the distinct ones: int32, on the device."""


@dataclass(frozen=True)
class DeviceStrings:
    """Strings in device memory. String i is content[offsets[i] : offsets[i + 1]]. `len()` is their number."""

    offsets: Any
    """[strings + 1] int64"""
    content: Any

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def nbytes(self) -> int:
        """Bytes of the strings and their offsets."""
        return int(self.offsets.nbytes + self.content.nbytes)

    def call(self, function: str, threads: int, *arguments: Any) -> None:
        """Run a kernel of strings.cu."""
        kernel = source.kernel(f"arrays/strings:{function}")
        kernel((source.grid(threads, _BLOCK),), (_BLOCK,), (self.offsets, self.content, *arguments))


def to_device(offsets: LongArray, content: NDArray[np.uint8]) -> DeviceStrings | None:
    """Strings of host memory, copied to the device; None if there is no room for them."""
    start = int(offsets[0])
    try:
        placed = DeviceStrings(transfer.to_device(offsets), transfer.to_device(content[start : int(offsets[-1])]))
    except cupy.cuda.memory.OutOfMemoryError:
        return None
    if start:
        placed.offsets[:] -= np.int64(start)
    return placed


def to_host(texts: DeviceStrings) -> tuple[LongArray, NDArray[np.uint8]]:
    """The offsets and the bytes of the strings in host memory."""
    return transfer.to_host(texts.offsets), transfer.to_host(texts.content)


def distinct_strings(columns: Sequence[DeviceStrings]) -> DistinctStrings | None:
    """The distinct strings of at least one column.

    Takes about 60 bytes of memory for each string beside its own. None if the device has no room for that, or for 2^31
    strings or more.
    """
    strings = sum(map(len, columns))
    if not strings:
        return DistinctStrings(np.zeros(1, np.int64), np.zeros(0, np.uint8), cupy.zeros(0, np.int32))
    if strings >= 2**31:
        return None
    try:
        texts = _joined(columns, strings)
        same = _find_same(texts)
        which = _sorted(texts, cupy.flatnonzero(same == cupy.arange(strings, dtype=np.int32)).astype(np.int32))
        rank = cupy.empty(strings, np.int32)
        rank[which] = cupy.arange(len(which), dtype=np.int32)
        return DistinctStrings(*to_host(_gathered(texts, which)), rank[same])
    except cupy.cuda.memory.OutOfMemoryError:
        return None


def _joined(columns: Sequence[DeviceStrings], strings: int) -> DeviceStrings:
    """The strings of all columns, one after the other."""
    if len(columns) == 1:
        return columns[0]
    offsets = cupy.zeros(strings + 1, np.int64)
    first = filled = 0
    for column in columns:
        own = offsets[first + 1 : first + len(column) + 1]
        own[:] = column.offsets[1:]
        if filled:
            own += np.int64(filled)
        first, filled = first + len(column), filled + len(column.content)
    return DeviceStrings(offsets, cupy.concatenate([column.content for column in columns]))


def _find_same(texts: DeviceStrings) -> Any:
    """For each string a string that equals it, the same for all that are equal: int32 [strings].

    The hashes have a random seed, so that no input is slow by intent.
    """
    slots = cupy.full(2 << len(texts).bit_length(), _NONE, np.uint64)
    same, seed = cupy.empty(len(texts), np.int32), np.uint64(secrets.randbits(64))
    texts.call("find_same", len(texts), np.uint32(len(texts)), slots, np.uint64(len(slots) - 1), seed, same)
    return same


def _sorted(texts: DeviceStrings, which: Any) -> Any:
    """The strings `which`, all different, in order."""
    head = transfer.wait_for(texts.offsets[which[0] : which[0] + 2])
    lengths = cupy.array([head[1] - head[0], 0], np.uint64)
    texts.call("measure", len(which), which, np.uint32(len(which)), lengths)
    common, longest = map(int, transfer.wait_for(lengths))
    depths = range(common, max(longest, common + 1), STRING_DIGIT)
    if len(depths) > MAX_PASSES:
        from ...cpu.arrays.strings import sort_strings  # loads Numba

        return which[transfer.to_device(sort_strings(*to_host(_gathered(texts, which)))[0])]
    keys = cupy.empty(len(which), np.uint64)
    for depth in reversed(depths):
        texts.call("read_keys", len(which), which, np.uint32(len(which)), np.int64(depth), keys)
        which = which[cupy.argsort(keys)]
    return which


def _gathered(texts: DeviceStrings, which: Any) -> DeviceStrings:
    """The strings `which`, in this order."""
    starts = cupy.zeros(len(which) + 1, np.int64)
    cupy.cumsum(texts.offsets[which + 1] - texts.offsets[which], out=starts[1:])
    content = cupy.empty(int(transfer.wait_for(starts[-1:])[0]), np.uint8)
    texts.call("copy_strings", 32 * len(which), which, np.uint32(len(which)), starts, content)
    return DeviceStrings(starts, content)
