"""Where large arrays that are rarely touched lie: in memory, or wherever else a caller wants them."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


class Room(Protocol):
    """Gives arrays."""

    def array(self, length: int, dtype: type[Any]) -> NDArray[Any]:
        """A 1-D array that may be written, with any content."""
        ...

    def at_random(self, array: NDArray[Any]) -> None:
        """An array that this room gave will be read here and there from now on."""
        ...


class _Memory:
    def array(self, length: int, dtype: type[Any]) -> NDArray[Any]:
        """See `Room.array`."""
        return np.empty(length, dtype)

    def at_random(self, array: NDArray[Any]) -> None:
        """See `Room.at_random`."""


MEMORY: Room = _Memory()
"""Arrays of NumPy."""
