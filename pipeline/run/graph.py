"""Makes the graph for bounding from the input, or from the latest checkpoint.

Until the graph is complete, a run saves its edges in checkpoints: first in buckets, then on one worker. A later
checkpoint replaces an earlier one, and the checkpoint of the graph replaces both.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from ...tasks.errors import StateLost
from ...tasks.graph import PartitionCounts, count_triangles
from ..checkpoint.checkpoint import Checkpoint, Graph, edges_of, facts_of
from ..nightly.night import refuse_few_edges
from ..opening.context import RunContext
from ..stages import ingesting, partitioning
from ..stages.attributes import read_isolated
from ..stages.ingesting import Buckets, RowCounts
from ..stages.publishing import Partitions
from ..stages.task_engine import Future

if TYPE_CHECKING:
    from ...tasks.shards.group_edges import ShardCounts

_NUMBERED = "edges"
"""Name of the checkpoint of the edges in buckets."""
_OWNED = "owned"
"""Name of the checkpoint of the edges on one worker."""


@dataclass(frozen=True)
class _Numbered:
    """The clean edges in buckets, with dense numbers in place of ids."""

    rows: RowCounts
    buckets: Buckets


@dataclass(frozen=True)
class _Owned:
    """The same edges on one worker, and the buckets, which publishing needs."""

    numbered: _Numbered
    degrees: list[Future]
    """[buckets] BucketDegrees"""
    edges: Future
    """OwnedEdges"""


def find_graph(run: RunContext, checkpoint: Checkpoint) -> Graph:
    """The graph on one worker, or in groups of shards. Saves checkpoints when they are due."""
    graph = checkpoint.load_graph(run.engine, run.events)
    if graph is None:
        graph = _build_graph(run, checkpoint)  # its edges are released on return, before the graph is saved
        if checkpoint.due(run.events, "graph"):
            checkpoint.save_graph(run.engine, run.events, graph)
    if run.plan.ingest_in_parts:  # a graph that was saved or restored is on the GPU
        graph.buckets.move_to_host(run.engine)
    run.finish_loading("triangulate")
    return graph


def _build_graph(run: RunContext, checkpoint: Checkpoint) -> Graph:
    owned = _load_owned(run, checkpoint)
    if owned is None:
        numbered = _load_numbered(run, checkpoint) or _read_and_number(run, checkpoint)
        if (before := run.call.before) is not None:
            edges = sum(run.engine.peek(numbered.buckets.edges, len))
            refuse_few_edges(before, run.settings.nightly, edges)
        if not run.plan.finds_lambda:
            return _count_degrees(run, numbered)
        if run.plan.in_shards:
            return _build_shards(run, numbered)
        owned = _partition(run, checkpoint, numbered)
    if run.plan.ingest_in_parts:  # edges that were saved or restored are on the GPU
        owned.numbered.buckets.move_to_host(run.engine)
    run.finish_loading("triangulate")
    count = partial(_count_by_shares, run) if run.plan.in_bands else None
    rows, subgraph, counts = partitioning.triangulate(run.engine, run.events, owned.edges, run.plan.is_whole, count)
    partitions = Partitions([rows], owned.degrees)
    return Graph(owned.numbered.rows, owned.numbered.buckets, partitions, [subgraph], [counts], [])


def _count_by_shares(run: RunContext, owned: Future) -> Future:
    """The triangles of each edge, on several workers; on one if a worker is lost meanwhile."""
    from ..bounding.peel_bands import count_by_shares  # imports kernels for CPUs

    engine = run.engine.for_tasks(1)
    try:
        return count_by_shares(engine, owned, run.settings.bounding.carrier, run.plan.band_workers)
    except StateLost as error:
        error.__traceback__ = None  # Dask keeps the error, and its frames would keep the futures
        engine.refresh_workers()
        return engine.submit("count-triangles", count_triangles, owned)


def _read_and_number(run: RunContext, checkpoint: Checkpoint) -> _Numbered:
    engine, events, plan, source = run.engine, run.events, run.plan, run.source
    packed = ingesting.packs_rows(source, run.space)
    blocks, rows = ingesting.read(engine, events, source, plan.blocks, run.settings.input.nulls, run.space, packed)
    if run.settings.input.isolated and run.vertices is not None:
        blocks += read_isolated(engine, source, run.vertices, run.settings, len(blocks), run.space)
    run.finish_loading("number")
    buckets = ingesting.number(engine, events, source, blocks, plan.buckets, run.space)
    if checkpoint.due(events, _NUMBERED):
        parts = {"ids": buckets.ids, "edges": buckets.edges}
        checkpoint.save_step(engine, events, _NUMBERED, parts, facts_of(rows, buckets))
    return _Numbered(rows, buckets)


def _partition(run: RunContext, checkpoint: Checkpoint, numbered: _Numbered) -> _Owned:
    engine, events, plan, buckets = run.engine, run.events, run.plan, numbered.buckets
    run.finish_loading("number")
    edges, degrees = partitioning.partition(engine, events, buckets, run.space, plan.ingest_in_parts)
    if checkpoint.due(events, _OWNED):
        parts = {"ids": buckets.ids, "edges": buckets.edges, "degrees": degrees, "owned": [edges]}
        checkpoint.save_step(engine, events, _OWNED, parts, facts_of(numbered.rows, buckets))
        (edges,) = parts["owned"]
    return _Owned(numbered, degrees, edges)


def _build_shards(run: RunContext, numbered: _Numbered) -> Graph:
    from ..stages import sharding  # imports kernels

    engine, events, plan = run.engine, run.events, run.plan
    ordered = partitioning.order(engine, events, numbered.buckets, run.space)
    shards = sharding.triangulate_shards(engine, events, ordered, plan.partitions, plan.shards)
    partitions = Partitions(shards.rows, ordered.degrees)
    counts = [_partition_counts(own) for own in shards.counts]
    return Graph(numbered.rows, numbered.buckets, partitions, shards.edges, counts, shards.supports)


def _count_degrees(run: RunContext, numbered: _Numbered) -> Graph:
    """The graph for vertex programs alone, which have no partitions: buckets, and degrees of vertices."""
    degrees = partitioning.count_degrees(run.engine, run.events, numbered.buckets)
    return Graph(numbered.rows, numbered.buckets, Partitions([], degrees), [], [], [])


def _partition_counts(own: ShardCounts) -> PartitionCounts:
    """The counts of a group of shards. An edge with both ends in the group has two entries there."""
    inner = own.entries - own.edges
    return PartitionCounts(own.group, own.owned, inner, own.owned - inner, own.vertices)


def _load_numbered(run: RunContext, checkpoint: Checkpoint) -> _Numbered | None:
    return checkpoint.load_step(
        run.engine, run.events, _NUMBERED, lambda facts, futures: _Numbered(*edges_of(facts, futures))
    )


def _load_owned(run: RunContext, checkpoint: Checkpoint) -> _Owned | None:
    return checkpoint.load_step(
        run.engine,
        run.events,
        _OWNED,
        lambda facts, futures: _Owned(_Numbered(*edges_of(facts, futures)), futures["degrees"], futures["owned"][0]),
    )
