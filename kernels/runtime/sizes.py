"""Size in memory of dataclasses of arrays. Dask asks for it before it assigns tasks, moves or spills results."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any


class SizedArrays:
    """Base class of dataclasses that contain arrays. `sys.getsizeof` counts the bytes of the arrays, in host or GPU
    memory.
    """

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + sum(_size(value) for value in self._values())

    @property
    def on_device(self) -> bool:
        """Whether at least one array is in a GPU's memory."""
        return any(_on_device(value) for value in self._values())

    def _values(self) -> Iterator[Any]:
        return (getattr(self, field.name) for field in fields(self))  # type: ignore[arg-type]  # dataclasses only


def _size(value: Any) -> int:
    nbytes = getattr(value, "nbytes", None)
    if nbytes is not None:
        return int(nbytes)
    if isinstance(value, Mapping):
        return sum(map(_size, value.values()))
    return sys.getsizeof(value)


def _on_device(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_on_device, value.values()))
    return value.on_device if isinstance(value, SizedArrays) else hasattr(value, "__cuda_array_interface__")
