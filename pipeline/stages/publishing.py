"""The stage `publish`: sends λ from partitions to buckets, sums values of vertices, and writes the result's tables.

While GPUs bound the graph, the processors encode the ends of the edges (`EarlyEdges`). The GPUs encode λ and supports.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...tasks import ingest
from ...tasks.bound.intervals import Intervals
from ...tasks.dense import BucketGroups
from ...tasks.device import MemorySpace, move_arrays
from ...tasks.graph import Subgraph
from ...tasks.ids.identity import Ids, Kind
from ...tasks.ingest import OwnedRows
from ...tasks.ingest.degrees import BucketDegrees
from ...tasks.messages import Bundle
from ...tasks.publish import lambda_columns as publish
from ...tasks.publish.columns import EdgeValues, answer_names, join_names
from ...tasks.publish.dense_tables import write_groups
from ...tasks.publish.encoded import DeviceColumns, EncodedColumns
from ...tasks.publish.lambda_columns import BucketResults, BucketSummary, BucketVertices, known_ends
from ...tasks.publish.result_columns import VERTICES
from ...tasks.publish.tables import (
    TableColumn,
    encode_ends,
    encode_values,
    finish_edges,
    value_column,
    write_edges,
    write_vertices,
)
from ...tasks.publish.writing import OutputFile, TableOptions
from ..events import Stage
from .exchange import exchange, send
from .extracting import Groups
from .ingesting import Buckets
from .layout import Layout
from .task_engine import Future, TaskEngine, start_behind


@dataclass(frozen=True)
class Partitions:
    """The data of the partitions, or of groups of shards, that the stage needs."""

    rows: list[Future]
    """[partitions] OwnedRows"""
    degrees: list[Future]
    """[buckets] BucketDegrees"""


@dataclass(frozen=True)
class Findings:
    """The findings of a run, in buckets."""

    buckets: Buckets
    degrees: Sequence[Future]
    """[buckets] BucketDegrees"""
    results: Sequence[Future]
    """[buckets] BucketResults"""
    groups: Groups | None = None
    """None if λ is known as intervals only."""
    tracks: Sequence[Future] = ()
    """[buckets] int64, the tracks of the bucket's DN-graphs; needed with `groups`"""
    columns: Sequence[Future] | None = None
    """[buckets] lists of TableColumn, which are added to the table of vertices"""


@dataclass(frozen=True)
class EdgeFindings:
    """What the table of edges has, in buckets."""

    buckets: Buckets
    degrees: Sequence[Future]
    """[buckets] BucketDegrees"""
    results: Sequence[Future]
    """[buckets] BucketResults"""
    columns: Sequence[Future] | None = None
    """[buckets] lists of TableColumn, which are added to the table"""
    encoded: Sequence[Future] | None = None
    """[buckets × files] EncodedColumns of the table; None if all of its columns are still to be encoded"""


@dataclass(frozen=True)
class Published:
    """The files of the tables, and the values that the manifest needs."""

    files: list[OutputFile]
    edges: int
    vertices: int
    summaries: list[BucketSummary]
    """[buckets] values of λ; empty in a run without λ"""


def collect_results(
    engine: TaskEngine,
    buckets: Buckets,
    partitions: Partitions,
    subgraphs: Sequence[Future],
    intervals: Sequence[Future],
    in_parts: bool = False,
) -> list[Future]:
    """Send supports and λ back to the buckets. Returns [buckets] BucketResults.

    `subgraphs` and `intervals` [partitions] are Subgraph and Intervals. This ends the stage of bounding, because later
    stages need λ in buckets only. With `in_parts` the buckets take their values one after the other from the only
    partition, which a GPU has: a bundle for all of them would take more of its memory than their results.
    """
    ends = list(zip(partitions.rows, subgraphs, intervals, strict=True))
    if in_parts:
        engine = engine.for_partitions()
        rows = engine.map("rows-to-device", _rows_beside, [ends[0][:2]])
        results = engine.map("results", _results_of_bucket, [(own, *rows, *ends[0][1:]) for own in buckets.edges])
    else:
        sent = send(engine.for_tasks(len(ends)), "send-results", "results", _send_results, ends)
        engine, at = engine.for_tasks(len(buckets.edges)), engine.bucket_workers(len(buckets.edges))
        results = exchange(engine, "results", sent, publish.collect_results, [(own,) for own in buckets.edges], at)
    engine.wait(results)
    return results


def results_tasks(layout: Layout) -> int:
    """Tasks of `collect_results`, or of `sharding.collect_intervals` for groups of shards."""
    return layout.exchange(layout.partitions, layout.buckets)


def tables_to_write(buckets: int, files: int, groups: bool) -> int:
    """Writing tasks: for each bucket `files` for edges, `files` for vertices, and one for DN-graphs if any."""
    return (2 * files + groups) * buckets


