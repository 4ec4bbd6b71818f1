"""The stage `extract`: finds the hierarchy of components, the DN-graphs and their triangles from the λ of all edges.

All edges of a DN-graph have one λ, and edges of two DN-graphs never meet. So a triangle whose edges are all in
DN-graphs lies in one of them. The edges of DN-graphs are usually few. If they fit one worker, they go to one task,
which counts their triangles and answers the buckets: two exchanges. Otherwise groups of shards count them, as in the
stage `triangulate`.

The λ stage does not count these triangles, because that would cost time and memory. Peeling visits each of them once,
when its first edge is removed, but would have to store one more number for each edge.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...tasks import dense
from ...tasks.dense import BucketGroups, DnEdgeEnds, DnEdges, EdgeLevels, SupportSums
from ...tasks.device import MemorySpace
from ...tasks.graph import count_butterflies, count_triangles
from ...tasks.ids import order
from ...tasks.messages import Bundle, bundle
from ...tasks.publish.lambda_columns import BucketResults
from ..events import Events, Stage
from ..output.manifest import DenseRecord
from .exchange import Sent, exchange, forward, send
from .layout import Layout
from .partitioning import collect_owned, order_by_degree
from .task_engine import Future, SequentialEngine, TaskEngine

if TYPE_CHECKING:
    from ...tasks.shards.supports import BucketSupports

FAN_IN = 4
"""Outlines that one task joins. This bounds the memory of a task for any number of buckets."""


@dataclass(frozen=True)
class Groups:
    """The dense groups of all buckets."""

    found: list[Future]
    """[buckets] BucketGroups"""
    triangles: list[Future]
    """[buckets] int64, triangles inside each DN-graph of the bucket. If the graph has two sides: butterflies, and the
    vertices of the first side
    """
    highest: int
    """The highest λ."""
    record: DenseRecord


@dataclass(frozen=True)
class KnownLambda:
    """The graph in its buckets, with the λ of each edge."""

    edges: Sequence[Future]
    """[buckets] BucketEdges"""
    degrees: Sequence[Future]
    """[buckets] BucketDegrees"""
    results: Sequence[Future]
    """[buckets] BucketResults"""
    starts: NDArray[np.int64]
    """[buckets + 1] first dense number of each bucket"""


def extract(
    engine: TaskEngine,
    events: Events,
    graph: KnownLambda,
    partitions: int,
    space: MemorySpace,
    meanwhile: Callable[[], None] = lambda: None,
    two_sided: bool = False,
) -> Groups:
    """Find the dense groups of a graph that was cut into `partitions` partitions.

    If it is `two_sided`, λ counts butterflies, and so do the groups.

    `space` is the memory that holds the buckets' arrays. `meanwhile` starts tasks in the background.
    It is called once λ is in all buckets and the first tasks are started: a busy worker takes long to start a task.
    """
    edges, starts = graph.edges, graph.starts
    engine = engine.for_tasks(len(edges)).for_partitions(space)
    with events.stage("extract", 2 * len(edges)) as stage:
        trees, found, highest = find_components(engine, graph, meanwhile, stage)
        kept = engine.map("dn-edges", dense.dn_edges, list(zip(edges, trees, found, strict=True)))
        del trees
        total, inside = sum(engine.peek(edges, len)), sum(engine.peek(kept, len))
        count = max(1, -(-partitions * inside // max(total, 1)))
        if count == 1:
            sums = sum_in_one_task(engine.for_tasks(1), kept, starts, highest, space, two_sided)
        else:
            sums = sum_by_shards(engine, kept, found, starts, highest, count, space)
        del kept
        collect = dense.collect_butterflies if two_sided else dense.collect_triangles
        triangles = exchange(engine, "triangles", sums, collect, [(own,) for own in found])
        engine.wait(triangles, stage)
        record = record_of(engine, found)
    return Groups(found, triangles, highest, record)


def find_components(
    engine: TaskEngine,
    graph: KnownLambda,
    meanwhile: Callable[[], None] = lambda: None,
    stage: Stage | None = None,
) -> tuple[list[Future], list[Future], int]:
    """The components of {λ ≥ k} for each k: [buckets] BucketTree, [buckets] BucketGroups, and the highest λ.

    `graph.results` may be [buckets] EdgeLevels in place of λ.
    """
    highest = max(engine.peek(graph.results, _highest), default=0)
    trees = engine.map("grow-tree", dense.grow_tree, list(zip(graph.edges, graph.degrees, graph.results, strict=True)))
    sent = send(
        engine,
        "send-outline",
        "outlines",
        dense.send_outline,
        [(tree, b // FAN_IN) for b, tree in enumerate(trees)],
    )
    meanwhile()
    engine.wait(trees, stage)
    while (count := -(-len(sent.bundles) // FAN_IN)) > 1:
        joins = [(t, t // FAN_IN) for t in range(count)]
        joining = engine.for_tasks(count)
        sent = forward(joining, "outlines", sent, "outlines", dense.join_outlines, joins)
    (merged,) = exchange(engine.for_tasks(1), "outlines", sent, dense.merge_outlines, [(graph.starts, highest)])
    del sent
    answers = send(engine, "answer-outlines", "answers", dense.answer_outlines, [(merged, highest)])
    return (
        trees,
        exchange(engine, "answers", answers, dense.collect_groups, [(tree, highest) for tree in trees]),
        highest,
    )


def extract_tasks(layout: Layout) -> int:
    """Tasks of `extract`, if the edges of DN-graphs fit one task, which is usual."""
    buckets = layout.buckets
    grown, joined = 2 * buckets, buckets  # trees, and the outlines that they send
    while (receivers := -(-joined // FAN_IN)) > 1:
        grown += layout.forward(joined, receivers)
        joined = receivers
    trees = grown + layout.forward(joined, 1) + layout.exchange(1, buckets) + layout.peek(4 * buckets)
    triangles = layout.exchange(buckets, 1) + layout.forward(1, buckets)
    return trees + buckets + triangles


def tracks_tasks(layout: Layout) -> int:
    """Tasks that give new DN-graphs their tracks (`nightly.track_assignment`): one task numbers all of them."""
    buckets = layout.buckets
    return buckets + layout.exchange(buckets, 1) + layout.forward(1, buckets) + layout.peek(buckets)


def record_of(engine: TaskEngine, found: Sequence[Future]) -> DenseRecord:
    """The sizes of the groups of all buckets. `found` [buckets] are BucketGroups."""
    sizes = np.array(engine.peek(found, _sizes), np.int64).reshape(-1, 4).sum(axis=0).tolist()
    return DenseRecord(**dict(zip(DenseRecord.model_fields, sizes, strict=True)))


def sum_in_one_task(
    engine: TaskEngine,
    kept: Sequence[Future],
    starts: NDArray[np.int64],
    highest: int,
    space: MemorySpace,
    two_sided: bool = False,
) -> Sent:
    """One bundle of SupportSums for the exchange `triangles`. `kept` [buckets] are DnEdges."""
    sent = send(engine, "send-dn-edges", "dn-edges", dense.send_dn_edges, [(own,) for own in kept])
    return forward(engine, "dn-edges", sent, "triangles", _sum_here, [(starts, highest, space, two_sided)])


def _sum_here(
    starts: NDArray[np.int64], highest: int, space: MemorySpace, two_sided: bool, parts: Mapping[int, DnEdgeEnds]
) -> Bundle[SupportSums]:
    """Task: count the triangles, or butterflies, of the DN-graphs' edges, and sum them up by DN-graph."""
    if not parts:
        return bundle(0, {})
    ids, place, edges = dense.merge_dn_edges(parts)
    graph = order_by_degree(SequentialEngine(), [edges], edges.vertices, space)
    owned = collect_owned(graph)
    count = count_butterflies if two_sided else count_triangles
    left = dense.vertices_of_first_side(place, edges, len(ids)) if two_sided else None
    return dense.send_sums(0, starts, highest, ids, place[owned.row], count(owned), left)


