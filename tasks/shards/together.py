"""Several groups of shards in one process, each peeled by a thread of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from ...kernels.cpu.shards import MEMORY, Room
from ...kernels.threads import kernel_threads, layer
from ..errors import ClusterLost
from .carrier import Carrier
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
    room: Room = MEMORY,
) -> list[ShardState]:
    """Peel the groups of one process, which share its `threads`; see `peel_shards`. `carriers` [groups] are theirs.

    Raises what the first group raised that did not just lose another one. Several groups need a threading layer that
    lets several threads run kernels at once; without one ClusterLost is raised (see `kernels.threads`).
    """
    earlier: Sequence[ShardState | None] = [None] * len(edges) if before is None else before
    if len(edges) == 1:
        return [peel_shards(edges[0], carriers[0], earlier[0], seconds, progress, room=room)]
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
            told = progress if at == 0 else None
            return peel_shards(edges[at], carriers[at], earlier[at], seconds, told, room=room)

    with ThreadPoolExecutor(len(edges), "shards") as pool:
        running = [pool.submit(peel, at) for at in range(len(edges))]
    return results_of(running)


def results_of(ended: Sequence[Future[T]]) -> list[T]:
    """What the groups of one process found; raises what the first raised that did not just lose another one."""
    errors = [error for future in ended if (error := future.exception()) is not None]
    for error in errors:
        if not isinstance(error, ClusterLost):
            raise error
    if errors:
        raise errors[0]
    return [future.result() for future in ended]
