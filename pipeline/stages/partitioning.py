"""The stages `partition` and `triangulate`: order vertices by degree, and count triangles.

If one worker holds the graph, all edges go to it, and edges without triangles are left out. `sharding` has the stage
`triangulate` of shards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter

from ...tasks import ingest
from ...tasks.device import MemorySpace
from ...tasks.graph import (
    PartitionCounts,
    build_subgraph,
    count_butterflies,
    count_triangles,
    wedges_to_walk,
    whole_graph,
)
from ..events import Events
from .exchange import exchange, send
from .ingesting import Buckets
from .layout import Layout
from .task_engine import Future, TaskEngine


def partition_tasks(layout: Layout) -> int:
    """Tasks that send all edges to one worker, as `collect_owned`, and that `triangulate` starts there."""
    return layout.exchange(layout.buckets, 1) + 3 + layout.peek(1)  # rows, triangles, and the subgraph


def triangulate(
    engine: TaskEngine,
    events: Events,
    owned: Future,
    whole: bool = False,
    count: Callable[[Future], Future] | None = None,
    index_bytes: int | None = None,
) -> tuple[Future, Future, PartitionCounts]:
    """Find every triangle once. Returns OwnedRows, Subgraph and PartitionCounts.

    `owned` is OwnedEdges. From here to the end of bounding all arrays are on the device that computes. With `whole` the
    result is a WholeGraph instead of a Subgraph: peeling on GPUs needs nothing else. `count` gives the triangles of
    each edge, if several workers count them. With `index_bytes` butterflies are counted, on CPUs; see `Subgraph`.
    """
    engine = engine.for_tasks(1)
    holding, at = engine.for_partitions(), engine.partition_workers and engine.partition_workers[:1]
    if index_bytes is not None:
        (wedges,) = engine.peek([owned], wedges_to_walk)
        events.emit("wedges", wedges=wedges)
    with events.stage("triangulate", 2) as stage:
        (rows,) = engine.map("rows-to-publish", ingest.rows_to_publish, [(owned,)])
        if engine.capacity.device_bytes:
            (owned,) = holding.map("to-device", ingest.owned_to_device, [(owned,)], at)
        if whole:
            holding.wait([owned], stage)
            known = () if count is None else (count(owned),)
            found = holding.map("count-triangles", whole_graph, [(owned, *known)], at)
        else:
            counting = count_triangles if index_bytes is None else count_butterflies
            counted = holding.map("counted", counting, [(owned,)], at) if count is None else [count(owned)]
            holding.wait(counted, stage)
            found = holding.map("subgraph", build_subgraph, [(owned, counted[0], index_bytes)], at)
        holding.wait(found, stage)
        (counts,) = holding.peek(found, attrgetter("counts"))
    return rows, found[0], counts


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
    histograms = engine.peek(degrees, ingest.degree_histogram, at)
    starts = ingest.order_starts(histograms)
    tasks = [(own, starts[b], vertices) for b, own in enumerate(degrees)]
    ranks = engine.map("rank", ingest.rank_vertices, tasks, at)
    answers = send(engine, "answer-ranks", "ranks", ingest.answer_ranks, list(zip(degrees, ranks, strict=True)), at)
    own = list(zip(edges, ranks, strict=True))
    oriented = exchange(engine.for_partitions(space), "ranks", answers, ingest.orient, own, at)
    return OrderedGraph(engine, list(edges), degrees, oriented, vertices, space)


def order_tasks(layout: Layout) -> int:
    """Tasks of `order_by_degree`: degrees, ranks, and their exchanges among the buckets."""
    buckets = layout.buckets
    return 2 * layout.exchange(buckets, buckets) + layout.peek(buckets, known=True) + buckets


def collect_owned(graph: OrderedGraph, rows_on_host: bool = False) -> Future:
    """Send all edges to the only partition. Returns OwnedEdges, whose rows `rows_on_host` places in host memory."""
    engine = graph.engine
    # This needs no edges of buckets, which may be in host memory.
    sent = send(engine, "send-owned", "owned", ingest.send_all, [(own,) for own in graph.oriented])
    homes = engine.partition_workers and engine.partition_workers[:1]
    collect = partial(ingest.collect_owned, rows_on_host=rows_on_host)
    return exchange(engine, "owned", sent, collect, [(graph.space,)], homes)[0]


def order(engine: TaskEngine, events: Events, buckets: Buckets, space: MemorySpace) -> OrderedGraph:
    """Put the vertices in degree order for a graph in shards. The ranks alone determine the shards."""
    engine = engine.for_tasks(len(buckets.edges))
    with events.stage("partition", len(buckets.edges)) as stage:
        graph = order_by_degree(engine, buckets.edges, int(buckets.starts[-1]), space)
        engine.wait(graph.oriented, stage)
    return graph


def partition(
    engine: TaskEngine, events: Events, buckets: Buckets, space: MemorySpace, in_parts: bool = False
) -> tuple[Future, list[Future]]:
    """Put the vertices in degree order, and send all edges to one worker.

    With `in_parts` a GPU has no room for the edges of all buckets beside those of the partition, so they are moved to
    host memory, and the rows of edges in the result are placed there. Returns OwnedEdges and [buckets] BucketDegrees.
    """
    edges = buckets.edges
    with events.stage("partition", len(edges) + 1) as stage:
        graph = order_by_degree(engine.for_tasks(len(edges)), edges, int(buckets.starts[-1]), space)
        if in_parts:
            engine.wait(graph.oriented)
            buckets.move_to_host(engine)
        owned = collect_owned(replace(graph, engine=engine.for_tasks(1)), in_parts)
        engine.wait([*graph.oriented, owned], stage)
    return owned, graph.degrees
