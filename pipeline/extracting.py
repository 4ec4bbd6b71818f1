"""The stage between λ and its tables: the hierarchy of components, the DN-graphs, and the triangles inside these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..tasks import dense
from ..tasks.dense import BucketGroups
from ..tasks.dense.triangles import Sums
from ..tasks.ingest import Put
from ..tasks.messages import Bundle
from ..tasks.numbering import BucketEdges
from ..tasks.publish import BucketResults
from .engine import Engine, Future
from .exchange import exchange, send
from .manifest import DenseRecord
from .partitioning import Ordered, count_supports, put_in_order
from .sharding import count_supports_by_shards
from .telemetry import Events

__all__ = ["Groups", "extract"]

ABREAST = 4
"""Outlines that a task joins: it holds as many times the vertices that buckets share, at most, whatever the buckets."""


@dataclass(frozen=True)
class Groups:
    """The dense groups of all buckets."""

    found: list[Future]
    """[buckets] BucketGroups"""
    triangles: list[Future]
    """[buckets] triangles inside each of its DN-graphs"""
    highest: int
    """The highest λ."""
    record: DenseRecord


def extract(
    engine: Engine,
    events: Events,
    edges: Sequence[Future],
    degrees: Sequence[Future],
    results: Sequence[Future],
    starts: NDArray[np.int64],
    partitions: int,
    put: Put,
) -> Groups:
    """Find the dense groups in the buckets' BucketEdges, with their BucketDegrees and BucketResults of known λ.

    `starts` and `put` as for ingest; the graph was cut into so many `partitions`, and what is left of it is cut into
    fewer.
    """
    everyone = range(len(edges))
    with events.stage("extract", 2 * len(edges)) as stage, engine.on_device():
        highest = max(engine.peek(results, _highest), default=0)
        trees = engine.map("grow-tree", dense.grow_tree, list(zip(edges, degrees, results, strict=True)))
        own = [(tree, b // ABREAST) for b, tree in enumerate(trees)]
        sent = send(engine, "send-outline", "outlines", dense.send_outline, own)
        del own
        engine.wait(trees, stage)
        while (tasks := -(-len(sent) // ABREAST)) > 1:
            ways = [(t, t // ABREAST) for t in range(tasks)]
            sent = exchange(engine, "outlines", sent, dense.join_outlines, ways, forward="outlines")
        (merged,) = exchange(engine, "outlines", sent, dense.merge_outlines, [(starts, highest)])
        del sent
        answers = send(engine, "answer-outlines", "answers", dense.answer_outlines, [(merged, highest)])
        found = exchange(engine, "answers", answers, dense.collect_groups, [(tree, highest) for tree in trees])
        del answers, merged
        kept = engine.map("dn-edges", dense.dn_edges, list(zip(edges, trees, found, strict=True)))
        del trees
        counts = engine.peek(kept, _count)
        total, left = sum(engine.peek(edges, len)), sum(counts)
        graph = put_in_order(
            engine, engine.map("dn-edges-alone", _edges, [(own,) for own in kept]), int(starts[-1]), put
        )
        supports = supports_of(graph, max(1, -(-partitions * left // max(total, 1))))
        sums = send(
            engine,
            "send-triangles",
            "triangles",
            _send_triangles,
            [(found[b], starts, highest, kept[b], supports[b]) for b in everyone],
        )
        triangles = exchange(engine, "triangles", sums, dense.collect_triangles, [(own,) for own in found])
        engine.wait(triangles, stage)
        sizes = np.array(engine.peek(found, _sizes), np.int64).reshape(-1, 4).sum(axis=0).tolist()
    return Groups(found, triangles, highest, DenseRecord(**dict(zip(DenseRecord.model_fields, sizes, strict=True))))


def supports_of(graph: Ordered, partitions: int) -> list[Future]:
    """[buckets] BucketResults with the triangles of each edge, found in so many partitions."""
    if partitions == 1:
        return count_supports(graph, partitions)
    return count_supports_by_shards(graph, partitions)


def _highest(results: BucketResults) -> int:
    return int(results.low.max()) if len(results) else 0


def _count(kept: tuple[BucketEdges, NDArray[np.int32]]) -> int:
    return len(kept[0])


def _edges(kept: tuple[BucketEdges, NDArray[np.int32]]) -> BucketEdges:
    return kept[0]


def _send_triangles(
    groups: BucketGroups,
    starts: NDArray[np.int64],
    highest: int,
    kept: tuple[BucketEdges, NDArray[np.int32]],
    supports: BucketResults,
) -> Bundle[Sums]:
    return dense.send_triangles(groups, starts, highest, kept[1], supports.support)


def _sizes(groups: BucketGroups) -> tuple[int, int, int, int]:
    """In the order of DenseRecord."""
    components = groups.components
    roots, graphs = int((components.parent < 0).sum()), int(components.is_dn_graph.sum())
    return len(components), roots, graphs, int(groups.is_member.sum())
