"""Work of benchmarks in several processes, each with a device if there are enough."""

from __future__ import annotations

import multiprocessing as mp
import os
import queue
from collections.abc import Callable
from typing import Any

import cupy


def from_processes(work: Callable[..., None], count: int, *arguments: Any) -> list[Any]:
    """What `count` processes report, in any order.

    Each calls `work(rank, count, devices, *arguments, to)`, which puts one report into the queue `to`. Raises
    RuntimeError if one fails.
    """
    context = mp.get_context("spawn")
    to, devices = context.Queue(), cupy.cuda.runtime.getDeviceCount()
    shared = count, devices, *arguments, to
    processes = [context.Process(target=work, args=(rank, *shared), daemon=True) for rank in range(count)]
    for process in processes:
        process.start()
    found: list[Any] = []
    while len(found) < count:
        try:
            found.append(to.get(timeout=1))
        except queue.Empty:
            if any(process.exitcode for process in processes):
                raise RuntimeError("a process has failed") from None
    for process in processes:
        process.join()
    return found


def own_device(rank: int, devices: int) -> None:
    """Have this process use the device of its rank, before CUDA starts."""
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(str((rank + k) % devices) for k in range(devices))
