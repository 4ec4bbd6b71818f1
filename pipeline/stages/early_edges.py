"""Edge files are encoded, except for λ, while GPUs bound the graph. The processors would wait meanwhile."""

from __future__ import annotations

from collections.abc import Sequence

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
from .task_engine import Future, TaskEngine, start_behind


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

    `degrees` [buckets] are BucketDegrees, `supports` [buckets] arrays [edges]. What needs a kernel is done when this
    returns.
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
    tasks = [(how, file, known[b]) for b, file in parts]
    return start_behind(engine, "encode-edges", encode_known, tasks, None if at is None else [at[b] for b, _ in parts])


def _send_supports(owned: OwnedRows, subgraph: Subgraph) -> Bundle[EdgeValues]:
    support = kernels.to_host(subgraph.support) if kernels.on_host(owned.row) else subgraph.support
    return publish.send_supports(owned, support)
