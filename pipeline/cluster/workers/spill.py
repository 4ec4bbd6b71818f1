"""Results in files: a worker keeps the arrays of its results in its scratch folder and maps them for its tasks.

The worker then has in memory only what its running tasks read, whatever it keeps. An array is written once: a result
with a whole array of an argument refers to that array's file. A file is removed with the last result that refers to it.
Dask counts such results as empty and spills none of them. For another worker a result is read here and written there.
Where all workers and the client share a disk, a hard link is sent instead.

A link is never used if the spilled message with it is not read again, or if its receiver is lost. A worker removes such
a link when the link is old and the worker makes another one, at the end of the last run, or at its own end.
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

from ....kernels.runtime.sizes import SizedArrays
from ....tasks.errors import ClusterLost, OutOfRoom

LEAST_BYTES = 2**13
"""Smaller arrays stay in memory, as copies: a view of a message would keep the whole message in memory."""

LINK_SECONDS = 300
"""An older link may be removed. A receiver that needs it later takes the sender for lost, and Dask fetches it again."""

_folders: list[str] = []
"""Scratch folder of this process's worker, once for each run with results in files.

Threads that receive arrays from other workers find it here: they cannot ask for their worker.
"""
_spilled_at: dict[str, float | Literal[False]] = {}
"""Scratch folder → the share of memory at which its worker spills without such a run; False for never."""

_swept_at: dict[str, float] = {}
"""Scratch folder → time of the last search for old links."""

T = TypeVar("T")


class SpillToFiles(WorkerPlugin):
    """Has a worker keep the arrays that it receives in its own folder, from before its first task to the run's end."""

    def __init__(self, run_id: str) -> None:
        self.name = f"edgemill-files-{run_id}"

    def setup(self, worker: Worker) -> None:
        """Called on every worker, also on those that join later."""
        folder, memory = worker.local_directory, worker.memory_manager
        if folder not in _folders:  # Dask would write results in files again when a large task fills the memory
            _spilled_at[folder], memory.memory_spill_fraction = memory.memory_spill_fraction, False
        _folders.append(folder)
        open_many()

    def teardown(self, worker: Worker) -> None:
        """Called when the run ends, or the worker."""
        folder = worker.local_directory
        _folders.remove(folder)
        if folder in _folders:
            return
        worker.memory_manager.memory_spill_fraction = _spilled_at.pop(folder)
        _swept_at.pop(folder, None)
        _sweep(folder, float("inf"))


def open_many() -> None:
    """Raise this process's limit of open files to the most that is allowed. A mapped file counts as open."""
    with suppress(OSError, ValueError):
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def check_limits(error: BaseException) -> None:
    """Raises OutOfRoom in place of an error that no more files can be open at once, or mapped."""
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
    """An array in a file of its own. A worker that receives the array also keeps it in a file, in its own folder."""

    def __init__(self, path: str, dtype: np.dtype[Any], shape: tuple[int, ...], linked: bool) -> None:
        self.path, self.dtype, self.shape = path, dtype, shape
        self._linked = linked
        weakref.finalize(self, _remove, path)

    @classmethod
    def write(cls, array: NDArray[Any], folder: str, linked: bool) -> Self:
        """A new file in `folder`. A receiver gets a link to it if it is `linked`, otherwise a copy.

        Raises OSError if it cannot be written; no file is left then.
        """
        handle, path = tempfile.mkstemp(prefix="array-", dir=folder)
        made = cls(path, array.dtype, array.shape, linked)
        with open(handle, "wb", buffering=0) as file:
            unwritten = memoryview(np.ascontiguousarray(array).view(np.uint8).data)
            while unwritten:
                unwritten = unwritten[file.write(unwritten) :]
        return made

    def map(self) -> NDArray[Any]:
        """The array. Writes to it do not change the file.

        Raises ClusterLost if the file was removed, OutOfRoom if no more files can be open or mapped.
        """
        try:
            with open(self.path, "rb") as file:
                content = _Map(file.fileno(), 0, access=mmap.ACCESS_COPY)
        except FileNotFoundError as error:
            raise ClusterLost("a worker died before another one fetched its results; run again") from error
        except OSError as error:
            check_limits(error)
            raise
        content.file = self
        return np.ndarray(self.shape, self.dtype, content)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        if not self._linked:
            return _received_array, (self.map(),)
        folder = os.path.dirname(self.path)
        now = time.time()
        if now - _swept_at.setdefault(folder, now) > LINK_SECONDS:
            _swept_at[folder] = now
            _sweep(folder, now - LINK_SECONDS)
        link = tempfile.mktemp(prefix="sent-", dir=folder)
        os.link(self.path, link)
        return _received_link, (link, self.dtype, self.shape)