def sum_by_vertex(engine: TaskEngine, found: Findings) -> list[Future]:
    """Sum supports and λ by vertex, in an exchange. Returns [buckets] BucketVertices."""
    edges, results, degrees = found.buckets.edges, found.results, found.degrees
    sums = send(engine, "send-sums", "sums", publish.send_sums, list(zip(edges, results, strict=True)))
    own = list(zip(edges, degrees, results, strict=True))
    return exchange(engine, "sums", sums, publish.collect_vertices, own, engine.bucket_workers(len(edges)))


def find_names(engine: TaskEngine, buckets: Buckets, degrees: Sequence[Future], kind: Kind) -> list[Future]:
    """Look up the ids, of this kind, of the larger ends of edges, in an exchange. Returns [buckets] Ids.

    `degrees` [buckets] are BucketDegrees.
    """
    answers = send(engine, "answer-names", "names", answer_names, list(zip(buckets.ids, degrees, strict=True)))
    own = [(edges, kind) for edges in buckets.edges]
    return exchange(engine, "names", answers, join_names, own, engine.bucket_workers(len(own)))


def start_edges(engine: TaskEngine, found: EdgeFindings, how: TableOptions) -> list[Future]:
    """Start to write the table of edges, in the background. Returns [buckets × files] OutputFile."""
    edges, ids, results = found.buckets.edges, found.buckets.ids, found.results
    added = [()] * len(edges) if found.columns is None else list(found.columns)
    parts, at = _files(engine, len(edges), how)
    if found.encoded is not None:
        ends, workers = found.encoded, engine.bucket_workers(len(edges))
        of_bucket = [(how, own, list(ends[b * how.files :][: how.files])) for b, own in enumerate(results)]
        values = engine.map("encode-values", _encode_values, of_bucket, workers)
        encoded = zip(parts, ends, strict=True)
        tasks = [(how, b, file, own, results[b], values[b], added[b]) for (b, file), own in encoded]
        return start_behind(engine, "write-edges", _finish_edges, tasks, at)
    names = find_names(engine, found.buckets, found.degrees, how.source.kind)
    rows = [(how, file, edges[b], ids[b], names[b], results[b], added[b]) for b, file in parts]
    return start_behind(engine, "write-edges", _write_edges, rows, at)


def _files(engine: TaskEngine, buckets: int, how: TableOptions) -> tuple[list[tuple[int, int]], list[int] | None]:
    """The bucket of each file of a table and its number there; and the files' workers, None where all tasks share
    memory.
    """
    parts = [(b, file) for b in range(buckets) for file in range(how.files)]
    workers = engine.bucket_workers(buckets)
    return parts, None if workers is None else [workers[b] for b, _ in parts]


def publish_results(
    engine: TaskEngine,
    stage: Stage | None,
    found: Findings,
    edge_files: Sequence[Future],
    vertices: Sequence[Future],
    how: TableOptions,
) -> Published:
    """Write all tables. `stage` counts the `tables_to_write` tasks as they finish.

    `edge_files` [buckets × files] is the result of `start_edges`, `vertices` [buckets] that of `sum_by_vertex`.
    """
    edges, ids, results, groups = found.buckets.edges, found.buckets.ids, found.results, found.groups
    parts, at = _files(engine, len(edges), how)
    members = groups.found if groups else [None] * len(edges)
    added = [()] * len(edges) if found.columns is None else list(found.columns)
    written = list(edge_files)
    written += engine.map(
        "write-vertices",
        _write_vertices,
        [(how, file, ids[b], vertices[b], members[b], added[b]) for b, file in parts],
        at,
    )
    tables = []
    if groups:
        own = list(zip(ids, groups.found, groups.triangles, found.tracks, strict=True))
        tables = engine.map("write-groups", _write_groups, [(how, *parts) for parts in own])
    summaries = engine.map("summarise", publish.summarise, list(zip(results, vertices, strict=True)))
    engine.wait([*written, *tables], stage)
    dense = [file for own in engine.gather(tables) for file in own]
    found_here = engine.gather(summaries)
    counts = {name: sum(getattr(own, name) for own in found_here) for name in ("edges", "vertices")}
    return Published([*engine.gather(written), *dense], **counts, summaries=found_here)


def publish_tasks(layout: Layout) -> int:
    """Tasks of `start_edges` and `publish_results`: names and sums of vertices, three tables, and a summary."""
    buckets = layout.buckets
    return 2 * layout.exchange(buckets, buckets) + tables_to_write(buckets, layout.files, groups=True) + buckets


def publish_vertices(
    engine: TaskEngine,
    stage: Stage | None,
    buckets: Buckets,
    degrees: Sequence[Future],
    columns: Sequence[Future],
    how: TableOptions,
) -> Published:
    """Write the table of vertices of a run without λ: ids, degrees and the columns of programs.

    `degrees` [buckets] are BucketDegrees, `columns` [buckets] lists of TableColumn. `stage` counts `how.files` tasks
    for each bucket.
    """
    rows = zip(buckets.ids, degrees, columns, strict=True)
    tasks = [(how, file, *own) for own in rows for file in range(how.files)]
    written = engine.map("write-vertices", _write_columns, tasks)
    engine.wait(written, stage)
    return Published(engine.gather(written), sum(engine.peek(buckets.edges, len)), int(buckets.starts[-1]), [])


