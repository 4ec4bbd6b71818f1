"""How the tasks of a run are carried out: what the workers offer, which share a host, and what the plan decides."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

GPU = "GPU"
"""Resource of Dask workers that have a GPU, one each."""
WHOLE_GPU, PART_OF_GPU = 0.75, 2.0**-12
"""Amounts of the resource that tasks take if some workers have no GPU: a task that has a GPU to itself, and any other
task, so that it runs on a worker with a GPU.
"""
KERNEL_THREADS = "kernel_threads"
"""Resource of Dask workers started here: threads of a kernel, where these are more than tasks run at once."""

RESULTS_TOGETHER = 4
"""Most results of one worker from which one task takes parts, where no result is spilled. Four blocks or buckets of
integers, or the rows that they send, take less memory than reading or merging one of them does.
"""


@dataclass(frozen=True)
class Capacity:
    """What the workers offer."""

    workers: int
    threads: int
    """Threads of the smallest worker that run tasks."""
    memory_bytes: int
    """Memory of the smallest worker; 0 for no limit."""
    device_bytes: int = 0
    """Memory of the smallest GPU that computes; 0 where CPUs compute."""
    in_process: bool = False
    """Whether the workers are in this process. They then share one GPU."""
    kernel_threads: int = 0
    """Threads for the kernels of the smallest worker, which its tasks share; by default as many as run tasks."""
    hosts: int = 0
    """Sets of workers that share the cores of a machine; by default one for each worker, or 1 if workers are in this
    process.
    """
    host_threads: int = 0
    """Threads of all workers of the smallest host, for one task that runs alone; by default `kernel_threads`."""
    helpers: int = 0
    """Workers without a GPU, if those with a GPU compute."""
    helper_threads: int = 0
    """Threads for kernels of all helpers."""

    def __post_init__(self) -> None:
        if not self.kernel_threads:
            object.__setattr__(self, "kernel_threads", self.threads)
        if not self.hosts:
            object.__setattr__(self, "hosts", 1 if self.in_process else self.workers)
        if not self.host_threads:
            object.__setattr__(self, "host_threads", self.kernel_threads)

    @property
    def background_threads(self) -> int:
        """Threads of a worker that background tasks take. On GPUs one thread is kept for tasks of the stages, which
        start many short kernels in turn.
        """
        return max(1, self.threads - 1) if self.device_bytes else self.threads


@dataclass(frozen=True)
class Execution:
    """How the tasks of a run are carried out."""

    capacity: Capacity
    device: str = "cpu"
    """Name of the device that computes."""
    memory_advice: str = "raise partitioning.count"
    """Advice for messages: how to reduce the memory that a worker needs."""
    pinned_partitions: int | None = None
    """Number of partitions that each stay on one worker; None lets the scheduler choose a worker for each task."""
    results_in_files: bool = False
    """Whether workers keep the arrays of results in files, which tasks map."""
    results_together: int = RESULTS_TOGETHER
    """Most results of one worker from which one task takes parts. The task keeps them all in memory until it ends."""
    partitions_at_once: int | None = None
    """With results in files: tasks with partitions that a worker runs at once; None for one in each thread."""

    @property
    def partition_workers(self) -> list[int] | None:
        """[partitions] index of the worker that holds each; None lets the scheduler choose."""
        if self.pinned_partitions is None or self.capacity.in_process:
            return None
        return [partition % self.capacity.workers for partition in range(self.pinned_partitions)]


def count_together(tasks: int, workers: int, most: int) -> int:
    """The number of groups that `together` makes of `tasks` tasks that are assigned to all workers in turn."""
    each, more = divmod(tasks, workers)
    return more * -(-(each + 1) // most) + (workers - more) * -(-each // most)


def together(at: Sequence[int], most: int) -> list[list[int]]:
    """The indices of `at` in groups of at most `most`, each of one worker. `at` has the worker of each index."""
    by_worker: dict[int, list[int]] = {}
    for place, worker in enumerate(at):
        by_worker.setdefault(worker, []).append(place)
    return [own[first : first + most] for own in by_worker.values() for first in range(0, len(own), most)]


_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_CGROUP = Path("/proc/self/cgroup")


def machine() -> str:
    """The running system, which containers of one machine share."""
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return socket.gethostname()


def cores_here() -> tuple[str, int]:
    """Task: the cores that this worker may use, and their number. Workers with the same cores give the same text.

    Workers in different control groups, such as containers, are limited apart, whatever cores they see.
    """
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    try:
        group = _CGROUP.read_text()
    except OSError:
        group = ""
    return f"{machine()} {group} {list(cores)}", len(cores)


def by_host(cores: Sequence[tuple[str, int]]) -> list[list[int]]:
    """[hosts] the workers of each, by their index in `cores` [workers], which `cores_here` gave."""
    hosts: dict[str, list[int]] = {}
    for worker, (name, _) in enumerate(cores):
        hosts.setdefault(name, []).append(worker)
    return list(hosts.values())
