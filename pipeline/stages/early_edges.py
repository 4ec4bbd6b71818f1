"""Edge files are encoded, except for λ, while GPUs bound the graph. The processors would wait meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from ... import kernels
from ...tasks.graph.subgraph import Subgraph
from ...tasks.ingest import OwnedRows
from ...tasks.messages import Bundle
from ...tasks.publish import lambda_columns as publish
from ...tasks.publish.columns import EdgeValues
from ...tasks.publish.early import encode_known, known_edges
from ...tasks.publish.writing import TableFormat
from .exchange import exchange, send
from .ingesting import Buckets
from .publishing import Partitions, find_names
from .task_engine import Future, TaskEngine

_Part: TypeAlias = tuple[int, int]
"""A bucket, and a file of it."""


def collect_supports(
    engine: TaskEngine, buckets: Buckets, partitions: Partitions, subgraphs: Sequence[Future]
) -> list[Future]:
    """Send the supports of the partitions' edges to the buckets. Returns [buckets] arrays [edges]."""
    ends = list(zip(partitions.rows, subgraphs, strict=True))
    sent = send(engine, "send-supports", "supports", _send_supports, ends)
    own = [(edges,) for edges in buckets.edges]
    return exchange(engine, "supports", sent, publish.collect_supports, own, engine.bucket_workers(len(own)))


def encode_early(
    engine: TaskEngine,
    buckets: Buckets,
    degrees: Sequence[Future],
    supports: Sequence[Future],
    how: TableFormat,
) -> list[Future]:
    """Start to encode the edge files of all buckets, except for λ. Returns [buckets × files] EncodedColumns.

    `degrees` [buckets] are BucketDegrees, `supports` [buckets] arrays [edges]. Each worker keeps a thread for the tasks
    of the stages. What needs a kernel is done when this returns.
    """
    count = len(buckets.edges)
    at = engine.bucket_workers(count)
    names = find_names(engine, buckets, degrees, how.source.kind)
    known = engine.map(
        "known-edges", known_edges, list(zip(buckets.edges, buckets.ids, names, supports, strict=True)), at
    )
    del names
    engine.wait(known)
    parts = [(b, file) for b in range(count) for file in range(how.files)]
    encoded: dict[tuple[int, int], Future] = {}
    behind = engine.in_background()
    for wave in _waves(parts, at, max(1, engine.capacity.threads - 1)):
        tasks = [(how, file, known[b], before and encoded[before]) for (b, file), before in wave]
        places = None if at is None else [at[b] for (b, _), _ in wave]
        futures = behind.map("encode-edges", encode_known, tasks, places)
        encoded.update(zip((part for part, _ in wave), futures, strict=True))
    return [encoded[part] for part in parts]


def _waves(parts: Sequence[_Part], at: Sequence[int] | None, lanes: int) -> list[list[tuple[_Part, _Part | None]]]:
    """The parts in an order in which each worker encodes `lanes` of them at once: waves of parts, each with the part
    that must have been encoded before it, or None. `at` [buckets] are the workers.
    """
    of_worker: dict[int, list[_Part]] = {}
    for part in parts:
        of_worker.setdefault(0 if at is None else at[part[0]], []).append(part)
    longest = max(map(len, of_worker.values()), default=0)
    return [
        [
            (own[i], own[i - lanes] if i >= lanes else None)
            for own in of_worker.values()
            for i in range(first, min(first + lanes, len(own)))
        ]
        for first in range(0, longest, lanes)
    ]


def _send_supports(owned: OwnedRows, subgraph: Subgraph) -> Bundle[EdgeValues]:
    support = kernels.to_host(subgraph.support) if kernels.on_host(owned.row) else subgraph.support
    return publish.send_supports(owned, support)
