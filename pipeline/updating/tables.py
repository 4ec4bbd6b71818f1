"""The tables of an updated result: whole files are taken over where no row changed, and all others are written.

Files keep their ranges of ids from night to night: a file is cut only when it has grown large. So a change in one range
leaves the files of all others as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ...tasks import ingest
from ...tasks.dense import BucketGroups
from ...tasks.ids import identity
from ...tasks.ingest.numbering import BucketEdges, BucketIds
from ...tasks.messages import collect
from ...tasks.publish import lambda_columns as publish
from ...tasks.publish.dense_tables import GroupTable, group_tables, write_group_file
from ...tasks.publish.lambda_columns import BucketResults, BucketSummary, BucketVertices
from ...tasks.publish.tables import TableColumn, write_edges, write_vertices
from ...tasks.publish.writing import OutputFile, TableOptions
from ...tasks.storage.folders import folder_at, take_over
from ...tasks.update.merging import NumberedGraph
from ..opening.reading import chunks
from ..output.manifest import Manifest, OutputRecord
from ..results.result import Result
from ..stages.ingesting import Buckets
from ..stages.publishing import Published
from ..stages.task_engine import ThreadedEngine

FILE_ROWS = 2**18
"""Rows of a file that is cut from a larger one. A file with more than twice as many rows is cut, so that later nights
rewrite less.
"""


@dataclass(frozen=True)
class FileRange:
    """A file of the new table."""

    number: int
    rows: slice
    """Its rows of the table."""
    kept: OutputRecord | None
    """The file of the earlier result that has these rows; None if the file must be written."""


def files_of(manifest: Manifest, table: str) -> list[OutputRecord]:
    """The files of a table, in the order of its rows."""
    found = (output for output in manifest.outputs if PurePosixPath(output.path).parent.name == table)
    return sorted(found, key=lambda output: output.path)


def file_ranges(
    files: Sequence[OutputRecord], starts: NDArray[np.int64], rows: int, touched: NDArray[np.bool_] | None
) -> list[FileRange]:
    """The files of the new table of `rows` rows.

    `starts` [files] are the new rows at which the range of each old file starts; there may be no file. `touched` [rows]
    says which new rows differ from their old ones; if it is None, no file can be taken over.
    """
    found: list[FileRange] = []
    old: Sequence[OutputRecord | None] = files or [None]
    firsts = [0, *starts[1:].tolist()]
    for kept, start, stop in zip(old, firsts, [*firsts[1:], rows], strict=True):
        size = stop - start
        if kept and touched is not None and size == kept.rows and not touched[start:stop].any():
            found.append(FileRange(len(found), slice(start, stop), kept))
            continue
        for part in chunks(size, FILE_ROWS) if size > 2 * FILE_ROWS else [slice(0, size)] * bool(size):
            found.append(FileRange(len(found), slice(start + part.start, start + part.stop), None))
    return found or [FileRange(0, slice(0, rows), None)]


def write_group_files(
    how: TableOptions, tables: Sequence[GroupTable], base: Result, may_keep: bool
) -> tuple[list[OutputFile], int]:
    """Write the files of the tables, or take them over if `may_keep`. Returns them, and how many were taken over.

    Files keep their ranges of ids, and large ones are cut, as files of edges are. No file is cut within a group, so all
    rows of a group are in one file. Raises InputError for damage of the earlier result.
    """
    made, kept = [], 0
    for table in tables:
        for file in _whole_groups(table, _group_ranges(table, base, may_keep)):
            if file.kept is None:
                made.append(write_group_file(how, table, file.number, file.rows))
                continue
            name = f"{table.name}/part-{file.number:05d}.parquet"
            take_over(base.place, file.kept.path, folder_at(how.folder), name)
            made.append(OutputFile(name, file.kept.rows, file.kept.bytes, file.kept.sha256))
            kept += 1
    return made, kept


def _group_ranges(table: GroupTable, base: Result, may_keep: bool) -> list[FileRange]:
    files = [file for file in files_of(base.manifest, table.name) if file.rows]
    with base.reading():
        firsts = [_first_id(base, file) for file in files]
        if firsts != sorted(firsts):  # the files are of several buckets, which share groups
            files, firsts = [], []
        starts = np.searchsorted(table.ids, np.array(firsts, np.int64))
        touched = np.ones(len(table), np.bool_)
        stops = [*starts[1:].tolist(), len(table)]
        for file, start, stop in zip(files, [0, *starts[1:].tolist()], stops, strict=False):
            if may_keep and stop - start == file.rows and _has_rows(base, file, table, slice(start, stop)):
                touched[start:stop] = False
    return file_ranges(files, starts, len(table), touched)


def _first_id(base: Result, file: OutputRecord) -> int:
    with base.place.files.open(base.place.path(file.path), "rb") as opened:
        first: int = pq.read_metadata(opened).row_group(0).column(0).statistics.min
    return first


def _has_rows(base: Result, file: OutputRecord, table: GroupTable, rows: slice) -> bool:
    """Whether a file of the earlier result has these rows of the table."""
    with base.place.files.open(base.place.path(file.path), "rb") as opened:
        stored = pq.read_table(opened)
    made = [pa.table(columns, schema=table.schema) for columns in table.batches(rows)]
    return bool(stored.schema.equals(table.schema) and stored.equals(pa.concat_tables(made)))


def _whole_groups(table: GroupTable, files: Sequence[FileRange]) -> list[FileRange]:
    """The files, with cuts moved to the starts of groups."""
    starts: NDArray[np.int64] = np.searchsorted(table.ids, table.ids[[file.rows.start for file in files[1:]]])
    bounds = [0, *starts.tolist(), len(table)]
    found = [replace(file, rows=slice(*bounds[at : at + 2])) for at, file in enumerate(files)]
    found = [file for file in found if file.rows.stop > file.rows.start] or found[:1]
    return [replace(file, number=number) for number, file in enumerate(found)]


@dataclass(frozen=True)
class OneBucket:
    """The new graph as a run has it in one bucket, with the values of its edges."""

    buckets: Buckets
    results: BucketResults

    @classmethod
    def of(cls, graph: NumberedGraph, support: NDArray[np.int32], lam: NDArray[np.int32]) -> OneBucket:
        """The bucket of a graph whose edges have these supports and λ. All vertices count as larger ends."""
        starts, vertices = np.array([0, len(graph.ids)], np.int64), np.arange(len(graph.ids), dtype=np.int32)
        edges = BucketEdges(0, starts, np.asarray(graph.edges.low), np.asarray(graph.edges.high), vertices, 0)
        buckets = Buckets([BucketIds(0, graph.ids, {})], [edges], starts, 0)
        return cls(buckets, BucketResults(0, support, lam, lam))

    def degrees(self) -> ingest.BucketDegrees:
        """The degrees of its vertices, which takes two passes over the edges."""
        (edges,) = self.buckets.edges
        return ingest.collect_degrees(edges, collect(0, [ingest.send_degrees(edges)]))


@dataclass(frozen=True)
class EarlierFiles:
    """The result that files are taken over from, and what has changed since."""

    result: Result
    edges_before: Callable[[Sequence[int]], NDArray[np.int64]]
    """Rows of its table of edges → new rows before each."""
    vertices_before: Callable[[Sequence[int]], NDArray[np.int64]]
    touched: NDArray[np.bool_] | None
    """[edges] rows that differ from those of the result; None if no file is taken over."""
    touched_vertices: NDArray[np.bool_]
    """[vertices] whose edges changed, or that are new."""


@dataclass(frozen=True)
class EdgeFiles:
    """The files of the table of edges."""

    files: list[OutputFile]
    kept: int
    """How many were taken over."""


def publish_edges(engine: ThreadedEngine, found: OneBucket, how: TableOptions, earlier: EarlierFiles) -> EdgeFiles:
    """Write the table of edges, or take its files over. Needs no groups, so it may run while these are found."""
    (edges,), (ids,) = found.buckets.edges, found.buckets.ids
    columns = publish.edge_values(found.results, True)
    files = _ranges(earlier, "edges", earlier.edges_before, len(edges), earlier.touched)
    tasks = [(how, earlier, file, edges, ids.ids, columns) for file in files]
    return EdgeFiles(engine.map("edges", _write_edges, tasks), _kept(files))


def publish_tables(
    engine: ThreadedEngine,
    found: OneBucket,
    groups: BucketGroups,
    triangles: NDArray[np.int64],
    tracks: NDArray[np.int64],
    values: tuple[BucketVertices, BucketSummary],
    how: TableOptions,
    earlier: EarlierFiles,
    edges: EdgeFiles,
    more: Sequence[TableColumn] = (),
) -> tuple[Published, int]:
    """Write all tables except that of edges, or take their files over. `more` are columns of vertices from programs.

    `values` are the values of the vertices, and the totals of all edges.

    Returns all tables, and the number of files that were taken over.
    """
    (ids,), (vertices, summary) = found.buckets.ids, values
    own = [*publish.vertex_columns(vertices, groups.innermost, True), *more]
    touched = None if earlier.touched is None or more else earlier.touched_vertices
    vertex_files = [
        _checked(earlier, file, groups.innermost)
        for file in _ranges(earlier, "vertices", earlier.vertices_before, len(ids), touched)
    ]
    written = engine.map("write", _write_vertices, [(how, earlier, file, ids.ids, own) for file in vertex_files])
    dense, kept = write_group_files(
        how, group_tables(how, ids.ids, groups, triangles, tracks), earlier.result, earlier.touched is not None
    )
    files = [*edges.files, *written, *dense]
    return Published(files, len(found.buckets.edges[0]), len(ids), [summary]), kept + edges.kept + _kept(vertex_files)


def _kept(files: Sequence[FileRange]) -> int:
    return sum(file.kept is not None for file in files)


def _ranges(
    earlier: EarlierFiles,
    table: str,
    before: Callable[[Sequence[int]], NDArray[np.int64]],
    rows: int,
    touched: NDArray[np.bool_] | None,
) -> list[FileRange]:
    files = [file for file in files_of(earlier.result.manifest, table) if file.rows]
    firsts = list(accumulate((file.rows for file in files[:-1]), initial=0)) if files else []
    return file_ranges(files, before(firsts), rows, touched)


def _checked(earlier: EarlierFiles, file: FileRange, component: NDArray[np.int64]) -> FileRange:
    """The file, to be written if its column of components differs."""
    if file.kept is None:
        return file
    place, path = earlier.result.place, file.kept.path
    with earlier.result.reading(), place.files.open(place.path(path), "rb") as opened:
        stored = pq.read_table(opened, columns=["component"])["component"]
    same = np.array_equal(stored.fill_null(-1).to_numpy(), component[file.rows])
    return file if same else FileRange(file.number, file.rows, None)


def _taken(how: TableOptions, earlier: EarlierFiles, file: FileRange, table: str) -> OutputFile | None:
    if file.kept is None:
        return None
    name = f"{table}/part-{file.number:05d}.parquet"
    take_over(earlier.result.place, file.kept.path, _folder(how), name)
    return OutputFile(name, file.kept.rows, file.kept.bytes, file.kept.sha256)


def _write_edges(
    how: TableOptions,
    earlier: EarlierFiles,
    file: FileRange,
    edges: BucketEdges,
    ids: Any,
    columns: Sequence[TableColumn],
) -> OutputFile:
    own = file.rows
    part = BucketEdges(file.number, edges.starts, edges.low[own], edges.high[own], edges.highs, 0)
    return _taken(how, earlier, file, "edges") or write_edges(how, part, ids, ids, _cut(columns, own))


def _write_vertices(
    how: TableOptions, earlier: EarlierFiles, file: FileRange, ids: Any, columns: Sequence[TableColumn]
) -> OutputFile:
    own = file.rows
    return _taken(how, earlier, file, "vertices") or write_vertices(
        how, file.number, identity.part(ids, own.start, own.stop), _cut(columns, own)
    )


def _cut(columns: Sequence[TableColumn], rows: slice) -> list[TableColumn]:
    return [TableColumn(c.name, c.type, c.values[rows], c.ids, c.missing) for c in columns]


def _folder(how: TableOptions) -> Any:
    return how.folder
