"""Results of tasks in the memory of a GPU, and how they move to the host's memory and back.

This is for the worker in this process. Worker processes have the store of dask-cuda, which pickles what it moves, with
one thread, and takes longer to import than a run needs to start.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence, Sized
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from distributed import get_worker
from distributed.sizeof import safe_sizeof
from distributed.spill import SpillBuffer
from numpy.typing import NDArray
from zict import Buffer, Func

from ....kernels.runtime.sizes import on_device
from ....kernels.runtime.threads import cores
from .spill import once, with_leaves


@dataclass(frozen=True)
class MovedArray:
    """An array of a result that was in a GPU's memory, in host memory."""

    values: NDArray[Any]

    @property
    def nbytes(self) -> int:
        """Bytes of the array."""
        return self.values.nbytes


class DeviceResults(MutableMapping[str, Any]):
    """The results that a worker with a GPU keeps, by key.

    Results in the GPU's memory move to host memory when they fill `device_memory_limit` bytes, and results in host
    memory to files below the worker's folder when they fill `memory_limit` bytes: in each case those that were not used
    for the longest time. A result that is read comes back.
    """

    def __init__(self, worker_local_directory: str, *, device_memory_limit: int, memory_limit: int) -> None:
        self._host = SpillBuffer(str(Path(worker_local_directory, "storage")), target=memory_limit)
        moved: Func[str, Any, Any] = Func(to_host, to_device, cast("MutableMapping[str, Any]", self._host))
        self._device: Buffer[str, Any] = Buffer({}, moved, device_memory_limit, weight=_weight)
        """All results. The slow part of this buffer has the results in host memory"""
        self._from_device: set[str] = set()

    def __getitem__(self, key: str) -> Any:
        return self._device[key] if key in self._from_device else self._host[key]

    def __setitem__(self, key: str, value: Any) -> None:
        if key in self._device:
            del self[key]
        if on_device(value):
            self._from_device.add(key)
            self._device[key] = value
        else:
            self._host[key] = value

    def __delitem__(self, key: str) -> None:
        del self._device[key]
        self._from_device.discard(key)

    def __contains__(self, key: object) -> bool:
        return key in self._device

    def __iter__(self) -> Iterator[str]:
        return iter(self._device)

    def __len__(self) -> int:
        return len(self._device)

    @property
    def fast(self) -> Sized:
        """The results in host memory, which Dask asks for before it calls `evict`."""
        return self._host.fast

    def evict(self) -> int:
        """Move a result from host memory to a file, as Dask does when the process takes too much. Returns its bytes."""
        return self._host.evict()

    def move_to_host(self, key: str) -> None:
        """Move a result from the GPU's memory to the host's, if it is there."""
        with suppress(KeyError):  # it is in the host's memory, or was released
            self._device.fast.evict(key)


def _weight(key: str, value: Any) -> int:
    return int(safe_sizeof(value))


def to_host(value: Any) -> Any:
    """A result with a MovedArray in place of each array in a GPU's memory. An array that occurs twice is moved once."""
    from ....kernels.gpu.arrays.transfer import to_host_by_threads

    threads = cores()

    def moved(leaf: Any) -> Any:
        return MovedArray(to_host_by_threads(leaf, threads)) if hasattr(leaf, "__cuda_array_interface__") else leaf

    return with_leaves(value, once(moved))


def to_device(value: Any) -> Any:
    """The result from which `to_host` made this value."""
    from ....kernels.gpu.arrays.transfer import to_device_by_threads

    threads = cores()

    def back(leaf: Any) -> Any:
        return to_device_by_threads(leaf.values, threads) if isinstance(leaf, MovedArray) else leaf

    return with_leaves(value, once(back))


def move_to_host(keys: Sequence[str]) -> None:
    """Task: move the results with these keys from the GPU's memory to the host's. A task that needs one gets it back.

    Does nothing on a worker that keeps its results in another way.
    """
    results = get_worker().data
    if isinstance(results, DeviceResults):
        for key in keys:
            results.move_to_host(key)
