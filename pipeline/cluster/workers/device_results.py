"""Results of tasks in the memory of a GPU, and how they move to the host's memory and back.

dask-cuda keeps them, and moves some to the host when they fill the GPU. It would pickle them, with one thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from distributed import get_worker
from numpy.typing import NDArray

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


def device_store(worker_local_directory: str, *, device_memory_limit: int, memory_limit: int) -> Any:
    """The store of a worker in this process: dask-cuda's, with copies by all threads. Limits are in bytes."""
    from dask_cuda.device_host_file import DeviceHostFile

    store = DeviceHostFile(worker_local_directory, device_memory_limit=device_memory_limit, memory_limit=memory_limit)
    store.device_host_func.dump, store.device_host_func.load = to_host, to_device
    return store


def to_host(value: Any) -> Any:
    """A result with a MovedArray in place of each array in a GPU's memory. Arrays that are one array stay one."""
    from ....kernels.gpu.arrays.transfer import to_host_by_threads

    threads = cores()

    def moved(leaf: Any) -> Any:
        return MovedArray(to_host_by_threads(leaf, threads)) if hasattr(leaf, "__cuda_array_interface__") else leaf

    return with_leaves(value, once(moved))


def to_device(value: Any) -> Any:
    """The result of which `to_host` made this."""
    from ....kernels.gpu.arrays.transfer import to_device_by_threads

    threads = cores()

    def back(leaf: Any) -> Any:
        return to_device_by_threads(leaf.values, threads) if isinstance(leaf, MovedArray) else leaf

    return with_leaves(value, once(back))


def move_to_host(keys: Sequence[str]) -> None:
    """Task: move the results with these keys from the GPU's memory to the host's. A task that needs one gets it back.

    Does nothing where results do not move, as without dask-cuda.
    """
    store = getattr(get_worker().data, "device_buffer", None)
    on_device = getattr(store, "fast", None)
    if on_device is None:
        return
    for key in keys:
        with suppress(KeyError):  # it is in the host's memory, or was released
            on_device.evict(key)
