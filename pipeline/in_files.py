"""Results that lie in files: a worker keeps the arrays of its results in its scratch folder and maps them for a task.

So what a worker has in memory is what its running tasks look at, however much it keeps. An array is written once: a
result that has an array of an argument, whole, refers to its file. A file goes with the last result that refers to it.
Dask sees results of no size, and has nothing to spill; one that goes to another worker is read here and written there.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import fields, replace
from typing import Any, TypeVar

import numpy as np
from distributed import get_worker
from numpy.typing import NDArray

from ..kernels.held import Held

__all__ = ["ArrayFile", "SmallArray", "mapped", "put_in_files"]

LEAST_BYTES = 2**13
"""Smaller arrays stay in memory, each by itself: as a part of a message it would keep all of that."""

_folder: str | None = None
"""Scratch folder of this process's worker, once one has kept something there. Arrays that come from others are taken in
by threads that know of no worker.
"""

T = TypeVar("T")


class ArrayFile:
    """An array in a file of its own. Sent to another worker it is an array in a file there."""

    def __init__(self, array: NDArray[Any], folder: str) -> None:
        """Raises OSError if it cannot be written, and leaves no file then."""
        self.dtype, self.shape = array.dtype, array.shape
        handle, self.path = tempfile.mkstemp(prefix="array-", dir=folder)
        weakref.finalize(self, _remove, self.path)
        with open(handle, "wb", buffering=0) as file:
            rest = memoryview(np.ascontiguousarray(array).view(np.uint8).data)
            while rest:
                rest = rest[file.write(rest) :]

    def map(self) -> NDArray[Any]:
        """The array; it may be written to, and the file stays as it is."""
        with open(self.path, "rb") as file:
            content = _Map(file.fileno(), 0, access=mmap.ACCESS_COPY)
        content.file = self
        return np.ndarray(self.shape, self.dtype, content)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _arrived, (self.map(),)


class SmallArray:
    """An array in memory of its own. Sent to another worker it is that there."""

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array if array.base is None else array.copy()

    @property
    def nbytes(self) -> int:
        """What it takes."""
        return self._array.nbytes

    def map(self) -> NDArray[Any]:
        """The array."""
        return self._array

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _arrived, (self._array,)


class _Map(mmap.mmap):
    """The memory of a mapped array."""

    file: ArrayFile


def _remove(path: str) -> None:
    with suppress(OSError):  # with the worker's folder, perhaps
        os.unlink(path)


def _arrived(array: NDArray[Any]) -> NDArray[Any] | ArrayFile | SmallArray:
    """What was sent, in a file if this is a worker."""
    return array if _folder is None else _kept(array, _folder)


def mapped(value: T) -> T:
    """The same, or one like it whose arrays are mapped where they lie in files."""
    found: T = _with_leaves(value, _once(lambda leaf: leaf.map() if isinstance(leaf, ArrayFile | SmallArray) else leaf))
    return found


def put_in_files(value: T) -> T:
    """One like it whose large arrays lie in files of this worker; what cannot be written stays in memory."""
    global _folder
    _folder = folder = get_worker().local_directory
    found: T = _with_leaves(value, _once(lambda leaf: _kept(leaf, folder) if isinstance(leaf, np.ndarray) else leaf))
    return found


def _once(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """What was one array stays one."""
    seen: dict[int, Any] = {}

    def changed(leaf: Any) -> Any:
        if id(leaf) not in seen:
            seen[id(leaf)] = change(leaf)
        return seen[id(leaf)]

    return changed


def _kept(array: NDArray[Any], folder: str) -> NDArray[Any] | ArrayFile | SmallArray:
    base: Any = array.base
    if isinstance(base, _Map) and array.nbytes == len(base) and array.dtype == base.file.dtype:
        return base.file
    if not all(array.strides):  # a repeated value takes no room
        return array
    if array.nbytes < LEAST_BYTES:
        return SmallArray(array)
    try:
        return ArrayFile(array, folder)
    except OSError:
        return array


def _with_leaves(value: Any, change: Callable[[Any], Any]) -> Any:
    """The value with other arrays in its fields and items; itself where none is another."""
    if isinstance(value, Held):
        found = {field.name: getattr(value, field.name) for field in fields(value)}  # type: ignore[arg-type]
        other = {name: new for name, old in found.items() if (new := _with_leaves(old, change)) is not old}
        return replace(value, **other) if other else value  # type: ignore[type-var]
    if isinstance(value, Mapping):
        items = {key: _with_leaves(old, change) for key, old in value.items()}
        return items if any(items[key] is not old for key, old in value.items()) else value
    if isinstance(value, list | tuple):
        parts = [_with_leaves(old, change) for old in value]
        if all(new is old for new, old in zip(parts, value, strict=True)):
            return value
        return value._make(parts) if hasattr(value, "_make") else type(value)(parts)
    return change(value)
