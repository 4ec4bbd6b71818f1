"""The stages of a run without a cluster: from Parquet to the subgraph, and from results to files.

The methods that find λ, which lie between the two, are in bounding.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgemill.pipeline.events import Events
from edgemill.pipeline.stages import exchange as exchanges
from edgemill.pipeline.stages import extracting, ingesting, partitioning, publishing
from edgemill.pipeline.stages.partitioning import OrderedGraph
from edgemill.pipeline.stages.publishing import EarlyEdges
from edgemill.pipeline.stages.task_engine import SequentialEngine
from edgemill.tasks import ingest as steps
from edgemill.tasks.device import MemorySpace
from edgemill.tasks.graph import Subgraph, build_subgraph, count_triangles
from edgemill.tasks.ingest.numbering import BucketEdges
from edgemill.tasks.inputs.sources import Source, plan_blocks
from edgemill.tasks.messages import Bundle, collect
from edgemill.tasks.publish import lambda_columns as publish
from edgemill.tasks.publish.writing import OutputFile, TableOptions


@dataclass(frozen=True)
class Ingested:
    """The graph in buckets and on one worker."""

    rows: ingesting.RowCounts
    buckets: ingesting.Buckets
    degrees: list[steps.BucketDegrees]
    owned: steps.OwnedEdges
    groups: list[steps.OwnedRows]
    """Rows of the edges, divided among the groups that publish them."""

    @property
    def ids(self) -> list[steps.BucketIds]:
        """[buckets]"""
        return self.buckets.ids

    @property
    def edges(self) -> list[BucketEdges]:
        """[buckets]"""
        return self.buckets.edges

    @property
    def starts(self) -> NDArray[np.int64]:
        """[buckets + 1] first dense number of each bucket."""
        return self.buckets.starts


def exchange(
    bundles: Iterable[Bundle[Any]], receivers: int, receive: Callable[[int, dict[int, Any]], Any]
) -> list[Any]:
    """Deliver bundles to each receiver; as many rows must arrive as are sent."""
    sent = list(bundles)
    mail = [collect(receiver, sent) for receiver in range(receivers)]
    assert sum(sum(b.rows.values()) for b in sent) == sum(len(part) for parts in mail for part in parts.values())
    return [receive(receiver, mail[receiver]) for receiver in range(receivers)]


def ingest(
    source: Source,
    groups: int = 1,
    buckets: int | None = None,
    rows_per_block: int = 2_000_000,
    space: MemorySpace = MemorySpace.HOST,
) -> Ingested:
    """From Parquet to all edges on one worker, with as many buckets as groups unless given."""
    engine, events = SequentialEngine(), Events()
    blocks, rows = ingesting.read(engine, events, source, plan_blocks(source, rows_per_block), "drop", space)
    made = ingesting.number(engine, events, source, blocks, buckets or groups, space)
    graph = order_buckets(made.edges, space)
    owned = partitioning.collect_owned(graph)
    of_groups = [
        steps.OwnedRows(group, owned.bucket[group::groups], owned.row[group::groups]) for group in range(groups)
    ]
    return Ingested(rows, made, graph.degrees, owned, of_groups)


def order_buckets(edges: Sequence[BucketEdges], space: MemorySpace = MemorySpace.HOST) -> OrderedGraph:
    """These buckets with their vertices in degree order."""
    return partitioning.order_by_degree(SequentialEngine(), edges, edges[0].all_vertices, space)


def subgraph(owned: steps.OwnedEdges) -> Subgraph:
    """From all edges to those with triangles."""
    return build_subgraph(owned, count_triangles(owned))


def extract(
    ingested: Ingested, results: Sequence[publish.BucketResults], space: MemorySpace = MemorySpace.HOST
) -> extracting.Groups:
    """The dense groups, by the λ of all edges. Triangles are counted in shards only on the host."""
    partitions = len(ingested.groups) if space is MemorySpace.HOST else 1
    graph = extracting.KnownLambda(ingested.edges, ingested.degrees, results, ingested.starts)
    return extracting.extract(SequentialEngine(), Events(), graph, partitions, space)


@dataclass(frozen=True)
class Published:
    """Files and summaries of a result without dense groups."""

    summaries: list[publish.BucketSummary]
    edge_files: list[OutputFile]
    vertex_files: list[OutputFile]


Answers = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]
"""Support, lower and upper end of λ of each edge of a group."""


def publish_results(
    folder: Path,
    source: Source,
    ingested: Ingested,
    answers: Sequence[Answers],
    converged: bool = True,
    files: int = 1,
    early: bool = False,
    row_group_rows: int = 1_000_000,
) -> Published:
    """From each group's answers about its edges to files below `folder`, `files` of each bucket.

    With `early`, the ends of edges are encoded first, as in runs on GPUs.
    """
    engine = SequentialEngine()
    sent = [(own, *answer) for own, answer in zip(ingested.groups, answers, strict=True)]
    bundles = exchanges.send(engine, "send-results", "results", publish.send_results, sent)
    results = exchanges.exchange(
        engine, "results", bundles, publish.collect_results, [(own,) for own in ingested.edges]
    )
    how = TableOptions(folder, source, converged, row_group_rows=row_group_rows, files=files)
    encoded = None
    if early:
        encoded = EarlyEdges(engine, ingested.buckets, ingested.degrees, how).encoded
    of_edges = publishing.EdgeFindings(ingested.buckets, ingested.degrees, results, encoded=encoded)
    edge_files = publishing.start_edges(engine, of_edges, how)
    found = publishing.Findings(ingested.buckets, ingested.degrees, results)
    written = publishing.publish_results(engine, None, found, edge_files, publishing.sum_by_vertex(engine, found), how)
    edge_files, vertex_files = (
        [file for file in written.files if file.name.startswith(table)] for table in ("edges/", "vertices/")
    )
    return Published(written.summaries, edge_files, vertex_files)
