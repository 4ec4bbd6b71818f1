"""Graphs dealt to shards on a GPU, and what is known of them."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from contextlib import closing
from typing import Any

from hypothesis import HealthCheck

from edgemill import kernels
from edgemill.kernels.cpu.shards import Cut
from edgemill.tasks.errors import ClusterLost
from edgemill.tasks.shards import ShardEdges, ShardOnGpu, peel_groups_on_gpu
from edgemill.tasks.shards.carriers.shared_memory import SharedMemoryCarrier
from oracles import brute_force_lambda
from sharding import Edge, Graph, drawn, ordered, other_peel

SHARED_PATCH = [HealthCheck.function_scoped_fixture]  # the same for every example


def dealt(graph: Graph, shards: int) -> list[ShardEdges]:
    """What each shard stores, on the device."""
    cut, closed = Cut(graph.vertices, shards), graph.support > 0
    low, high, support = graph.low[closed], graph.high[closed], graph.support[closed]
    found = []
    for shard in range(shards):
        mine = (cut.classes(low) == shard) | (cut.classes(high) == shard)
        ends = [kernels.to_device(array[mine]) for array in (low, high, support)]
        found.append(ShardEdges(shard, shards, cut, ends[0], ends[1], ends[2], len(low)))
    return found


def intervals(graph: Graph, edges: Sequence[ShardEdges], states: Sequence[ShardOnGpu]) -> dict[Edge, tuple[int, int]]:
    """Bounds of λ by edge, with the vertices' own names; each edge must be there once."""
    ends = zip(graph.low.tolist(), graph.high.tolist(), graph.support.tolist(), strict=True)
    found = {_named(graph, low, high): (0, 0) for low, high, support in ends if not support}
    for one, state in zip(edges, states, strict=True):
        low, high = kernels.to_host(one.low), kernels.to_host(one.high)
        owned = one.cut.classes(high) == one.group
        bounds = kernels.to_host(state.low).tolist(), kernels.to_host(state.high).tolist()
        for u, v, *both in zip(low[owned].tolist(), high[owned].tolist(), *bounds, strict=True):
            assert _named(graph, u, v) not in found
            found[_named(graph, u, v)] = (both[0], both[1])
    return found


def _named(graph: Graph, low: int, high: int) -> Edge:
    u, v = sorted((graph.name[low], graph.name[high]))
    return u, v


def by_the_other_peel(graph: Graph) -> dict[Edge, tuple[int, int]]:
    """[λ, λ] of each edge, by the peel of one partition on the CPU."""
    return {edge: (level, level) for edge, level in other_peel(graph).items()}


def exact(edges: Sequence[Edge]) -> dict[Edge, tuple[int, int]]:
    return {edge: (level, level) for edge, level in brute_force_lambda(edges).items()}


def peel_apart(rank: int, count: int, folder: str, way: str, to: Any, killed: bool) -> None:
    """Peel one group in a process of its own, which may kill itself after a level; `to` gets what it found.

    For NCCL the process has a GPU of its own.
    """
    if way == "nccl":
        os.environ["CUDA_VISIBLE_DEVICES"] = str(rank)
    graph = ordered(drawn(1, 90, 4000))
    parts = dealt(graph, count)

    def progress(level: int, left: int) -> None:
        if killed:
            os.kill(os.getpid(), signal.SIGKILL)

    with closing(SharedMemoryCarrier.open([folder], "apart", rank, count, 120.0)) as carrier:
        try:
            seconds = 0 if killed else None
            (state,) = peel_groups_on_gpu([parts[rank]], [carrier], None, seconds, progress, way=way)
        except ClusterLost as error:
            to.put((rank, str(error)))
            return
        to.put((rank, state.way, intervals(graph, [parts[rank]], [state])))
