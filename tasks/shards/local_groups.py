"""Several groups of shards in one process, each peeled by its own thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from ...kernels.cpu.shards import NUMPY_ALLOCATOR, Allocator
from ...kernels.runtime.threads import kernel_threads, layer
from ..errors import ClusterLost
from .carriers.carrier import Carrier
from .edges import ShardEdges
from .peeling import peel_shards
from .state import ShardState

T = TypeVar("T")


def peel_groups(
    edges: Sequence[ShardEdges],
    carriers: Sequence[Carrier],
    before: Sequence[ShardState] | None = None,
    seconds: float | None = None,
    progress: Callable[[int, int], None] | None = None,
    *,
    threads: int,
    until: int = 0,
    allocator: Allocator = NUMPY_ALLOCATOR,
) -> list[ShardState]:
    """Peel the groups of one process, which share its `threads`; see `peel_shards`.

    `edges`, `carriers` and `before` are by group of the process. Several groups need a threading layer that runs
    kernels from several threads at once (see `kernels.runtime.threads`). Raises ClusterLost without one; otherwise the
    errors of groups as `results_of`.
    """
    states: Sequence[ShardState | None] = [None] * len(edges) if before is None else before
    if len(edges) == 1:
        return [peel_shards(edges[0], carriers[0], states[0], seconds, progress, until=until, allocator=allocator)]
    if layer() == "workqueue":
        for carrier in carriers:
            carrier.abandon()
        raise ClusterLost(
            f"a worker has {len(edges)} groups of shards, and Numba's threading layer runs one at a time: start more "
            "workers, or install libgomp (libgomp1), and run again"
        )
    share = max(1, threads // len(edges))

    def peel(at: int) -> ShardState:
        with kernel_threads(share):
            reporting = progress if at == 0 else None
            own = edges[at], carriers[at], states[at], seconds, reporting
            return peel_shards(*own, until=until, allocator=allocator)

    with ThreadPoolExecutor(len(edges), "shards") as pool:
        running = [pool.submit(peel, at) for at in range(len(edges))]
    return results_of(running)


def results_of(futures: Sequence[Future[T]]) -> list[T]:
    """The results of the groups of one process.

    If groups failed, raises the first error that is not ClusterLost, as that one is the cause of the others.
    """
    errors = [error for future in futures if (error := future.exception()) is not None]
    for error in errors:
        if not isinstance(error, ClusterLost):
            raise error
    if errors:
        raise errors[0]
    return [future.result() for future in futures]
