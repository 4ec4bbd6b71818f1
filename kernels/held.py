"""How much memory a value type holds: Dask asks before it places tasks, moves results or spills them."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any


class Held:
    """Base of dataclasses that hold arrays. `sys.getsizeof` counts what these take, wherever they lie."""

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + sum(_size(value) for value in self._values())

    @property
    def on_device(self) -> bool:
        """Whether an array of it lies in a GPU's memory."""
        return any(_on_device(value) for value in self._values())

    def _values(self) -> Iterator[Any]:
        return (getattr(self, field.name) for field in fields(self))  # type: ignore[arg-type]  # dataclasses only


def _size(value: Any) -> int:
    held = getattr(value, "nbytes", None)
    if held is not None:
        return int(held)
    if isinstance(value, Mapping):
        return sum(map(_size, value.values()))
    return sys.getsizeof(value)


def _on_device(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_on_device, value.values()))
    return value.on_device if isinstance(value, Held) else hasattr(value, "__cuda_array_interface__")
