"""Memory of arrays: the size of dataclasses of arrays, and the interface of allocators of large arrays.

Dask asks for the size before it assigns tasks, moves or spills results.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


class Allocator(Protocol):
    """Allocates arrays."""

    def allocate(self, length: int, dtype: type[Any]) -> NDArray[Any]:
        """A writable 1-D array of `length` elements with undefined content."""
        ...

    def advise_random(self, array: NDArray[Any]) -> None:
        """Tell the system that an array of this allocator is read in random order from now on."""
        ...


class _NumpyAllocator:
    def allocate(self, length: int, dtype: type[Any]) -> NDArray[Any]:
        """See `Allocator.allocate`."""
        return np.empty(length, dtype)

    def advise_random(self, array: NDArray[Any]) -> None:
        """See `Allocator.advise_random`."""


NUMPY_ALLOCATOR: Allocator = _NumpyAllocator()
"""Allocates with `numpy.empty`."""


class SizedArrays:
    """Base class of dataclasses that contain arrays. `sys.getsizeof` counts the bytes of the arrays, in host or GPU
    memory, each once.
    """

    def __sizeof__(self) -> int:
        parts = {id(part): part for part in _parts(self._values())}  # fields may share an array
        return object.__sizeof__(self) + sum(map(_size, parts.values()))

    @property
    def on_device(self) -> bool:
        """Whether at least one array is in a GPU's memory."""
        return any(map(on_device, self._values()))

    def _values(self) -> Iterator[Any]:
        return (getattr(self, field.name) for field in fields(self))  # type: ignore[arg-type]  # dataclasses only


def _parts(values: Iterable[Any]) -> Iterator[Any]:
    """The values. Mappings and dataclasses of arrays are replaced by their own values."""
    for value in values:
        if isinstance(value, Mapping):
            yield from _parts(value.values())
        elif isinstance(value, SizedArrays) and type(value).__sizeof__ is SizedArrays.__sizeof__:
            yield from _parts(value._values())
        else:
            yield value


def _size(value: Any) -> int:
    nbytes = getattr(value, "nbytes", None)
    return sys.getsizeof(value) if nbytes is None else int(nbytes)


def on_device(value: Any) -> bool:
    """Whether a value has an array in a GPU's memory. Looks into mappings, lists, tuples and dataclasses of arrays."""
    if isinstance(value, Mapping):
        return any(map(on_device, value.values()))
    if isinstance(value, list | tuple):
        return any(map(on_device, value))
    return value.on_device if isinstance(value, SizedArrays) else hasattr(value, "__cuda_array_interface__")
