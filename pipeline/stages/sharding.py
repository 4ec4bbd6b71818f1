"""The stage `triangulate` of shards: sends edges from buckets to groups of shards, and λ back to the buckets.

`tasks.shards.supports` describes the order of the exchanges. A group is on one worker, which `engine.partition_workers`
names, and on its GPU if GPUs compute. Every edge is streamed past every group. The buckets are streamed in batches, in
waves of one batch for each group. A worker holds at most two batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import attrgetter
from typing import Any

from ...tasks.device import MemorySpace
from ...tasks.ingest import OwnedRows
from ...tasks.messages import Bundle
from ...tasks.shards import group_edges, supports
from ...tasks.shards.assignment import ShardAssignment
from ...tasks.shards.group_edges import EdgeIntervals, ShardCounts
from ...tasks.shards.supports import BucketSupports
from ..events import Events, Stage
from .exchange import exchange, send
from .layout import Layout
from .partitioning import OrderedGraph
from .task_engine import Future, TaskEngine

MIN_BATCH_EDGES = 2**22
"""Edges of a batch; fewer if the graph is smaller."""
MAX_GROUP_SHARE = 2
"""A batch has at most the edges of a group divided by this: a task copies 4 bytes for each edge of the group."""


@dataclass(frozen=True)
class CountedGraph:
    """The graph in its buckets, with the number of triangles of each edge."""

    assignment: ShardAssignment
    sorted: list[Future]
    """[buckets] SortedEdges"""
    supports: list[Future]
    """[buckets] BucketSupports"""
    triangles: int
    edges: int
    """Edges with triangles."""
    space: MemorySpace
    """The memory of the buckets' arrays."""


@dataclass(frozen=True)
class Shards:
    """The graph in its groups."""

    assignment: ShardAssignment
    edges: list[Future]
    """[groups] ShardEdges, on the device that computes"""
    rows: list[Future]
    """[groups] OwnedRows: the bucket and row of each edge that a group owns, in the memory of the buckets' arrays"""
    supports: list[Future]
    """[buckets] BucketSupports"""
    counts: list[ShardCounts]
    triangles: int


def triangulate_shards(engine: TaskEngine, events: Events, graph: OrderedGraph, groups: int, shards: int) -> Shards:
    """Find every triangle once, and send the edges to `groups` groups with `shards` shards in total.

    Raises OutOfRoom if the graph has more vertices, a group more edges, or an edge more triangles than shards can
    count. Raises InternalError if a triangle is lost.
    """
    assignment = ShardAssignment.of(graph.vertices, groups, shards)
    with events.stage("triangulate", 2 * groups + len(graph.edges)) as stage:
        return send_to_groups(engine, count_triangles(graph, assignment, stage), stage)


def count_triangles(graph: OrderedGraph, assignment: ShardAssignment, stage: Stage | None = None) -> CountedGraph:
    """Count the triangles of each edge in the groups of `assignment`."""
    engine, groups = graph.engine, range(assignment.groups)
    at = _homes(engine, assignment)
    bucket_at = engine.bucket_workers(len(graph.oriented))
    found = engine.map("sort-edges", supports.sort_edges, [(own,) for own in graph.oriented], bucket_at)
    sent = send(engine, "send-edges", "closing", supports.send_edges, [(own, assignment) for own in found], bucket_at)
    holding = engine.for_tasks(len(groups)).for_partitions()
    owners = [(g, assignment, _group_space(engine)) for g in groups]
    closing = exchange(holding, "closing", sent, supports.collect_owned_edges, owners, at)
    del sent
    holding.wait(closing, stage)
    sizes = holding.peek(found, len)
    batches = make_batches(sizes, assignment.groups)
    ends, totals = _stream_batches(holding, found, closing, batches, at)
    closed = send(holding, "send-closed", "closed", supports.send_sums, list(zip(closing, ends, strict=True)), at)
    engine = engine.for_tasks(len(found))
    arguments = [
        (found[b], assignment, totals[k], start) for b, (k, start) in enumerate(positions_in_batches(batches, sizes))
    ]
    by_bucket = exchange(engine, "closed", closed, supports.collect_supports, arguments, bucket_at)
    del closing, closed, totals, arguments
    engine.wait(by_bucket, stage)
    sums = engine.peek(by_bucket, _sums)
    triangles = supports.check_triangles([total for total, _ in sums], engine.peek(ends, attrgetter("triangles")))
    return CountedGraph(assignment, found, by_bucket, triangles, sum(edges for _, edges in sums), graph.space)


