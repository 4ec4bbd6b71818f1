"""Shards on the cluster: edges go from buckets to groups, and λ comes back; see `tasks.shards.supports` for the order.

A group lies on one worker, `engine.homes` says on which, and on its GPU where GPUs compute. Every edge passes by every
group. Buckets are shown to groups in batches, a wave of one batch for each group at a time, and a worker has two of
them at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import attrgetter
from typing import Any

from .. import kernels
from ..tasks.ingest import OwnedRows, Put
from ..tasks.messages import Bundle
from ..tasks.publish import BucketResults
from ..tasks.shards import answers, halves, streams, supports
from ..tasks.shards.answers import EdgeIntervals
from ..tasks.shards.dealing import Dealing
from ..tasks.shards.halves import ShardCounts
from ..tasks.shards.supports import BucketSupports
from .engine import Engine, Future
from .exchange import exchange, send
from .partitioning import Ordered
from .telemetry import Events, Stage

__all__ = [
    "Shards",
    "Supported",
    "collect_intervals",
    "count_supports_by_shards",
    "count_triangles",
    "send_to_groups",
    "triangulate_shards",
]

BATCH = 2**22
"""Edges that pass by a group at a time, at least where there are as many;"""
LONGEST = 2
"""and the edges of a group by this: a task copies 4 bytes for each edge of the group."""


@dataclass(frozen=True)
class Supported:
    """The graph in its buckets, with the triangles of each edge."""

    dealing: Dealing
    sorted: list[Future]
    """[buckets] SortedEdges"""
    supports: list[Future]
    """[buckets] BucketSupports"""
    triangles: int
    edges: int
    """Edges with triangles."""
    put: Put
    """Where it lies."""


@dataclass(frozen=True)
class Shards:
    """The graph in its groups."""

    dealing: Dealing
    edges: list[Future]
    """[groups] ShardEdges, where groups compute"""
    rows: list[Future]
    """[groups] OwnedRows: where the edges that a group owns are published; beside the buckets"""
    supports: list[Future]
    """[buckets] BucketSupports"""
    counts: list[ShardCounts]
    triangles: int


def triangulate_shards(engine: Engine, events: Events, graph: Ordered, groups: int, shards: int) -> Shards:
    """Find every triangle once, and bring the edges to so many `groups` of `shards` shards in all.

    Raises OutOfRoom for graphs of more vertices, edges a group or triangles an edge than shards can count, and
    InternalError if a triangle was lost.
    """
    dealing = Dealing.of(graph.vertices, groups, shards)
    with events.stage("triangulate", 2 * groups + len(graph.edges)) as stage:
        return send_to_groups(engine, count_triangles(graph, dealing, stage), stage)


def count_triangles(graph: Ordered, dealing: Dealing, stage: Stage | None = None) -> Supported:
    """The triangles of each edge, by the groups of `dealing`."""
    engine, groups = graph.engine, range(dealing.groups)
    at = _homes(engine, dealing)
    found = engine.map("sort-edges", streams.sort_edges, [(own,) for own in graph.oriented])
    sent = send(engine, "send-edges", "closing", streams.send_edges, [(own, dealing) for own in found])
    engine.spread(len(groups))
    with engine.on_device():
        owners = [(g, dealing, _put(engine)) for g in groups]
        closing = exchange(engine, "closing", sent, supports.collect_closing, owners, at)
        del sent
        engine.wait(closing, stage)
        sizes = engine.peek(found, len)
        batches = batches_of(sizes, dealing.groups)
        ends, totals = _pass_by(engine, found, closing, batches, at)
        closed = send(engine, "send-closed", "closed", supports.send_sums, list(zip(closing, ends, strict=True)), at)
    engine.spread(len(found))
    arguments = [(found[b], dealing, totals[k], start) for b, (k, start) in enumerate(places_of(batches, sizes))]
    by_bucket = exchange(engine, "closed", closed, supports.collect_supports, arguments)
    del closing, closed, totals, arguments
    engine.wait(by_bucket, stage)
    sums = engine.peek(by_bucket, _sums)
    triangles = supports.check_triangles([total for total, _ in sums], engine.peek(ends, attrgetter("triangles")))
    return Supported(dealing, found, by_bucket, triangles, sum(edges for _, edges in sums), graph.put)


def batches_of(sizes: Sequence[int], groups: int) -> list[list[int]]:
    """Buckets, which have so many edges, in runs that pass by a group together."""
    most = max(BATCH, sum(sizes) // (LONGEST * groups))
    batches: list[list[int]] = []
    room = 0
    for b, size in enumerate(sizes):
        if not batches or size > room:
            batches.append([])
            room = most
        batches[-1].append(b)
        room -= size
    return batches


def places_of(batches: Sequence[Sequence[int]], sizes: Sequence[int]) -> list[tuple[int, int]]:
    """[buckets] the batch of each, and how many edges come before it there."""
    return [
        (k, start) for k, own in enumerate(batches) for start in accumulate((sizes[b] for b in own[:-1]), initial=0)
    ]


def _put(engine: Engine) -> Put:
    """Where groups lie."""
    return kernels.to_device if engine.capacity.device_bytes else kernels.to_host


def _homes(engine: Engine, dealing: Dealing) -> list[int] | None:
    """[groups] worker of each; None where the scheduler may choose."""
    homes = engine.homes or []
    return homes[: dealing.groups] if len(homes) >= dealing.groups else None


def _pass_by(
    engine: Engine,
    found: Sequence[Future],
    closing: Sequence[Future],
    batches: Sequence[Sequence[int]],
    at: Sequence[int] | None,
) -> tuple[list[Future], list[Future]]:
    """Show every batch to every group; gives the last Counted of each group, and for each batch what all counted there.

    Groups begin with different batches, so that no worker is asked by all of them at once. A worker keeps what it has
    fetched until all tasks that take it are done: so each wave has copies of its own, which are let go after it. A
    copy stands beside its original, in the same memory.
    """
    groups, waves = range(len(closing)), len(batches)
    states: list[Future | None] = [None for _ in groups]
    totals: list[Future | None] = [None for _ in batches]
    before: list[Future] = []
    for wave in range(waves):
        shown = [(wave + g * waves // len(groups)) % waves for g in groups]
        batch: dict[int, list[Future]] = {}
        for k in sorted(set(shown)):
            batch[k] = engine.map("stream", attrgetter("stream"), [(found[b],) for b in batches[k]], soon=True)
        tasks = [(closing[g], batch[shown[g]], states[g]) for g in groups]
        counted = engine.map("count-closed", supports.count_streams, tasks, at)
        partials = engine.map("partial", attrgetter("partial"), [(own,) for own in counted], soon=True)
        wanted = [(k, totals[k], [partials[g] for g in groups if shown[g] == k]) for k in batch]
        added = engine.map("add-partials", supports.add_partials, [own for _, *own in wanted], soon=True)
        for (k, *_), total in zip(wanted, added, strict=True):
            totals[k] = total
        states = list(counted)
        del batch, tasks, counted, partials, wanted
        engine.wait(before)  # two waves at a time
        before = added
    engine.wait(before)
    return [own for own in states if own is not None], [own for own in totals if own is not None]


def send_to_groups(engine: Engine, graph: Supported, stage: Stage | None = None) -> Shards:
    """Bring every edge with triangles to the groups of its ends."""
    dealing = graph.dealing
    at = _homes(engine, dealing)
    tasks = [(*own, dealing) for own in zip(graph.sorted, graph.supports, strict=True)]
    sent = send(engine, "send-halves", "halves", halves.send_halves, tasks)
    engine.spread(dealing.groups)
    with engine.on_device():
        arguments = [(g, dealing, graph.edges, _put(engine), graph.put) for g in range(dealing.groups)]
        built = exchange(engine, "halves", sent, halves.build_edges, arguments, at)
        del sent
        engine.wait(built, stage)
        edges, rows = (
            engine.map(name, attrgetter(part), [(own,) for own in built], at)
            for name, part in (("shard-edges", "edges"), ("rows-to-publish", "rows"))
        )
        counts = engine.peek(built, attrgetter("counts"))
    engine.wait([*edges, *rows])
    return Shards(dealing, edges, rows, graph.supports, counts, graph.triangles)


def collect_intervals(
    engine: Engine, rows: Sequence[Future], supports: Sequence[Future], intervals: Sequence[Future]
) -> list[Future]:
    """Bring λ back to the buckets: [buckets] BucketResults. `rows` and `intervals` [groups] are those of the edges that
    each group owns, `supports` [buckets] those of all edges.
    """
    engine.spread(len(supports))
    ends = list(zip(rows, intervals, strict=True))
    at = engine.homes and engine.homes[: len(rows)]
    sent = send(engine, "send-results", "results", _send_intervals, ends, at)
    results = exchange(engine, "results", sent, answers.collect_intervals, [(own,) for own in supports])
    engine.wait(results)
    return results


def count_supports_by_shards(graph: Ordered, groups: int) -> list[Future]:
    """[buckets] BucketResults with the triangles of each edge, found by so many groups."""
    dealing = Dealing.of(graph.vertices, groups, groups)
    found = count_triangles(graph, dealing).supports
    return graph.engine.map("supports", _as_results, [(own,) for own in found])


def _sums(found: BucketSupports) -> tuple[int, int]:
    return found.total, found.closed


def _send_intervals(rows: OwnedRows, state: Any) -> Bundle[EdgeIntervals]:
    return answers.send_intervals(rows, state.low, state.high)


def _as_results(found: BucketSupports) -> BucketResults:
    return BucketResults(found.bucket, found.support, found.support, found.support)