def sum_by_shards(
    engine: TaskEngine,
    kept: Sequence[Future],
    found: Sequence[Future],
    starts: NDArray[np.int64],
    highest: int,
    groups: int,
    space: MemorySpace,
) -> Sent:
    """[buckets] bundles of SupportSums for the exchange `triangles`, counted by `groups` groups of shards."""
    from .sharding import count_supports_by_shards  # loads the kernels of shards

    edges = engine.map("dn-edges-alone", attrgetter("edges"), [(own,) for own in kept])
    graph = order_by_degree(engine, edges, int(starts[-1]), space)
    supports = count_supports_by_shards(graph, groups)
    tasks = [(own, starts, highest, *more) for own, *more in zip(found, kept, supports, strict=True)]
    return send(engine, "send-triangles", "triangles", _send_triangles, tasks)


def _send_triangles(
    groups: BucketGroups, starts: NDArray[np.int64], highest: int, kept: DnEdges, supports: BucketSupports
) -> Bundle[SupportSums]:
    return dense.send_sums(groups.bucket, starts, highest, kept.ids, kept.place, supports.support)


def _highest(results: BucketResults | EdgeLevels) -> int:
    return order.largest(results.low)


def _sizes(groups: BucketGroups) -> tuple[int, int, int, int]:
    """Sizes in the order of the fields of DenseRecord."""
    components = groups.components
    roots, graphs = int((components.parent < 0).sum()), int(components.is_dn_graph.sum())
    return len(components), roots, graphs, int(groups.is_member.sum())
