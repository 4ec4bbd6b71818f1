"""The stage `triangulate` of partitions: finds every triangle once, and makes each partition's subgraph with ghosts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter

from ...tasks import ingest
from ...tasks.graph import subgraph, triangulate
from ...tasks.graph.subgraph import PartitionCounts
from ...tasks.graph.whole_graph import whole_graph
from ..monitor.events import Events, Stage
from .exchange import exchange, send
from .task_engine import Future, TaskEngine


def triangulate_partitions(
    engine: TaskEngine,
    events: Events,
    owned: Sequence[Future],
    whole: bool = False,
    count: Callable[[Future], Future] | None = None,
) -> tuple[list[Future], list[Future], list[PartitionCounts]]:
    """Find every triangle once. Returns [partitions] OwnedRows, Subgraph and PartitionCounts.

    `owned` [partitions] are OwnedEdges. From here to the end of bounding all arrays are on the device that computes.
    With `whole` the only partition becomes a WholeGraph instead of a Subgraph: peeling on GPUs needs nothing else.
    `count` gives the triangles of each edge of the only partition, if several workers count them.
    """
    partitions = len(owned)
    engine = engine.for_tasks(partitions)
    with events.stage("triangulate", 2 * partitions) as stage:
        rows = engine.map("rows-to-publish", ingest.rows_to_publish, [(o,) for o in owned])
        holding = engine.for_partitions()
        if whole:
            subgraphs = _count_whole(holding, owned, stage, count)
        elif count is not None:
            counted = holding.map("counted", triangulate.counted_before, [(owned[0], count(owned[0]))])
            subgraphs = holding.map("subgraph", subgraph.build_subgraph, [(owned[0], counted[0], 1, {})])
            holding.wait(subgraphs, stage)
        else:
            subgraphs = build_subgraphs(holding, owned, stage)
        counts = holding.peek(subgraphs, attrgetter("counts"))
    return rows, subgraphs, counts


def _count_whole(
    engine: TaskEngine, owned: Sequence[Future], stage: Stage, count: Callable[[Future], Future] | None
) -> list[Future]:
    """The only partition as a WholeGraph, on the GPU."""
    workers = engine.partition_workers
    owned = engine.map("to-device", ingest.owned_to_device, [(o,) for o in owned], workers)
    engine.wait(owned, stage)
    arguments = [(o,) if count is None else (o, count(o)) for o in owned]
    graphs = engine.map("count-triangles", whole_graph, arguments, workers)
    engine.wait(graphs, stage)
    return graphs


def build_subgraphs(engine: TaskEngine, owned: Sequence[Future], stage: Stage | None = None) -> list[Future]:
    """[partitions] Subgraph, in two exchanges among the partitions."""
    partitions, workers = len(owned), engine.partition_workers
    if engine.capacity.device_bytes:
        owned = engine.map("to-device", ingest.owned_to_device, [(o,) for o in owned], workers)
    lists = send(
        engine,
        "send-lists",
        "lists",
        triangulate.send_lists,
        [(o, partitions) for o in owned],
        workers,
    )
    counted = exchange(engine, "lists", lists, triangulate.count_triangles, [(o,) for o in owned], workers)
    engine.wait(counted, stage)
    replies = send(engine, "replies", "subgraph", attrgetter("replies"), [(c,) for c in counted])
    arguments = [(o, c, partitions) for o, c in zip(owned, counted, strict=True)]
    subgraphs = exchange(engine, "subgraph", replies, subgraph.build_subgraph, arguments, workers)
    engine.wait(subgraphs, stage)
    return subgraphs
