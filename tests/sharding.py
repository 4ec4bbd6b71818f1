"""Peeling by shards in one process: each group in a thread, with a carrier in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from random import Random

import numpy as np
from numpy.typing import NDArray

from edgemill.kernels.cpu.shards import ShardGroup
from edgemill.kernels.threads import kernel_threads
from edgemill.tasks.shards import Carrier, MemoryCarrier, Parcel, PeeledShards, build_group, peel_shards
from oracles import brute_force_support

Edge = tuple[int, int]


@dataclass(frozen=True)
class Graph:
    """A simple graph whose vertices are numbered by degree, edges sorted by (low, high)."""

    low: NDArray[np.uint32]
    high: NDArray[np.uint32]
    support: NDArray[np.int32]
    vertices: int
    name: list[int]
    """[vertices] as they were called."""


def ordered(edges: Sequence[Edge]) -> Graph:
    """A simple graph in the order that shards need."""
    known = brute_force_support(edges)
    degree: dict[int, int] = {}
    for edge in known:
        for end in edge:
            degree[end] = degree.get(end, 0) + 1
    name = sorted(degree, key=lambda vertex: (degree[vertex], vertex))
    number = {vertex: at for at, vertex in enumerate(name)}
    rows = sorted((*sorted((number[u], number[v])), count) for (u, v), count in known.items())
    table = np.array(rows, np.int64).reshape(-1, 3)
    low, high = (table[:, column].astype(np.uint32) for column in (0, 1))
    return Graph(low, high, table[:, 2].astype(np.int32), len(name), name)


class Reordering:
    """Carries what another carrier does, with the messages between each two shards in another order."""

    def __init__(self, carrier: Carrier, seed: int) -> None:
        self._carrier, self._random = carrier, Random(seed)
        self.rank, self.groups = carrier.rank, carrier.groups

    def exchange(self, parcels: Sequence[Parcel]) -> list[Parcel]:
        return [self._mixed(parcel) for parcel in self._carrier.exchange(parcels)]

    def abandon(self) -> None:
        self._carrier.abandon()

    def _mixed(self, parcel: Parcel) -> Parcel:
        if len(parcel) != 6:  # no messages: (words, low, high, target, value, start)
            return parcel
        *rest, target, value, start = parcel
        order = np.arange(len(target))
        for row in start:
            for begin, stop in pairwise(row.tolist()):
                part = order[begin:stop].tolist()
                self._random.shuffle(part)
                order[begin:stop] = part
        return (*rest, target[order], value[order], start)


def peel_in_groups(
    graph: Graph,
    shards: int,
    groups: int,
    near: int = 4,
    wrap: Callable[[Carrier], Carrier] = lambda carrier: carrier,
    tamper: Callable[[int, ShardGroup], None] | None = None,
) -> list[PeeledShards]:
    """Peel a graph; raises what the first group that failed by itself raised. `tamper(rank, group)` may spoil one."""

    def peel(carrier: Carrier) -> PeeledShards:
        with kernel_threads(1 if groups > 1 else 2):
            group = build_group(graph.low, graph.high, graph.support, graph.vertices, shards, carrier)
            if tamper is not None:
                tamper(carrier.rank, group)
            return peel_shards(group, len(graph.low), carrier, near)

    with ThreadPoolExecutor(groups) as threads:
        running = [threads.submit(peel, wrap(carrier)) for carrier in MemoryCarrier.open(groups)]
    errors = [error for error in (one.exception() for one in running) if error is not None]
    if errors:
        raise min(errors, key=lambda error: type(error).__name__ == "ClusterLost")
    return [one.result() for one in running]


def levels(graph: Graph, peeled: Sequence[PeeledShards]) -> dict[Edge, int]:
    """λ by edge, with the vertices' own names; each edge must be there once."""
    found: dict[Edge, int] = {}
    for one in peeled:
        for low, high, level in zip(one.low.tolist(), one.high.tolist(), one.level.tolist(), strict=True):
            u, v = sorted((graph.name[low], graph.name[high]))
            assert (u, v) not in found
            found[u, v] = level
    return found
