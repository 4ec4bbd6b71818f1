"""Lowered counts of the GPU as packets, in the format of `kernels.cpu.peeling.changes`; see changes.cu."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cupy
import numpy as np

from ..filters import HEADER, Packet, Words
from .arrays.transfer import to_device, wait_for
from .rows import starts_of
from .runtime import source

_BLOCK = 256
_BITS = 64
"""Places are whole words of so many bits."""


class Changes:
    """See `kernels.changes`."""

    def __init__(self, count: Any, amounts: Any) -> None:
        self.count = count
        self.amounts = amounts
        """int32 [edges] by how much counts are lowered so far."""

    def pack(self, first: int, stop: int) -> tuple[Words, int]:
        """See `kernels.filters.Changes`."""
        own = self.amounts[first:stop]
        size = -(-len(own) // _BITS) * _BITS // 32
        places, ones, sums = cupy.empty(size, np.uint32), cupy.empty(size, np.int32), cupy.zeros(2, np.uint64)
        blocks = source.grid(max(32 * size, 1), _BLOCK)
        edges, words = np.uint32(len(own)), np.uint32(size)
        source.kernel("changes:mark")((blocks,), (_BLOCK,), (own, np.uint32(first), edges, words, places, ones, sums))
        starts = starts_of(ones)
        total, most = wait_for(sums).tolist()
        width, set_bits = 1 if most < 256 else 4, int(starts[-1])
        packed = cupy.empty(HEADER + size + -(-set_bits * width // 4), np.uint32)
        packed[HEADER : HEADER + size] = places
        if set_bits:
            packed[-1] = 0
            listed = packed[HEADER + size :]
            arguments = (own, edges, words, places, starts, np.int32(width), listed)
            source.kernel("changes:write")((blocks,), (_BLOCK,), arguments)
        packed[:HEADER] = cupy.asarray(np.array([True, width, set_bits, size], np.uint32))
        return packed, total

    def collect(self, words: Words, first: int) -> int:
        """See `kernels.filters.Changes`."""
        return _lower(self.amounts, words, first, -1)

    def apply(self, words: Words, first: int) -> int:
        """See `kernels.filters.Changes`."""
        return _lower(self.count, words, first, 1)

    def weigh(self, first: int, stop: int) -> int:
        """See `kernels.filters.PlainChanges`."""
        own, total = self.amounts[first:stop], cupy.zeros(1, np.uint64)
        arguments = (own, np.uint32(first), np.uint32(len(own)), total)
        source.kernel("changes:weigh")((source.grid(max(len(own), 1), _BLOCK, 8),), (_BLOCK,), arguments)
        return int(wait_for(total)[0])

    def subtract(self, parts: Sequence[tuple[int, Any]]) -> int:
        """See `kernels.filters.PlainChanges`."""
        total = cupy.zeros(1, np.uint64)
        for first, amounts in parts:
            size = len(amounts)
            arguments = (self.count[first : first + size], amounts, np.uint32(first), np.uint32(size), total)
            source.kernel("changes:subtract")((source.grid(max(size, 1), _BLOCK, 8),), (_BLOCK,), arguments)
        return int(wait_for(total)[0])


def _lower(values: Any, packed: Words, first: int, sign: int) -> int:
    """Lower values by the amounts of a packed range of edges, `sign` times each; returns the weighted sum of these."""
    dense, width, size, *_ = found = Packet.of(packed, first, len(values))
    if not dense:
        raise ValueError(f"{len(packed)} words are no packet of {size} lowered counts of a range")
    if not size:
        return 0
    words, sums, length = to_device(packed), cupy.zeros(1, np.uint64), len(found.places)
    places, ones = words[HEADER : HEADER + length], cupy.empty(length, np.int32)
    source.kernel("changes:count")((source.grid(length, _BLOCK),), (_BLOCK,), (places, np.uint32(length), ones))
    starts = starts_of(ones)
    if int(starts[-1]) != size:
        raise ValueError(f"{int(starts[-1])} edges are marked in a packet of {size} lowered counts")
    listed, own = words[HEADER + length :], (values[first:], np.uint32(first), np.uint32(length))
    arguments = (*own, places, starts, np.int32(width), listed, np.int32(sign), sums)
    source.kernel("changes:lower")((source.grid(32 * length, _BLOCK),), (_BLOCK,), arguments)
    return int(wait_for(sums)[0])
