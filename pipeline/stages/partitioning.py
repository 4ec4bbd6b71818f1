"""The stage `partition`: orders vertices by degree, assigns each to a partition, and sends each edge to its owner.

A partitioning method takes the buckets of the graph in degree order and returns a `Partitioner`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from ...tasks import ingest
from ...tasks.device import MemorySpace
from ...tasks.ingest import range_cuts
from ...tasks.partition import HashPartitioner, Partitioner, RangePartitioner
from ..monitor.events import Events
from .exchange import exchange, send
from .ingesting import Buckets
from .task_engine import Future, TaskEngine


@dataclass(frozen=True)
class OrderedGraph:
    """The graph in its buckets, with its vertices in degree order."""

    engine: TaskEngine
    edges: list[Future]
    """[buckets] BucketEdges"""
    degrees: list[Future]
    """[buckets] BucketDegrees"""
    oriented: list[Future]
    """[buckets] OrientedEdges"""
    vertices: int
    space: MemorySpace
    """The memory of the partitions' arrays."""

    @property
    def oriented_buckets(self) -> list[tuple[Future, Future]]:
        """[buckets] BucketEdges and OrientedEdges"""
        return list(zip(self.edges, self.oriented, strict=True))


def by_hash(graph: OrderedGraph, partitions: int) -> Partitioner:
    """Assign vertices to partitions by a hash."""
    return HashPartitioner(partitions)


def by_range(graph: OrderedGraph, partitions: int) -> Partitioner:
    """Assign each partition a range of ids. All partitions own about the same number of edges."""
    engine = graph.engine
    sent = send(engine, "send-out-degrees", "out-degrees", range_cuts.send_out_degrees, graph.oriented_buckets)
    owned = exchange(engine, "out-degrees", sent, range_cuts.collect_out_degrees, graph.oriented_buckets)
    targets = range_cuts.cut_targets(engine.peek(owned, _sum), partitions)
    firsts = engine.peek(graph.edges, attrgetter("first"))
    cuts = engine.map("cuts", range_cuts.cuts_within, list(zip(owned, firsts, targets, strict=True)))
    return range_cuts.range_partitioner(engine.gather(cuts))


METHODS: Mapping[str, Callable[[OrderedGraph, int], Partitioner]] = {"range": by_range, "hash": by_hash}
"""Methods by their names in the setting `partitioning.method`."""


def _degrees(engine: TaskEngine, edges: Sequence[Future]) -> list[Future]:
    """[buckets] BucketDegrees, in an exchange among the buckets. `edges` [buckets] are BucketEdges."""
    at = engine.bucket_workers(len(edges))
    sent = send(engine, "send-degrees", "degrees", ingest.send_degrees, [(own,) for own in edges], at)
    return exchange(engine, "degrees", sent, ingest.collect_degrees, [(own,) for own in edges], at)


def count_degrees(engine: TaskEngine, events: Events, buckets: Buckets) -> list[Future]:
    """[buckets] BucketDegrees of a graph that is not divided into partitions."""
    engine = engine.for_tasks(len(buckets.edges))
    with events.stage("partition", len(buckets.edges)) as stage:
        degrees = _degrees(engine, buckets.edges)
        engine.wait(degrees, stage)
    return degrees


def order_by_degree(engine: TaskEngine, edges: Sequence[Future], vertices: int, space: MemorySpace) -> OrderedGraph:
    """Rank the vertices by (degree, id) and orient the edges.

    `edges` [buckets] are BucketEdges over `vertices` vertices. This takes two exchanges among the buckets.
    """
    degrees, at = _degrees(engine, edges), engine.bucket_workers(len(edges))
    histograms = engine.gather(engine.map("degree-histogram", ingest.degree_histogram, [(own,) for own in degrees], at))
    starts = ingest.order_starts(histograms)
    tasks = [(own, starts[b], vertices) for b, own in enumerate(degrees)]
    ranks = engine.map("rank", ingest.rank_vertices, tasks, at)
    answers = send(engine, "answer-ranks", "ranks", ingest.answer_ranks, list(zip(degrees, ranks, strict=True)), at)
    own = list(zip(edges, ranks, strict=True))
    oriented = exchange(engine.for_partitions(), "ranks", answers, ingest.orient, own, at)
    return OrderedGraph(engine, list(edges), degrees, oriented, vertices, space)


def choose_partitioner(graph: OrderedGraph, method: str, partitions: int) -> Partitioner:
    """The partitioner of a method in METHODS."""
    return METHODS[method](graph, partitions) if partitions > 1 else RangePartitioner()


def collect_owned(graph: OrderedGraph, partitioner: Partitioner, rows_on_host: bool = False) -> list[Future]:
    """Send each edge to the partition of its low end. Returns [partitions] OwnedEdges.

    With `rows_on_host` the rows of edges in the result are placed in host memory, if the graph has one partition.
    """
    engine, space = graph.engine, graph.space
    if partitioner.partitions == 1:  # needs no edges of buckets, which may be in host memory
        sent = send(engine, "send-owned", "owned", ingest.send_all, [(own,) for own in graph.oriented])
    else:
        tasks = [(*own, partitioner) for own in graph.oriented_buckets]
        sent = send(engine, "send-owned", "owned", ingest.send_owned, tasks)
    receivers = [(p, space) for p in range(partitioner.partitions)]
    homes = engine.partition_workers and engine.partition_workers[: partitioner.partitions]
    collect = partial(ingest.collect_owned, rows_on_host=rows_on_host)
    return exchange(engine, "owned", sent, collect, receivers, homes)


def order(engine: TaskEngine, events: Events, buckets: Buckets, space: MemorySpace) -> OrderedGraph:
    """Put the vertices in degree order for a graph in shards. The ranks alone determine the shards."""
    engine = engine.for_tasks(len(buckets.edges))
    with events.stage("partition", len(buckets.edges)) as stage:
        graph = order_by_degree(engine, buckets.edges, int(buckets.starts[-1]), space)
        engine.wait(graph.oriented, stage)
    return graph


def partition(
    engine: TaskEngine,
    events: Events,
    buckets: Buckets,
    partitions: int,
    method: str | Partitioner,
    space: MemorySpace,
    in_parts: bool = False,
) -> tuple[list[Future], list[Future]]:
    """Put the vertices in degree order, choose their partitions, and send each edge to its owner.

    `method` is a name in METHODS, or a partitioner with `partitions` partitions. With `in_parts` a GPU has no room for
    the edges of all buckets beside those of the partition, so they are moved to host memory, and the rows of edges in
    the result are placed there. Returns [partitions] OwnedEdges and [buckets] BucketDegrees.
    """
    edges = buckets.edges
    with events.stage("partition", len(edges) + partitions) as stage:
        graph = order_by_degree(engine.for_tasks(len(edges)), edges, int(buckets.starts[-1]), space)
        engine.wait(graph.oriented, stage)
        if in_parts:
            buckets.move_to_host(engine)
        graph = replace(graph, engine=engine.for_tasks(partitions))
        partitioner = choose_partitioner(graph, method, partitions) if isinstance(method, str) else method
        owned = collect_owned(graph, partitioner, in_parts)
        engine.wait(owned, stage)
    return owned, graph.degrees


def _sum(counts: NDArray[np.int64]) -> int:
    return int(counts.sum())
