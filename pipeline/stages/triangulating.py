"""The stage `triangulate` of a graph that one worker holds: counts triangles, and leaves out edges without any."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter

from ...tasks import ingest
from ...tasks.graph.subgraph import PartitionCounts, build_subgraph
from ...tasks.graph.triangulate import count_triangles
from ...tasks.graph.whole_graph import whole_graph
from ..monitor.events import Events
from .task_engine import Future, TaskEngine


def triangulate(
    engine: TaskEngine,
    events: Events,
    owned: Future,
    whole: bool = False,
    count: Callable[[Future], Future] | None = None,
) -> tuple[Future, Future, PartitionCounts]:
    """Find every triangle once. Returns OwnedRows, Subgraph and PartitionCounts.

    `owned` is OwnedEdges. From here to the end of bounding all arrays are on the device that computes. With `whole` the
    result is a WholeGraph instead of a Subgraph: peeling on GPUs needs nothing else. `count` gives the triangles of
    each edge, if several workers count them.
    """
    engine = engine.for_tasks(1)
    holding, at = engine.for_partitions(), engine.partition_workers and engine.partition_workers[:1]
    with events.stage("triangulate", 2) as stage:
        (rows,) = engine.map("rows-to-publish", ingest.rows_to_publish, [(owned,)])
        if engine.capacity.device_bytes:
            (owned,) = holding.map("to-device", ingest.owned_to_device, [(owned,)], at)
        if whole:
            holding.wait([owned], stage)
            known = () if count is None else (count(owned),)
            found = holding.map("count-triangles", whole_graph, [(owned, *known)], at)
        else:
            counted = holding.map("counted", count_triangles, [(owned,)], at) if count is None else [count(owned)]
            holding.wait(counted, stage)
            found = holding.map("subgraph", build_subgraph, [(owned, counted[0])], at)
        holding.wait(found, stage)
        (counts,) = holding.peek(found, attrgetter("counts"))
    return rows, found[0], counts