def _rows_beside(owned: OwnedRows, subgraph: Subgraph) -> OwnedRows:
    """Task: the rows in the memory that has the supports."""
    return move_arrays(owned, MemorySpace.HOST if kernels.on_host(subgraph.support) else MemorySpace.DEVICE)


def _results_of_bucket(
    edges: ingest.BucketEdges, owned: OwnedRows, subgraph: Subgraph, ends: Intervals
) -> BucketResults:
    """Task: the results of a bucket's edges, all of which the only partition owns."""
    own = np.flatnonzero(owned.bucket == edges.bucket)
    rows = replace(owned, bucket=kernels.take(owned.bucket, own), row=kernels.take(owned.row, own))
    low = kernels.take(ends.low, own)
    high = low if ends.high is ends.low else kernels.take(ends.high, own)
    sent = publish.send_results(rows, kernels.take(subgraph.support, own), low, high)
    return publish.collect_results(edges, sent.parts and {owned.partition: sent.parts[edges.bucket]})


def _send_results(owned: OwnedRows, subgraph: Subgraph, ends: Intervals) -> Bundle[EdgeValues]:
    support = subgraph.support
    if kernels.on_host(owned.row):
        support, ends = kernels.to_host(support), move_arrays(ends, MemorySpace.HOST)
    return publish.send_results(owned, support, ends.low, ends.high)


def _write_edges(
    how: TableOptions,
    file: int,
    edges: ingest.BucketEdges,
    ids: ingest.BucketIds,
    names: Ids,
    results: BucketResults,
    added: Sequence[TableColumn],
) -> OutputFile:
    columns = [*publish.edge_values(results, how.converged), *added]
    return write_edges(how, edges, ids.ids, names, columns, file=file)


def _encode_values(how: TableOptions, results: BucketResults, ends: Sequence[EncodedColumns]) -> DeviceColumns | None:
    return encode_values(how, publish.edge_values(results, how.converged), ends)


def _finish_edges(
    how: TableOptions,
    bucket: int,
    file: int,
    ends: EncodedColumns,
    results: BucketResults,
    on_device: DeviceColumns | None,
    added: Sequence[TableColumn],
) -> OutputFile:
    known = publish.edge_values(results, how.converged) if on_device is None else on_device.of_file(file)
    return finish_edges(how, bucket, len(results), ends, known, added, file)


def _write_vertices(
    how: TableOptions,
    file: int,
    ids: ingest.BucketIds,
    vertices: BucketVertices,
    groups: BucketGroups | None,
    columns: Sequence[TableColumn],
) -> OutputFile:
    own = publish.vertex_columns(
        vertices, None if groups is None else groups.innermost, how.converged, how.source.measure
    )
    return write_vertices(how, vertices.bucket, ids.ids, [*own, *columns], file=file)


def _write_columns(
    how: TableOptions, file: int, ids: ingest.BucketIds, degrees: BucketDegrees, columns: Sequence[TableColumn]
) -> OutputFile:
    degree = value_column(VERTICES, "degree", degrees.degree)
    return write_vertices(how, degrees.bucket, ids.ids, [degree, *columns], file=file)


def _write_groups(
    how: TableOptions,
    ids: ingest.BucketIds,
    groups: BucketGroups,
    triangles: NDArray[np.int64],
    tracks: NDArray[np.int64],
) -> list[OutputFile]:
    return write_groups(how, ids.ids, groups, triangles, tracks)


class EarlyEdges:
    """The ends of the edges of all buckets, encoded for their files once `start` is called."""

    def __init__(
        self,
        engine: TaskEngine,
        buckets: Buckets,
        degrees: Sequence[Future],
        how: TableOptions,
    ) -> None:
        """`degrees` [buckets] are BucketDegrees. All work that needs a kernel is done when this returns."""
        self._engine, self._how = engine, how
        self._at = engine.bucket_workers(len(buckets.edges))
        names = find_names(engine, buckets, degrees, how.source.kind)
        own = list(zip(buckets.edges, buckets.ids, names, strict=True))
        self._ends: list[Future] = engine.map("known-ends", known_ends, own, self._at)
        del names, own
        engine.wait(self._ends)
        self._encoded: list[Future] | None = None

    def start(self) -> None:
        """Start the tasks, unless they were started before."""
        if self._encoded is not None:
            return
        parts = [(b, file) for b in range(len(self._ends)) for file in range(self._how.files)]
        tasks = [(self._how, self._ends[b], file) for b, file in parts]
        at = None if self._at is None else [self._at[b] for b, _ in parts]
        self._encoded = start_behind(self._engine, "encode-ends", encode_ends, tasks, at)
        self._ends = []

    @property
    def encoded(self) -> list[Future]:
        """[buckets × files] EncodedColumns. Starts the tasks if nothing else has."""
        self.start()
        return self._encoded or []
