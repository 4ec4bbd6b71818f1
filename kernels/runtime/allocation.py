"""Allocation of large arrays that are rarely read: as NumPy arrays in memory, or as a caller's allocator does it."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


class Allocator(Protocol):
    """Allocates arrays."""

    def allocate(self, length: int, dtype: type[Any]) -> NDArray[Any]:
        """A writable 1-D array of `length` elements with undefined content."""
        ...

    def advise_random(self, array: NDArray[Any]) -> None:
        """Announce that an array of this allocator is read in random order from now on."""
        ...


class _NumpyAllocator:
    def allocate(self, length: int, dtype: type[Any]) -> NDArray[Any]:
        """See `Allocator.allocate`."""
        return np.empty(length, dtype)

    def advise_random(self, array: NDArray[Any]) -> None:
        """See `Allocator.advise_random`."""


NUMPY_ALLOCATOR: Allocator = _NumpyAllocator()
"""Allocates with `numpy.empty`."""
