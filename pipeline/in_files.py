"""Results that lie in files: a worker keeps the arrays of its results in its scratch folder and maps them for a task.

So what a worker has in memory is what its running tasks look at, however much it keeps. An array is written once: a
result that has an array of an argument, whole, refers to its file. A file goes with the last result that refers to it.
Dask sees results of no size, and has nothing to spill. One that goes to another worker is read here and written there;
where all workers share a disk, and the client with them, it is a link that goes.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from typing import Any, Self, TypeVar

import numpy as np
from distributed import get_worker
from numpy.typing import NDArray

from ..kernels.held import Held
from ..tasks.errors import ClusterLost

__all__ = ["ArrayFile", "SmallArray", "can_link", "mapped", "offer", "put_in_files"]

LEAST_BYTES = 2**13
"""Smaller arrays stay in memory, each by itself: as a part of a message it would keep all of that."""

_folder: str | None = None
"""Scratch folder of this process's worker, once one has kept something there. Arrays that come from others are taken in
by threads that know of no worker.
"""

T = TypeVar("T")


class ArrayFile:
    """An array in a file of its own. Sent to another worker it is an array in a file there."""

    def __init__(self, path: str, dtype: np.dtype[Any], shape: tuple[int, ...], linked: bool) -> None:
        self.path, self.dtype, self.shape = path, dtype, shape
        self._linked = linked
        weakref.finalize(self, _remove, path)

    @classmethod
    def write(cls, array: NDArray[Any], folder: str, linked: bool) -> Self:
        """A new file in `folder`. When it is sent it is `linked` there, or else written.

        Raises OSError if it cannot be written, and leaves no file then.
        """
        handle, path = tempfile.mkstemp(prefix="array-", dir=folder)
        made = cls(path, array.dtype, array.shape, linked)
        with open(handle, "wb", buffering=0) as file:
            rest = memoryview(np.ascontiguousarray(array).view(np.uint8).data)
            while rest:
                rest = rest[file.write(rest) :]
        return made

    def map(self) -> NDArray[Any]:
        """The array; it may be written to, and the file stays as it is. Raises ClusterLost if it is gone."""
        try:
            with open(self.path, "rb") as file:
                content = _Map(file.fileno(), 0, access=mmap.ACCESS_COPY)
        except FileNotFoundError as error:
            raise ClusterLost("a worker is lost, and with it what another was to get from it; run again") from error
        content.file = self
        return np.ndarray(self.shape, self.dtype, content)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        if not self._linked:
            return _arrived, (self.map(),)
        link = tempfile.mktemp(prefix="sent-", dir=os.path.dirname(self.path))
        os.link(self.path, link)
        return _taken, (link, self.dtype, self.shape)


def _taken(link: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> ArrayFile:
    """What was sent by a worker of this machine, in the folder of this one.

    Raises OSError if that worker has gone meanwhile: to Dask it is then lost, and what it held is made again.
    """
    path = link
    if _folder is not None:
        path = tempfile.mktemp(prefix="array-", dir=_folder)
        os.rename(link, path)
    return ArrayFile(path, dtype, shape, linked=True)


def offer() -> str:
    """Task: a file that others are to link to, if they can."""
    handle, path = tempfile.mkstemp(prefix="offer-", dir=get_worker().local_directory)
    os.close(handle)
    return path


def can_link(paths: Sequence[str]) -> bool:
    """Task: whether this worker can link to all these files."""
    for path in paths:
        link = tempfile.mktemp(prefix="link-", dir=get_worker().local_directory)
        try:
            os.link(path, link)
        except OSError:
            return False
        os.unlink(link)
    return True


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
    return array if _folder is None else _kept(array, _folder, linked=False)


def mapped(value: T) -> T:
    """The same, or one like it whose arrays are mapped where they lie in files."""
    found: T = _with_leaves(value, _once(lambda leaf: leaf.map() if isinstance(leaf, ArrayFile | SmallArray) else leaf))
    return found


def put_in_files(value: T, linked: bool = False) -> T:
    """One like it whose large arrays lie in files of this worker; what cannot be written stays in memory.

    With `linked` all processes that get it reach this worker's folder, and no array travels.
    """
    global _folder
    _folder = folder = get_worker().local_directory
    found: T = _with_leaves(
        value, _once(lambda leaf: _kept(leaf, folder, linked) if isinstance(leaf, np.ndarray) else leaf)
    )
    return found


def _once(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """What was one array stays one."""
    seen: dict[int, Any] = {}

    def changed(leaf: Any) -> Any:
        if id(leaf) not in seen:
            seen[id(leaf)] = change(leaf)
        return seen[id(leaf)]

    return changed


def _kept(array: NDArray[Any], folder: str, linked: bool) -> NDArray[Any] | ArrayFile | SmallArray:
    base: Any = array.base
    if isinstance(base, _Map) and array.nbytes == len(base) and array.dtype == base.file.dtype:
        return base.file
    if not all(array.strides):  # a repeated value takes no room
        return array
    if array.nbytes < LEAST_BYTES:
        return SmallArray(array)
    try:
        return ArrayFile.write(array, folder, linked)
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
