"""Memory of the host and of a GPU: which one a task's arrays go to, and how a value moves between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from enum import Enum
from typing import Any, TypeVar

import numpy as np

from .. import kernels

V = TypeVar("V", bound=Any)
"""A dataclass whose fields are arrays and plain values."""


class MemorySpace(Enum):
    """The memory that arrays are placed in. Tasks compute where their arrays lie."""

    HOST = "host"
    DEVICE = "device"
    """The GPU of this process."""

    def place(self, array: Any) -> Any:
        """The array in this memory; copied only if it is not there yet. Arrow's arrays stay in host memory."""
        if not isinstance(array, np.ndarray) and type(array).__module__.partition(".")[0] == "pyarrow":
            return array
        return kernels.to_host(array) if self is MemorySpace.HOST else kernels.to_device(array)


def place_like(like: Any, array: Any) -> Any:
    """The array in the memory that holds the array `like`."""
    space = MemorySpace.HOST if kernels.on_host(like) else MemorySpace.DEVICE
    return space.place(array)


def move_arrays(value: V, space: MemorySpace) -> V:
    """A copy of a dataclass with its arrays in `space`."""
    return map_arrays(value, space.place)


def map_arrays(value: V, change: Callable[[Any], Any]) -> V:
    """A copy of a dataclass with `change` applied to each of its arrays.

    Fields that share one array share the changed array.
    """
    arrays = {f.name: getattr(value, f.name) for f in fields(value) if hasattr(getattr(value, f.name), "nbytes")}
    changed = {id(array): change(array) for array in arrays.values()}
    return replace(value, **{name: changed[id(array)] for name, array in arrays.items()})
