"""Peeling by shards in one process: each group in a thread, with a carrier in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from random import Random

import numpy as np
from numpy.typing import NDArray

from edgemill import kernels
from edgemill.kernels.cpu.shards import NUMPY_ALLOCATOR, Allocator, Cut, ShardGroup
from edgemill.kernels.graph import Topology
from edgemill.kernels.runtime.threads import kernel_threads
from edgemill.tasks.shards import Carrier, GroupPacket, MemoryCarrier, ShardEdges, ShardState, Words, first_shards
from edgemill.tasks.shards.peeling import GroupPeeling, build_group
from oracles import brute_force_support, simple_edges

Edge = tuple[int, int]


@dataclass(frozen=True)
class Graph:
    """A simple graph whose vertices are numbered by degree, edges sorted by (low, high)."""

    low: NDArray[np.uint32]
    high: NDArray[np.uint32]
    support: NDArray[np.int32]
    vertices: int
    name: Sequence[int] | Mapping[int, int]
    """As each vertex was called."""


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


def shard_edges(graph: Graph, shards: int, group: int, groups: int) -> ShardEdges:
    """What a group has of the graph; edges without triangles are left out."""
    cut, firsts = Cut(graph.vertices, shards), first_shards(groups, shards)
    here = np.zeros(len(graph.low), np.bool_)
    for ends in (graph.low, graph.high):
        classes = cut.classes(ends)
        here |= (classes >= firsts[group]) & (classes < firsts[group + 1])
    counted = graph.support > 0
    here &= counted
    return ShardEdges(
        group, groups, cut, graph.low[here], graph.high[here], graph.support[here], edges=int(counted.sum())
    )


class Wrapped:
    """A carrier around another one, which changes the packets that come."""

    def __init__(self, carrier: Carrier) -> None:
        self._carrier = carrier
        self.rank, self.groups, self.name = carrier.rank, carrier.groups, carrier.name

    def exchange(self, common: Words, own: Sequence[Words]) -> list[GroupPacket]:
        return [self.changed(sender, packet) for sender, packet in enumerate(self._carrier.exchange(common, own))]

    def changed(self, sender: int, packet: GroupPacket) -> GroupPacket:
        return packet

    def abandon(self) -> None:
        self._carrier.abandon()

    def close(self) -> None:
        self._carrier.close()


class Reordering(Wrapped):
    """Delivers the messages between each two shards in another order."""

    def __init__(self, carrier: Carrier, shards: int, seed: int) -> None:
        super().__init__(carrier)
        self._firsts, self._random = first_shards(carrier.groups, shards), Random(seed)

    def changed(self, sender: int, packet: GroupPacket) -> GroupPacket:
        if len(packet.common) <= 1 or len(packet.own) <= 1:  # no messages
            return packet
        senders, here = (self._firsts[g + 1] - self._firsts[g] for g in (sender, self.rank))
        own, count = packet.own.copy(), int(packet.own[0])
        table = packet.own[1 : 1 + senders * (here + 1)].reshape(senders, here + 1).tolist()
        order = np.arange(count)
        for row in table:
            for begin, stop in pairwise(row):
                part = order[begin:stop].tolist()
                self._random.shuffle(part)
                order[begin:stop] = part
        start = 1 + senders * (here + 1)
        own[start : start + count] = packet.own[start : start + count][order]
        own[start + count :] = packet.own[start + count :][order]
        return GroupPacket(packet.common, own)


def peel_in_groups(
    graph: Graph,
    shards: int,
    groups: int,
    window: int = 4,
    wrap: Callable[[Carrier], Carrier] = lambda carrier: carrier,
    tamper: Callable[[int, ShardGroup], None] | None = None,
    before: Sequence[ShardState] | None = None,
    stop: Callable[[], float | None] = lambda: None,
    allocators: Sequence[Allocator] | None = None,
    block: int = 8,
    until: int = 0,
) -> list[ShardState]:
    """Peel a graph; raises what the first group that failed by itself raised. `tamper(rank, group)` may spoil one."""

    def peel(carrier: Carrier) -> ShardState:
        with kernel_threads(1 if groups > 1 else 2):
            edges = shard_edges(graph, shards, carrier.rank, groups)
            try:
                allocator = NUMPY_ALLOCATOR if allocators is None else allocators[carrier.rank]
                group = build_group(edges, carrier, allocator, block)
                own = None if before is None else before[carrier.rank]
                peeling = GroupPeeling(edges, group, carrier, own, window, block, until)
                if tamper is not None:
                    tamper(carrier.rank, group)
                return peeling.run(stop(), None)
            except BaseException:
                carrier.abandon()
                raise
            finally:
                carrier.close()

    with ThreadPoolExecutor(groups) as threads:
        running = [threads.submit(peel, wrap(carrier)) for carrier in MemoryCarrier.open(groups)]
    errors = [error for error in (one.exception() for one in running) if error is not None]
    if errors:
        raise min(errors, key=lambda error: type(error).__name__ == "ClusterLost")
    return [one.result() for one in running]


def intervals(graph: Graph, shards: int, peeled: Sequence[ShardState]) -> dict[Edge, tuple[int, int]]:
    """Interval of λ by edge, with the vertices' own names; each edge must be there once. Edges without triangles: 0."""
    found: dict[Edge, tuple[int, int]] = {}
    for low, high, count in zip(graph.low.tolist(), graph.high.tolist(), graph.support.tolist(), strict=True):
        if not count:
            found[_named(graph, low, high)] = (0, 0)
    for one in peeled:
        edges, firsts = shard_edges(graph, shards, one.group, one.groups), first_shards(one.groups, shards)
        classes = edges.cut.classes(edges.high)
        owned = (classes >= firsts[one.group]) & (classes < firsts[one.group + 1])
        columns = (edges.low[owned], edges.high[owned], one.low, one.high)
        for low, high, below, above in zip(*(column.tolist() for column in columns), strict=True):
            edge = _named(graph, low, high)
            assert edge not in found
            found[edge] = (below, above)
    assert len(found) == len(graph.low)
    return found


def levels(graph: Graph, shards: int, peeled: Sequence[ShardState]) -> dict[Edge, int]:
    """λ by edge."""
    found = intervals(graph, shards, peeled)
    assert all(below == above for below, above in found.values())
    return {edge: below for edge, (below, _) in found.items()}


def drawn(seed: int, vertices: int, edges: int) -> list[Edge]:
    """A random graph with hubs: vertices with small numbers are endpoints more often."""
    ends = (vertices * np.random.default_rng(seed).random((edges, 2)) ** 3).astype(np.int64)
    return sorted(simple_edges(map(tuple, ends.tolist())))


def other_peel(graph: Graph) -> dict[Edge, int]:
    """λ of each edge, by the peel of one partition."""
    topology = Topology(graph.low.astype(np.int32), graph.high.astype(np.int32), graph.vertices)
    peeling = kernels.peeling(topology, graph.support)
    while peeling.left:
        peeling.advance()
    ends = zip(graph.low.tolist(), graph.high.tolist(), peeling.low.tolist(), strict=True)
    return {_named(graph, low, high): level for low, high, level in ends}


def _named(graph: Graph, low: int, high: int) -> Edge:
    u, v = sorted((graph.name[low], graph.name[high]))
    return u, v