def make_batches(sizes: Sequence[int], groups: int) -> list[list[int]]:
    """Batches of buckets, which are streamed together. `sizes` [buckets] are the edges of each bucket."""
    most = max(MIN_BATCH_EDGES, sum(sizes) // (MAX_GROUP_SHARE * groups))
    batches: list[list[int]] = []
    room = 0
    for b, size in enumerate(sizes):
        if not batches or size > room:
            batches.append([])
            room = most
        batches[-1].append(b)
        room -= size
    return batches


def triangulate_tasks(layout: Layout) -> int:
    """Tasks of `triangulate_shards`. Each bucket is streamed past each group, in waves of as many batches as there are
    groups.
    """
    groups, buckets = layout.partitions, layout.buckets
    waves = len(make_batches([layout.edges // max(1, buckets)] * buckets, groups))
    owned = buckets + layout.exchange(buckets, groups) + layout.peek(buckets)
    streamed = min(groups, waves) * (buckets + waves) + 2 * groups * waves
    counted = layout.exchange(groups, buckets) + layout.peek(buckets + groups)
    sent = layout.exchange(buckets, groups) + 2 * groups + layout.peek(groups)
    return owned + streamed + counted + sent


def positions_in_batches(batches: Sequence[Sequence[int]], sizes: Sequence[int]) -> list[tuple[int, int]]:
    """[buckets] the batch of each bucket, and the number of edges before it in the batch."""
    return [
        (k, start) for k, own in enumerate(batches) for start in accumulate((sizes[b] for b in own[:-1]), initial=0)
    ]


def _group_space(engine: TaskEngine) -> MemorySpace:
    """The memory of the groups' arrays."""
    return MemorySpace.DEVICE if engine.capacity.device_bytes else MemorySpace.HOST


def _homes(engine: TaskEngine, assignment: ShardAssignment) -> list[int] | None:
    """[groups] the worker of each group; None if the scheduler may choose."""
    homes = engine.partition_workers or []
    return homes[: assignment.groups] if len(homes) >= assignment.groups else None


def _stream_batches(
    engine: TaskEngine,
    found: Sequence[Future],
    closing: Sequence[Future],
    batches: Sequence[Sequence[int]],
    at: Sequence[int] | None,
) -> tuple[list[Future], list[Future]]:
    """Stream every batch past every group.

    Returns the last TriangleSums of each group, and for each batch the sum of the counts of all groups.

    The groups start with different batches, so that no worker serves all groups at the same time. A worker keeps a
    fetched array until all tasks that need it have ended. So each wave uses its own copies, which are released after
    the wave. A copy is on the same worker as its original.
    """
    groups, waves = range(len(closing)), len(batches)
    states: list[Future | None] = [None for _ in groups]
    totals: list[Future | None] = [None for _ in batches]
    before: list[Future] = []
    for wave in range(waves):
        current = [(wave + g * waves // len(groups)) % waves for g in groups]
        batch: dict[int, list[Future]] = {}
        for k in sorted(set(current)):
            batch[k] = engine.map("stream", attrgetter("stream"), [(found[b],) for b in batches[k]], soon=True)
        tasks = [(closing[g], batch[current[g]], states[g]) for g in groups]
        counted = engine.map("count-closed", supports.count_streams, tasks, at)
        partials = engine.map("partial", attrgetter("partial"), [(own,) for own in counted], soon=True)
        partial_sums = [(k, totals[k], [partials[g] for g in groups if current[g] == k]) for k in batch]
        added = engine.map("add-partials", supports.add_partials, [own for _, *own in partial_sums], soon=True)
        for (k, *_), total in zip(partial_sums, added, strict=True):
            totals[k] = total
        states = list(counted)
        del batch, tasks, counted, partials, partial_sums
        engine.wait(before)  # at most two waves run at a time
        before = added
    engine.wait(before)
    return [own for own in states if own is not None], [own for own in totals if own is not None]


def send_to_groups(engine: TaskEngine, graph: CountedGraph, stage: Stage | None = None) -> Shards:
    """Send every edge with triangles to the groups of its ends."""
    assignment, engine = graph.assignment, engine.for_tasks(len(graph.sorted))
    at = _homes(engine, assignment)
    tasks = [(*own, assignment) for own in zip(graph.sorted, graph.supports, strict=True)]
    bucket_at = engine.bucket_workers(len(tasks))
    sent = send(engine, "send-halves", "halves", group_edges.send_supported_edges, tasks, bucket_at)
    holding = engine.for_tasks(assignment.groups).for_partitions()
    arguments = [(g, assignment, graph.edges, _group_space(engine), graph.space) for g in range(assignment.groups)]
    built = exchange(holding, "halves", sent, group_edges.build_group_edges, arguments, at)
    del sent
    holding.wait(built, stage)
    edges, rows = (
        holding.map(name, attrgetter(part), [(own,) for own in built], at)
        for name, part in (("shard-edges", "edges"), ("rows-to-publish", "rows"))
    )
    counts = holding.peek(built, attrgetter("counts"))
    engine.wait([*edges, *rows])
    return Shards(assignment, edges, rows, graph.supports, counts, graph.triangles)


def collect_intervals(
    engine: TaskEngine, rows: Sequence[Future], supports: Sequence[Future], intervals: Sequence[Future]
) -> list[Future]:
    """Send λ back to the buckets. Returns [buckets] BucketResults.

    `rows` and `intervals` [groups] describe the edges that each group owns. `supports` [buckets] are BucketSupports.
    """
    engine = engine.for_tasks(len(supports))
    ends = list(zip(rows, intervals, strict=True))
    at = engine.partition_workers and engine.partition_workers[: len(rows)]
    sent = send(engine, "send-results", "results", _send_intervals, ends, at)
    at = engine.bucket_workers(len(supports))
    results = exchange(engine, "results", sent, group_edges.collect_intervals, [(own,) for own in supports], at)
    engine.wait(results)
    return results


def count_supports_by_shards(graph: OrderedGraph, groups: int) -> list[Future]:
    """[buckets] BucketSupports, counted by `groups` groups of one shard each."""
    return count_triangles(graph, ShardAssignment.of(graph.vertices, groups, groups)).supports


def _sums(found: BucketSupports) -> tuple[int, int]:
    return found.total, found.closed


def _send_intervals(rows: OwnedRows, state: Any) -> Bundle[EdgeIntervals]:
    return group_edges.send_intervals(rows, state.low, state.high)