def _sweep(folder: str, before: float) -> None:
    """Remove the links in a scratch folder whose files got no other link since the time `before`."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith("sent-"):
                with suppress(FileNotFoundError):  # a receiver has taken it meanwhile
                    if entry.stat(follow_symlinks=False).st_ctime < before:
                        os.unlink(entry.path)


def _received_link(link: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> ArrayFile:
    """The array of a link that another worker of this machine sent, moved to the folder of this worker.

    Raises OSError if the link was removed with its worker. Dask then takes that worker for lost and runs its tasks
    again.
    """
    path = link
    for folder in _folders[:1]:
        path = tempfile.mktemp(prefix="array-", dir=folder)
        os.rename(link, path)
    return ArrayFile(path, dtype, shape, linked=True)


def offer() -> str:
    """Task: make a file for `can_link` of other workers; returns its path."""
    handle, path = tempfile.mkstemp(prefix="offer-", dir=get_worker().local_directory)
    os.close(handle)
    return path


def can_link(paths: Sequence[str]) -> bool:
    """Task: whether this worker can read all these files and link to them."""
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
    """Task: remove the files of offers that this worker can reach."""
    for path in paths:
        _remove(path)


class SmallArray:
    """A small array in memory of its own. A worker that receives the array also keeps it as a SmallArray."""

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array if array.base is None else array.copy()

    @property
    def nbytes(self) -> int:
        """Bytes of the array."""
        return self._array.nbytes

    def map(self) -> NDArray[Any]:
        """The array."""
        return self._array

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _received_array, (self._array,)


class _Map(mmap.mmap):
    """The memory of a mapped array. Keeps its file from being removed."""

    file: ArrayFile


def _remove(path: str) -> None:
    with suppress(OSError):  # it may have been removed with the worker's folder
        os.unlink(path)


def _received_array(array: NDArray[Any]) -> NDArray[Any] | ArrayFile | SmallArray:
    """An array that was received, in a file if this process is a worker with results in files."""
    for folder in _folders[:1]:
        return _in_file(array, folder, linked=False)
    return array


def mapped(value: T) -> T:
    """The value with its arrays mapped, if they lie in files. Looks into dataclasses, mappings, lists and tuples."""
    found: T = with_leaves(value, once(lambda leaf: leaf.map() if isinstance(leaf, ArrayFile | SmallArray) else leaf))
    return found


def put_in_files(value: T, linked: bool = False) -> T:
    """The value with its large arrays in files of this worker. Arrays for which its disk has no room stay in memory.

    With `linked`, all processes that receive it can reach this worker's folder, and get links. Raises OutOfRoom if no
    more files can be open.
    """
    folder = get_worker().local_directory
    found: T = with_leaves(
        value, once(lambda leaf: _in_file(leaf, folder, linked) if isinstance(leaf, np.ndarray) else leaf)
    )
    return found


def once(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The function with its results remembered by object: an array that occurs twice is changed once."""
    seen: dict[int, Any] = {}

    def changed(leaf: Any) -> Any:
        if id(leaf) not in seen:
            seen[id(leaf)] = change(leaf)
        return seen[id(leaf)]

    return changed


def _in_file(array: NDArray[Any], folder: str, linked: bool) -> NDArray[Any] | ArrayFile | SmallArray:
    base: Any = array.base
    if isinstance(base, _Map) and array.nbytes == len(base) and array.dtype == base.file.dtype:
        return base.file
    if not all(array.strides):  # one value repeated, which takes no memory
        return array
    if array.nbytes < LEAST_BYTES:
        return SmallArray(array)
    try:
        return ArrayFile.write(array, folder, linked)
    except OSError as error:
        check_limits(error)
        return array


def with_leaves(value: Any, change: Callable[[Any], Any]) -> Any:
    """The value with changed arrays in its fields and items; the value itself if no array changes.

    Looks into dataclasses of arrays, mappings, lists and tuples.
    """
    if isinstance(value, SizedArrays):
        found = {field.name: getattr(value, field.name) for field in fields(value)}  # type: ignore[arg-type]
        other = {name: new for name, old in found.items() if (new := with_leaves(old, change)) is not old}
        return replace(value, **other) if other else value  # type: ignore[type-var]
    if isinstance(value, Mapping):
        items = {key: with_leaves(old, change) for key, old in value.items()}
        return items if any(items[key] is not old for key, old in value.items()) else value
    if isinstance(value, list | tuple):
        parts = [with_leaves(old, change) for old in value]
        if all(new is old for new, old in zip(parts, value, strict=True)):
            return value
        return value._make(parts) if hasattr(value, "_make") else type(value)(parts)
    return change(value)
