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


class EarlyEdges:
    """The edge files of all buckets, encoded except for λ once `start` is called."""

    def __init__(
        self,
        engine: TaskEngine,
        buckets: Buckets,
        degrees: Sequence[Future],
        supports: Sequence[Future],
        how: TableFormat,
    ) -> None:
        """`degrees` [buckets] are BucketDegrees, `supports` [buckets] arrays [edges]. What needs a kernel is done when
        this returns.
        """
        self._engine, self._how = engine, how
        self._at = engine.bucket_workers(len(buckets.edges))
        names = find_names(engine, buckets, degrees, how.source.kind)
        own = list(zip(buckets.edges, buckets.ids, names, supports, strict=True))
        self._known: list[Future] = engine.map("known-edges", known_edges, own, self._at)
        del names, own
        engine.wait(self._known)
        self._encoded: list[Future] | None = None

    def start(self) -> None:
        """Start the tasks, unless they were started before."""
        if self._encoded is not None:
            return
        parts = [(b, file) for b in range(len(self._known)) for file in range(self._how.files)]
        tasks = [(self._how, file, self._known[b]) for b, file in parts]
        at = None if self._at is None else [self._at[b] for b, _ in parts]
        self._encoded = start_behind(self._engine, "encode-edges", encode_known, tasks, at)
        self._known = []

    @property
    def encoded(self) -> list[Future]:
        """[buckets × files] EncodedColumns. Starts the tasks if nothing else has."""
        self.start()
        return self._encoded or []


def _send_supports(owned: OwnedRows, subgraph: Subgraph) -> Bundle[EdgeValues]:
    support = kernels.to_host(subgraph.support) if kernels.on_host(owned.row) else subgraph.support
    return publish.send_supports(owned, support)
