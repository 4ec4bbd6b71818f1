"""Which partition each vertex goes to: every method takes the ordered graph, in its buckets, and gives a placement.

Formulas give a Partitioner. What follows the edges gives Parts for each bucket: it walks on both directions of every
edge, in rounds of one exchange in which buckets tell each other where their vertices are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .. import kernels
from ..tasks import ingest, publish, triangulate
from ..tasks.ingest import Put
from ..tasks.partition import HashPartitioner, Partitioner, RangePartitioner, bfs, neighbours, streaming
from ..tasks.partition import multilevel as whole
from ..tasks.partition import range as ranges
from ..tasks.partition.neighbours import Parts
from .engine import Engine, Future
from .exchange import exchange, send

__all__ = [
    "METHODS",
    "MOST_PASSES",
    "MOST_ROUNDS",
    "Ordered",
    "Placement",
    "count_supports",
    "groups_of",
    "place",
    "put_in_order",
    "send_owned",
]

Placement: TypeAlias = Partitioner | list[Future]
"""A formula, or [buckets] Parts."""

MOST_PASSES = 24
"""Of streaming; each looks at half of the vertices."""
FEW_MOVED = 0.01
"""Streaming ends when two passes together move no larger share of the vertices."""
ABREAST = 16
"""Buckets that stream at a time, of few; of many,"""
MOST_GROUPS = 8
"""one in so many: each group has as many passes as it would have alone."""
MOST_ROUNDS = 64
"""Of growing regions."""
ROUNDS_PER_LEVEL = 8
"""Rounds before each takes twice as many levels: a road network has thousands."""


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


def by_hash(graph: Ordered, partitions: int) -> Placement:
    """Scattered."""
    return HashPartitioner(partitions)


def by_vertices(graph: Ordered, partitions: int) -> Placement:
    """Runs of the id order of equally many vertices."""
    return RangePartitioner(np.arange(1, partitions) * graph.vertices // partitions)


def by_range(graph: Ordered, partitions: int) -> Placement:
    """Runs of the id order that own equally many edges."""
    return _ranges(graph, _loads(graph), partitions)


def by_bfs(graph: Ordered, partitions: int) -> Placement:
    """Regions grown breadth first from vertices that lie evenly in the id order."""
    engine, load = graph.engine, _loads(graph)
    near = _neighbours(graph, _unit_weights(graph), load)
    seeds = _ranges(graph, load, 2 * partitions).cuts[::2]
    parts = engine.map("plant", bfs.plant, [(own, seeds) for own in near])
    total, buckets = sum(engine.peek(load, _sum)), len(near)

    def grown(levels: int) -> list[Future]:
        _, room = neighbours.room_for(_taken(engine, parts), total, buckets)
        return _told(engine, near, parts, "grow", bfs.grow, (room, levels))

    for round_ in range(MOST_ROUNDS):
        parts = grown(2 ** (round_ // ROUNDS_PER_LEVEL))
        if not sum(engine.peek(parts, attrgetter("moved"))):
            break
    return grown(0)


def by_streaming(graph: Ordered, partitions: int) -> Placement:
    """From ranges on, every vertex to most of its neighbours."""
    return _streamed(graph, partitions, _unit_weights(graph))


def by_triangles(graph: Ordered, partitions: int) -> Placement:
    """As `by_streaming`, but neighbours count by the triangles that their edge is in: ghosts come from triangles."""
    found = count_supports(graph, partitions)
    return _streamed(graph, partitions, graph.engine.map("weights", _support, [(own,) for own in found]))


def by_multilevel(graph: Ordered, partitions: int) -> Placement:
    """Coarsened, cut and refined, by one task that holds all edges."""
    return _multilevel(graph, partitions, _unit_weights(graph))


def _multilevel(graph: Ordered, partitions: int, weights: Sequence[Future]) -> list[Future]:
    engine = graph.engine
    near = _neighbours(graph, weights, _loads(graph))
    found = engine.submit("multilevel", whole.multilevel, near, partitions)
    engine.wait([found])
    return engine.map("parts", whole.parts_of, [(found, own, partitions) for own in near])


def _streamed(graph: Ordered, partitions: int, weights: Sequence[Future]) -> list[Future]:
    """Some buckets at a time: many abreast would have little room each, and see little of what the others do."""
    engine, load = graph.engine, _loads(graph)
    near = _neighbours(graph, weights, load)
    start = _ranges(graph, load, partitions)
    parts = engine.map("parts", streaming.start_parts, [(own, start) for own in near])
    total = sum(engine.peek(load, _sum))
    groups = groups_of(len(near))
    moved = []
    for turn in range(MOST_PASSES * groups):
        half, group = turn % 2, turn // 2 % groups
        active = range(group, len(near), groups)
        loads = _taken(engine, parts)
        capacity, room = neighbours.room_for(loads, total, len(active))
        found = _told(engine, near, parts, "restream", streaming.restream, (loads, room, capacity, half), active)
        moved.append(sum(engine.peek(found, attrgetter("moved"))))
        for b, own in zip(active, found, strict=True):
            parts[b] = own
        if turn >= 2 * groups and sum(moved[-2 * groups :]) <= FEW_MOVED * graph.vertices:
            break
    return parts


METHODS: Mapping[str, Callable[[Ordered, int], Placement]] = {
    "range": by_range,
    "vertices": by_vertices,
    "hash": by_hash,
    "bfs": by_bfs,
    "streaming": by_streaming,
    "triangles": by_triangles,
    "multilevel": by_multilevel,
}
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


def place(graph: Ordered, method: str, partitions: int) -> Placement:
    """The placement by one of METHODS."""
    return METHODS[method](graph, partitions) if partitions > 1 else RangePartitioner()


def send_owned(graph: Ordered, placement: Placement, partitions: int) -> list[Future]:
    """Every edge to the partition of its low end, for the exchange `owned`."""
    engine, both = graph.engine, graph.both
    if not isinstance(placement, list):
        return send(engine, "send-owned", "owned", ingest.send_owned, [(*own, placement) for own in both])
    known = list(zip(placement, engine.peek(placement, Parts.digest), strict=True))
    asked = [(degrees, *own) for degrees, own in zip(graph.degrees, known, strict=True)]
    answers = send(engine, "answer-parts", "known-parts", ingest.answer_parts, asked)
    tasks = [(*own, partitions, *parts) for own, parts in zip(both, known, strict=True)]
    return exchange(engine, "known-parts", answers, ingest.send_owned_to, tasks, forward="owned")


def _loads(graph: Ordered) -> list[Future]:
    """What each vertex takes of its partition: the edges that it owns."""
    sent = send(graph.engine, "send-out-degrees", "out-degrees", ranges.send_out_degrees, graph.both)
    return exchange(graph.engine, "out-degrees", sent, ranges.collect_out_degrees, graph.both)


def _ranges(graph: Ordered, load: Sequence[Future], partitions: int) -> RangePartitioner:
    if partitions == 1:
        return RangePartitioner()
    engine = graph.engine
    targets = ranges.cut_targets(engine.peek(load, _sum), partitions)
    firsts = engine.peek(graph.edges, attrgetter("first"))
    cuts = engine.map("cuts", ranges.cuts_within, list(zip(load, firsts, targets, strict=True)))
    return ranges.range_partitioner(engine.gather(cuts))


def groups_of(buckets: int) -> int:
    """Groups that take turns at streaming."""
    return min(-(-buckets // ABREAST), MOST_GROUPS)


def _workers(engine: Engine, active: Sequence[int], buckets: int) -> list[int]:
    """Where buckets walk: always at the same place, those that do it together at different ones."""
    groups = groups_of(buckets)
    return engine.in_turn([b // groups for b in active])


def _sum(counts: NDArray[np.int64]) -> int:
    return int(counts.sum())


def _unit_weights(graph: Ordered) -> list[Future]:
    return graph.engine.map("weights", neighbours.unit_weights, [(edges,) for edges in graph.edges])


def count_supports(graph: Ordered, partitions: int) -> list[Future]:
    """[buckets] BucketResults with the triangles of each edge, found with the vertices in ranges."""
    engine, everyone = graph.engine, range(partitions)
    homes = engine.homes and engine.homes[:partitions]
    sent = send_owned(graph, place(graph, "range", partitions), partitions)
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


def _support(results: publish.BucketResults) -> NDArray[np.int32]:
    return kernels.to_host(results.support)


def _neighbours(graph: Ordered, weights: Sequence[Future], load: Sequence[Future]) -> list[Future]:
    engine = graph.engine
    weighted = list(zip(graph.edges, weights, strict=True))
    sent = send(engine, "send-half-edges", "half-edges", neighbours.send_half_edges, weighted)
    tasks = list(zip(graph.edges, weights, load, strict=True))
    at = _workers(engine, range(len(tasks)), len(tasks))
    return exchange(engine, "half-edges", sent, neighbours.collect_neighbours, tasks, at)


def _told(
    engine: Engine,
    near: Sequence[Future],
    parts: Sequence[Future],
    name: str,
    function: Callable[..., Any],
    arguments: Sequence[Any],
    active: Sequence[int] | None = None,
) -> list[Future]:
    """The Parts of each bucket, or of those active, by `function`, which hears from all where their vertices are."""
    both = list(zip(near, parts, strict=True))
    active = range(len(both)) if active is None else active
    sent = send(engine, "answer-labels", name, neighbours.answer_parts, both)
    tasks = [(*both[b], *arguments) for b in active]
    return exchange(engine, name, sent, function, tasks, _workers(engine, active, len(both)), receivers=active)


def _taken(engine: Engine, parts: Sequence[Future]) -> NDArray[np.int64]:
    taken: NDArray[np.int64] = np.sum(engine.peek(parts, attrgetter("loads")), axis=0)
    return taken
