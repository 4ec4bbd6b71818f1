"""GPU memory from which the other processes of a machine read what is sent to them."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np
from cupy.cuda import runtime

from ...runtime.peers import Address
from .peers import address_of, allocate_shared, reach

_WORD = np.dtype(np.uint32).itemsize
_MIN_WORDS = 2**19
"""2 MiB: the smallest unit of memory that the driver shares between processes."""


class Outbox:
    """Memory for `words` words, twice: what is sent in one exchange may be read while the next is written.

    It is allocated outside of CuPy's pool, because it is shared. Raises MemoryError.
    """

    def __init__(self, words: int) -> None:
        self.words = max(words, _MIN_WORDS)
        self._memory = allocate_shared(2 * self.words * _WORD)
        self.address = address_of(int(self._memory.ptr))
        """The address by which other processes open it."""

    def view(self, turn: int, first: int, count: int) -> Any:
        """uint32 [count], from word `first` of area `turn`, 0 or 1."""
        return _words(int(self._memory.ptr), turn * self.words + first, count, self)


class OpenOutbox:
    """The outbox of another group, or of a thread of this process. Raises ConnectionError if it cannot be reached."""

    def __init__(self, address: Address, words: int) -> None:
        self.words = words
        self._pointer, self._is_opened = reach(address)

    def view(self, turn: int, first: int, count: int) -> Any:
        """See `Outbox.view`. Reading it copies from the other GPU."""
        return _words(self._pointer, turn * self.words + first, count, self)

    def close(self) -> None:
        """Close the other process's memory. Views must not be used any more."""
        if self._is_opened:
            self._is_opened = False
            runtime.ipcCloseMemHandle(self._pointer)


def _words(pointer: int, first: int, count: int, owner: object) -> Any:
    # The device that reads is given, because CuPy refuses arrays of other devices; their memory is mapped here.
    device = runtime.getDevice()
    memory = cupy.cuda.UnownedMemory(pointer, (first + count) * _WORD, owner, device)
    return cupy.ndarray((count,), np.uint32, cupy.cuda.MemoryPointer(memory, first * _WORD))
