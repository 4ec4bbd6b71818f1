"""Slots of compact rows: keys and words in one array, or apart if the keys do not all fit the device.

kernels/cuda/compact/rows.cuh documents them.
"""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from ..streamed.pinned import PinnedArray

EMPTY = np.uint32(0xFFFFFFFF)
"""The key of a free slot."""
_VACANT = -(2**28) - 1
"""The word of a free slot; equal to word.cuh."""
_BOTH = np.uint64((_VACANT & 0xFFFFFFFF) << 32 | int(EMPTY))


class SlotsTogether:
    """Slots of buckets, four each, in one array: each word is beside its key."""

    apart = 0
    """The value of the macro APART of kernels that read these slots."""

    def __init__(self, buckets: int) -> None:
        """All slots are free."""
        self.both: Any = cupy.empty((4 * buckets, 2), np.uint32)
        self.clear()

    @property
    def arguments(self) -> tuple[Any, ...]:
        """Arguments of kernels: keys, words, keys in host memory, and the number of slots whose keys are there."""
        return self.both[:, 0], self.both[:, 1], 0, np.int64(0)

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        return int(self.both.nbytes)

    def clear(self) -> None:
        """Make all slots free."""
        self.both.view(np.uint64).fill(_BOTH)


class SlotsApart:
    """Slots of buckets, with the keys of the first buckets in mapped host memory and the others on the device."""

    apart = 1

    def __init__(self, buckets: int) -> None:
        """Only the words: all slots are free, and keys have no place yet."""
        self.words = cupy.empty(4 * buckets, np.int32)
        self.words.fill(_VACANT)
        self.near: Any = cupy.empty((0,), np.uint32)
        self.far: Any = self.near

    def place_keys(self, far: int) -> None:
        """The keys of the first `far` buckets get host memory, with undefined content. The others are free slots."""
        self.near = cupy.empty(len(self.words) - 4 * far, np.uint32)
        self.near.fill(EMPTY)
        self.far = PinnedArray.empty(4 * far, np.uint32).device

    @property
    def arguments(self) -> tuple[Any, ...]:
        """As for SlotsTogether."""
        return self.near, self.words, self.far, np.int64(len(self.far))

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        return int(self.words.nbytes + self.near.nbytes)
