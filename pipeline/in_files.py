"""Results that lie in files: a worker keeps the arrays of its results in its scratch folder and maps them for a task.

So what a worker has in memory is what its running tasks look at, however much it keeps. An array is written once: a
result that has an array of an argument, whole, refers to its file. A file goes with the last result that refers to it.
Dask sees results of no size, and has nothing to spill. One that goes to another worker is read here and written there;
where all workers share a disk, and the client with them, it is a link that goes.

A link that nobody takes, as what was spilled with it was never read again or the one that was to get it is lost, goes
when it is old and its worker makes another, or with the run that made it, or its worker; of runs at once, the last one.
"""

from __future__ import annotations

import errno
import mmap
import os
import resource
import tempfile
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from typing import Any, Literal, Self, TypeVar

import numpy as np
from distributed import Worker, get_worker
from distributed.diagnostics.plugin import WorkerPlugin
from numpy.typing import NDArray

from ..kernels.held import Held
from ..tasks.errors import ClusterLost, OutOfRoom

__all__ = [
    "ArrayFile",
    "FilesOfRun",
    "SmallArray",
    "can_link",
    "check_limits",
    "mapped",
    "offer",
    "open_many",
    "put_in_files",
    "withdraw",
]

LEAST_BYTES = 2**13
"""Smaller arrays stay in memory, each by itself: as a part of a message it would keep all of that."""

LINK_SECONDS = 300
"""A link that is older is nobody's; who comes for it all the same takes the sender for lost, and asks again."""

_folders: list[str] = []
"""Scratch folder of this process's worker, once for each run that keeps results in files. Arrays that come from others
are taken in by threads that know of no worker.
"""
_spilled_at: dict[str, float | Literal[False]] = {}
"""Scratch folder → the share of memory from which its worker spills while no such run is there."""

_swept_at: dict[str, float] = {}
"""Scratch folder → when it was last looked through for old links."""

T = TypeVar("T")


class FilesOfRun(WorkerPlugin):
    """Has a worker keep what it gets in its own folder, from before its first task to the end of the run."""

    def __init__(self, run_id: str) -> None:
        self.name = f"edgemill-files-{run_id}"

    def setup(self, worker: Worker) -> None:
        """On every worker, and on those that come later."""
        folder, memory = worker.local_directory, worker.memory_manager
        if folder not in _folders:  # what lies in files would be written once more when a large task fills the memory
            _spilled_at[folder], memory.memory_spill_fraction = memory.memory_spill_fraction, False
        _folders.append(folder)
        open_many()

    def teardown(self, worker: Worker) -> None:
        """When the run ends, or the worker."""
        folder = worker.local_directory
        _folders.remove(folder)
        if folder in _folders:
            return
        worker.memory_manager.memory_spill_fraction = _spilled_at.pop(folder)
        _swept_at.pop(folder, None)
        _sweep(folder, float("inf"))


def open_many() -> None:
    """Let this process open as many files at once as it may: each that is mapped counts as open."""
    with suppress(OSError, ValueError):
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def check_limits(error: BaseException) -> None:
    """Raises OutOfRoom in place of an error that says that no more files can be open at once, or mapped."""
    match error:
        case OSError(errno=errno.EMFILE | errno.ENFILE):
            raise OutOfRoom(
                f"too many files are open at once ({error}): raise the limit where workers are started (ulimit -n), or "
                "use fewer partitions (partitioning.count=…)"
            ) from error
        case OSError(errno=errno.ENOMEM):
            raise OutOfRoom(
                f"no more memory can be mapped ({error}): raise the limits of the workers (ulimit -v, "
                "vm.max_map_count), or use fewer threads (cluster.threads_per_worker=…)"
            ) from error


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
        """The array; it may be written to, and the file stays as it is.

        Raises ClusterLost if it is gone, OutOfRoom if no more files can be open or mapped.
        """
        try:
            with open(self.path, "rb") as file:
                content = _Map(file.fileno(), 0, access=mmap.ACCESS_COPY)
        except FileNotFoundError as error:
            raise ClusterLost("a worker is lost, and with it what another was to get from it; run again") from error
        except OSError as error:
            check_limits(error)
            raise
        content.file = self
        return np.ndarray(self.shape, self.dtype, content)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        if not self._linked:
            return _arrived, (self.map(),)
        folder = os.path.dirname(self.path)
        now = time.time()
        if now - _swept_at.setdefault(folder, now) > LINK_SECONDS:
            _swept_at[folder] = now
            _sweep(folder, now - LINK_SECONDS)
        link = tempfile.mktemp(prefix="sent-", dir=folder)
        os.link(self.path, link)
        return _taken, (link, self.dtype, self.shape)


def _sweep(folder: str, before: float) -> None:
    """Remove the links of a scratch folder to files that nobody linked to since `before`."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith("sent-"):
                with suppress(FileNotFoundError):  # taken meanwhile
                    if entry.stat(follow_symlinks=False).st_ctime < before:
                        os.unlink(entry.path)


def _taken(link: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> ArrayFile:
    """What was sent by a worker of this machine, in the folder of this one.

    Raises OSError if that worker has gone meanwhile: to Dask it is then lost, and what it held is made again.
    """
    path = link
    for folder in _folders[:1]:
        path = tempfile.mktemp(prefix="array-", dir=folder)
        os.rename(link, path)
    return ArrayFile(path, dtype, shape, linked=True)


def offer() -> str:
    """Task: a file that others are to link to, if they can."""
    handle, path = tempfile.mkstemp(prefix="offer-", dir=get_worker().local_directory)
    os.close(handle)
    return path


def can_link(paths: Sequence[str]) -> bool:
    """Task: whether this worker can read all these files, and link to them."""
    for path in paths:
        if not os.access(path, os.R_OK):
            return False
        link = tempfile.mktemp(prefix="link-", dir=get_worker().local_directory)
        try:
            os.link(path, link)
        except OSError:
            return False
        os.unlink(link)
    return True


def withdraw(paths: Sequence[str]) -> None:
    """Task: remove those of the offers that are this worker's, or within its reach."""
    for path in paths:
        _remove(path)


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
    for folder in _folders[:1]:
        return _kept(array, folder, linked=False)
    return array


def mapped(value: T) -> T:
    """The same, or one like it whose arrays are mapped where they lie in files."""
    found: T = _with_leaves(value, _once(lambda leaf: leaf.map() if isinstance(leaf, ArrayFile | SmallArray) else leaf))
    return found


def put_in_files(value: T, linked: bool = False) -> T:
    """One like it whose large arrays lie in files of this worker; what finds no room on its disk stays in memory.

    With `linked` all processes that get it reach this worker's folder, and no array travels. Raises OutOfRoom if no
    more files can be open.
    """
    folder = get_worker().local_directory
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
    except OSError as error:
        check_limits(error)
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
