"""Which partition each vertex goes to: every method takes the ordered graph, in its buckets, and gives a formula."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..tasks import ingest, publish, triangulate
from ..tasks.ingest import Put
from ..tasks.partition import HashPartitioner, Partitioner, RangePartitioner
from ..tasks.partition import range as ranges
from .engine import Engine, Future
from .exchange import exchange, send

__all__ = ["METHODS", "Ordered", "count_supports", "place", "put_in_order", "send_owned"]


@dataclass(frozen=True)
class Ordered:
    """The graph in its buckets, in degree order."""

    engine: Engine
    edges: list[Future]
    """[buckets] BucketEdges"""
    degrees: list[Future]
    """[buckets] BucketDegrees"""
    oriented: list[Future]
    """[buckets] OrientedEdges"""
    vertices: int
    put: Put
    """Where the arrays of partitions lie."""

    @property
    def both(self) -> list[tuple[Future, Future]]:
        """What most tasks take."""
        return list(zip(self.edges, self.oriented, strict=True))


def by_hash(graph: Ordered, partitions: int) -> Partitioner:
    """Scattered."""
    return HashPartitioner(partitions)


def by_range(graph: Ordered, partitions: int) -> Partitioner:
    """Runs of the id order that own equally many edges."""
    engine = graph.engine
    sent = send(engine, "send-out-degrees", "out-degrees", ranges.send_out_degrees, graph.both)
    owned = exchange(engine, "out-degrees", sent, ranges.collect_out_degrees, graph.both)
    targets = ranges.cut_targets(engine.peek(owned, _sum), partitions)
    firsts = engine.peek(graph.edges, attrgetter("first"))
    cuts = engine.map("cuts", ranges.cuts_within, list(zip(owned, firsts, targets, strict=True)))
    return ranges.range_partitioner(engine.gather(cuts))


METHODS: Mapping[str, Callable[[Ordered, int], Partitioner]] = {"range": by_range, "hash": by_hash}
"""By the name that `partitioning.method` has for them."""


def put_in_order(engine: Engine, edges: Sequence[Future], vertices: int, put: Put) -> Ordered:
    """The graph of these BucketEdges, over so many vertices, with its vertices in degree order."""
    sent = send(engine, "send-degrees", "degrees", ingest.send_degrees, [(own,) for own in edges])
    degrees = exchange(engine, "degrees", sent, ingest.collect_degrees, [(own,) for own in edges])
    histograms = engine.gather(engine.map("degree-histogram", ingest.degree_histogram, [(own,) for own in degrees]))
    starts = ingest.order_starts(histograms)
    ranks = engine.map("rank", ingest.rank_vertices, [(own, starts[b], vertices) for b, own in enumerate(degrees)])
    answers = send(engine, "answer-ranks", "ranks", ingest.answer_ranks, list(zip(degrees, ranks, strict=True)))
    oriented = exchange(engine, "ranks", answers, ingest.orient, list(zip(edges, ranks, strict=True)))
    return Ordered(engine, list(edges), degrees, oriented, vertices, put)


def place(graph: Ordered, method: str, partitions: int) -> Partitioner:
    """The partitioner that one of METHODS gives."""
    return METHODS[method](graph, partitions) if partitions > 1 else RangePartitioner()


def send_owned(graph: Ordered, partitioner: Partitioner) -> list[Future]:
    """Every edge to the partition of its low end, for the exchange `owned`."""
    tasks = [(*own, partitioner) for own in graph.both]
    return send(graph.engine, "send-owned", "owned", ingest.send_owned, tasks)


def _sum(counts: NDArray[np.int64]) -> int:
    return int(counts.sum())


def count_supports(graph: Ordered, partitions: int) -> list[Future]:
    """[buckets] BucketResults with the triangles of each edge, found with the vertices in ranges."""
    engine, everyone = graph.engine, range(partitions)
    homes = engine.homes and engine.homes[:partitions]
    sent = send_owned(graph, place(graph, "range", partitions))
    owned = exchange(engine, "owned", sent, ingest.collect_owned, [(p, graph.put) for p in everyone], homes)
    rows = engine.map("rows-to-publish", ingest.rows_to_publish, [(own,) for own in owned])
    with engine.on_device():
        lists = send(engine, "send-lists", "lists", triangulate.send_lists, [(own, partitions) for own in owned], homes)
        counted = exchange(engine, "lists", lists, triangulate.count_triangles, [(own,) for own in owned], homes)
        replies = send(engine, "replies", "supports", attrgetter("replies"), [(own,) for own in counted])
        found = exchange(engine, "supports", replies, triangulate.supports, [(own,) for own in counted], homes)
    results = send(engine, "send-results", "results", _as_results, list(zip(rows, found, strict=True)))
    by_bucket = exchange(engine, "results", results, publish.collect_results, [(edges,) for edges in graph.edges])
    return by_bucket


def _as_results(rows: ingest.OwnedRows, support: NDArray[np.int32]) -> Any:
    return publish.send_results(rows, support, support, support)
