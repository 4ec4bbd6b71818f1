"""The tasks of peeling in shards."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from ... import kernels
from ...kernels.cpu.shards import NUMPY_ALLOCATOR, Allocator
from ...tasks.bound.intervals import Intervals
from ...tasks.shards import Figures, FileAllocator, ShardEdges, ShardOnGpu, ShardState, peel_groups_on_gpu
from ...tasks.shards.gpu.transport_names import MAILBOXES, NCCL
from ...tasks.shards.local_groups import peel_groups
from ..cluster.carriers.communicator import Communicator
from ..cluster.this_worker import leave_pool, progress_reporter, scratch_folder


def peel_groups_of_worker(
    communicator: Communicator,
    worker: int,
    edges: Sequence[ShardEdges],
    before: Sequence[Any] | None,
    seconds: float | None,
    threads: int,
    resident_bytes: int | None,
    until: int,
    way: str,
    topic: str | None,
) -> list[ShardState | ShardOnGpu]:
    """Task: peel the groups of one worker, on the device with their edges; on CPUs until at most `until` edges of the
    graph remain.
    """
    leave_pool()
    found: Sequence[ShardState | ShardOnGpu]
    report = progress_reporter(topic)
    with communicator.open_carriers(worker) as carriers:
        if not kernels.on_host(edges[0].low):
            found = peel_groups_on_gpu(edges, carriers, before, seconds, report, way=way)
        else:
            with _allocator(resident_bytes) as allocator:
                own = edges, carriers, before, seconds, report
                found = peel_groups(*own, threads=threads, until=until, allocator=allocator)
    return list(found)


def _allocator(resident_bytes: int | None) -> AbstractContextManager[Allocator]:
    """The allocator of rows: in memory, or in files of the worker with `resident_bytes` of them in memory."""
    return nullcontext(NUMPY_ALLOCATOR) if resident_bytes is None else FileAllocator(scratch_folder(), resident_bytes)


def intervals_of(state: ShardState | ShardOnGpu) -> Intervals:
    """Task: intervals of the edges that a group owns."""
    return Intervals(state.low, state.low if state.finished else state.high)


def figures_of(state: ShardState | ShardOnGpu) -> tuple[Figures, str, str]:
    """Figures of a group; its transport, if GPUs sent the packets themselves; and why they did not."""
    if not isinstance(state, ShardOnGpu):
        return state.figures, "", ""
    return state.figures, state.way if state.way in (MAILBOXES, NCCL) else "", state.why
