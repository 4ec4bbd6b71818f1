"""Results of tasks in the memory of a worker's GPU."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from distributed import get_worker


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
