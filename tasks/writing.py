"""One bucket's rows to Parquet: checksummed pages and footer, hashed on the way out, on disk when the call returns."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from .. import kernels
from . import identity
from .dense import BucketGroups
from .errors import NO_SPACE, OutOfRoom, UsageError
from .id_types import published
from .identity import Ids
from .numbering import BucketEdges
from .own_files import open_own
from .places import Place, place_of
from .publish import BucketResults, BucketVertices
from .sealed import sealed_writer
from .sources import Source

VALUE_COLUMNS = ("support", "lambda", "lambda_low", "lambda_high")
"""Columns of the edge files that an input's id columns must not be named like."""

TEXT_PER_GROUP = 2**26
"""Bytes of the ids of a row group, if they are strings: its rows hold each as often as it occurs."""

ZSTD_LEVEL = 1
"""Higher levels cost far more time than the bytes they save on delta-packed numbers."""


_HIERARCHY = pa.schema(
    [
        ("component", pa.int64()),
        ("k", pa.int32()),
        ("parent", pa.int64()),
        ("vertices", pa.int64()),
        ("edges", pa.int64()),
    ]
)
_DN_GRAPHS = pa.schema(
    [
        ("id", pa.int64()),
        ("lambda", pa.int32()),
        ("vertices", pa.int64()),
        ("edges", pa.int64()),
        ("density", pa.float64()),
        ("triangles", pa.int64()),
        ("parent", pa.int64()),
        ("track", pa.int64()),
    ]
)
_MEMBERS = pa.schema([("dn_graph", pa.int64())])


@dataclass(frozen=True)
class VertexColumn:
    """A column that a program adds to the vertices of a bucket."""

    name: str
    type: pa.DataType
    values: NDArray[Any]
    """[vertices] what it holds, or positions in `ids`."""
    ids: Ids | None = None
    """None of a column that holds no ids."""


@dataclass(frozen=True)
class OutputFile:
    """A file of the result, as the manifest lists it."""

    name: str
    """Path below the output folder, with slashes."""

    rows: int
    bytes: int
    sha256: str


def write_edges(
    folder: Place | Path,
    source: Source,
    edges: BucketEdges,
    ids: Ids,
    high_names: Ids,
    results: BucketResults,
    *,
    file: int = 0,
    files: int = 1,
    converged: bool = True,
    compression: str = "zstd",
    row_group_rows: int = 1_000_000,
) -> OutputFile:
    """Write edges/part-N.parquet below `folder`: source, target, support, lambda (or lambda_low and lambda_high).

    `ids` are the bucket's own, `high_names` those of `edges.highs`; the rows are those of `file` out of `files` equal
    runs of the bucket's. They ascend by (source, target), over all files.
    """
    id_type = source.id_type
    fields = [(source.source_column, id_type), (source.target_column, id_type), ("support", pa.int32())]
    schema = pa.schema([*fields, *_interval(converged)])

    def batches() -> Iterator[list[pa.Array]]:
        for run in _slices(len(edges), file, files, row_group_rows):
            for rows in _by_text(run, (ids, edges.low), (high_names, edges.high)):
                yield [
                    _named(ids, edges.low[rows], id_type),
                    _named(high_names, edges.high[rows], id_type),
                    _column(results.support[rows]),
                    *_interval_columns(results, rows, converged),
                ]

    return write_table(
        folder, f"edges/part-{edges.bucket * files + file:05d}.parquet", schema, 2, batches(), compression
    )


def write_vertices(
    folder: Place | Path,
    source: Source,
    ids: Ids,
    vertices: BucketVertices,
    groups: BucketGroups | None = None,
    columns: Sequence[VertexColumn] = (),
    *,
    file: int = 0,
    files: int = 1,
    converged: bool = True,
    compression: str = "zstd",
    row_group_rows: int = 1_000_000,
) -> OutputFile:
    """Write vertices/part-N.parquet below `folder`: id, degree, triangles, lambda (or its two ends), component if
    `groups` tell it, and the `columns` of programs.

    `file` and `files` as for `write_edges`.
    """
    fields = [("id", source.id_type), ("degree", pa.int64()), ("triangles", pa.int64())]
    component = [("component", pa.int64())] if groups is not None else []
    added = [(column.name, column.type) for column in columns]
    schema = pa.schema([*fields, *_interval(converged), *component, *added])

    def batches() -> Iterator[list[pa.Array]]:
        everyone = np.arange(len(vertices)) if isinstance(ids, pa.Array) else np.zeros(0, np.int64)
        for run in _slices(len(vertices), file, files, row_group_rows):
            named = [(column.ids, column.values) for column in columns if column.ids is not None]
            for rows in _by_text(run, (ids, everyone), *named):
                yield [
                    published(identity.part(ids, rows.start, rows.stop), source.id_type),
                    _column(vertices.degree[rows]),
                    _column(vertices.triangles[rows]),
                    *_interval_columns(vertices, rows, converged),
                    *([_or_null(groups.home[rows])] if groups is not None else []),
                    *(_added(column, rows) for column in columns),
                ]

    return write_table(
        folder, f"vertices/part-{vertices.bucket * files + file:05d}.parquet", schema, 1, batches(), compression
    )


def write_groups(
    folder: Place | Path,
    source: Source,
    ids: Ids,
    groups: BucketGroups,
    triangles: NDArray[np.int64],
    tracks: NDArray[np.int64],
    *,
    compression: str = "zstd",
    row_group_rows: int = 1_000_000,
) -> list[OutputFile]:
    """Write hierarchy/, dn_graphs/ and dn_graph_members/part-N.parquet below `folder`, as `Result` describes them.

    `ids` are those of the bucket's vertices, `triangles` those inside its DN-graphs, `tracks` the DN-graphs' tracks.
    """
    components, graphs, names = groups.components, groups.dn_graphs, identity.to_host(ids)
    members = np.flatnonzero(groups.is_member)
    members = members[np.argsort(groups.home[members], kind="stable")]

    def hierarchy() -> Iterator[list[pa.Array]]:
        for rows in _slices(len(components), 0, 1, row_group_rows):
            own = components[rows]
            yield [
                pa.array(own.id),
                pa.array(own.level),
                _or_null(own.parent),
                pa.array(own.vertices),
                pa.array(own.edges),
            ]

    def dn_graphs() -> Iterator[list[pa.Array]]:
        for rows in _slices(len(graphs), 0, 1, row_group_rows):
            own = graphs[rows]
            pairs = own.vertices * (own.vertices - 1) / 2
            columns = (own.id, own.level, own.vertices, own.edges, own.edges / pairs, triangles[rows])
            yield [*(pa.array(column) for column in columns), _or_null(own.parent), pa.array(tracks[rows])]

    def dn_graph_members() -> Iterator[list[pa.Array]]:
        for run in _slices(len(members), 0, 1, row_group_rows):
            for rows in _by_text(run, (names, members)):
                own = members[rows]
                yield [pa.array(groups.home[own]), published(identity.take(names, own), source.id_type)]

    part = f"part-{groups.bucket:05d}.parquet"
    tables = [
        ("hierarchy", _HIERARCHY, 1, hierarchy()),
        ("dn_graphs", _DN_GRAPHS, 1, dn_graphs()),
        ("dn_graph_members", _MEMBERS.append(pa.field("vertex", source.id_type)), 2, dn_graph_members()),
    ]
    return [
        write_table(folder, f"{name}/{part}", schema, keys, batches, compression)
        for name, schema, keys, batches in tables
    ]


def packed_bytes(columns: Sequence[pa.Array], compression: str) -> int:
    """Bytes of the columns, all of one length, in a table written as those of the result are."""
    schema = pa.schema([(str(number), column.type) for number, column in enumerate(columns)])
    with pa.BufferOutputStream() as file:
        with pq.ParquetWriter(file, schema, **layout(schema, 0, compression)) as writer:
            writer.write_table(pa.table(list(columns), schema=schema))
        footer = pq.read_metadata(pa.BufferReader(file.getvalue()))
    groups = map(footer.row_group, range(footer.num_row_groups))
    return sum(group.column(c).total_compressed_size for group in groups for c in range(len(columns)))


def _interval(converged: bool) -> list[tuple[str, pa.DataType]]:
    return [(name, pa.int32()) for name in (("lambda",) if converged else ("lambda_low", "lambda_high"))]


def _interval_columns(values: BucketResults | BucketVertices, rows: slice, converged: bool) -> list[pa.Array]:
    return [_column(column[rows]) for column in ((values.low,) if converged else (values.low, values.high))]


def _slices(rows: int, file: int, files: int, row_group_rows: int) -> Iterator[slice]:
    start, stop = rows * file // files, rows * (file + 1) // files
    return (slice(at, min(at + row_group_rows, stop)) for at in range(start, stop, row_group_rows))


def _by_text(rows: slice, *columns: tuple[Ids, NDArray[Any]]) -> Iterator[slice]:
    """A run of rows, cut so that what its columns name, ids by their positions, takes about TEXT_PER_GROUP at most."""
    lengths = [(identity.lengths(ids), positions) for ids, positions in columns]
    taken = [length[positions[rows]] for length, positions in lengths if length is not None]
    if not taken:
        yield rows
        return
    ends, start = np.cumsum(np.sum(taken, axis=0)), 0
    while start < len(ends):
        before = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + TEXT_PER_GROUP, side="right")))
        yield slice(rows.start + start, rows.start + stop)
        start = stop


def _named(ids: Ids, positions: NDArray[Any], id_type: pa.DataType) -> pa.Array:
    return published(identity.take(ids, positions), id_type)


def _added(column: VertexColumn, rows: slice) -> pa.Array:
    if column.ids is None:
        return pa.array(column.values[rows], column.type)
    return _named(column.ids, column.values[rows], column.type)


def _or_null(ids: NDArray[np.int64]) -> pa.Array:
    return pa.array(ids, mask=ids < 0)


def _column(values: NDArray[Any]) -> pa.Array:
    return pa.array(kernels.to_host(values))


class _HashedFile:
    """A binary file that knows the size and SHA-256 of what was written to it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._hash = hashlib.sha256()
        self.bytes = 0

    def write(self, content: bytes) -> int:
        self._hash.update(content)
        self.bytes += len(content)
        return self._file.write(content)

    def flush(self) -> None:
        self._file.flush()

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()


def write_table(
    folder: Place | Path, name: str, schema: pa.Schema, keys: int, batches: Iterator[list[pa.Array]], compression: str
) -> OutputFile:
    """Write the file `name` below `folder`: batches of columns, one row group each, that ascend by the first `keys`.

    Raises UsageError if it cannot be written, OutOfRoom for a full disk.
    """
    place = place_of(folder)
    rows = 0
    try:
        with _create(place, name) as file:
            hashed = _HashedFile(file)
            with sealed_writer(hashed, schema, **layout(schema, keys, compression)) as writer:
                for columns in batches:
                    writer.write_table(pa.table(columns, schema=schema), row_group_size=len(columns[0]))
                    rows += len(columns[0])
    except OSError as error:
        if error.errno in NO_SPACE:
            raise OutOfRoom(
                f"no room left on the disk of {place}/{name}; free some, or choose another output folder"
            ) from error
        raise UsageError(f"cannot write {place}/{name}: {error.strerror or error}") from error
    return OutputFile(name, rows, hashed.bytes, hashed.sha256)


@contextmanager
def _create(place: Place, name: str) -> Iterator[BinaryIO]:
    """A new file, which is on the disk, or in the store, when the block ends."""
    if not place.is_local:
        with place.reached("write", name), place.files.open(place.path(name), "wb") as file:
            yield file
        return
    path, own = Path(place.url, name), 1 + len(Path(name).parts)
    with suppress(FileExistsError):
        path.parent.mkdir(0o700)  # not the folder: a task that outlives its run must not make it again
    with open(open_own(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, own), "wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def layout(schema: pa.Schema, keys: int, compression: str) -> dict[str, Any]:
    """Options of a ParquetWriter. Numbers are delta-packed: smaller and quicker to write than dictionaries, and
    readable everywhere.
    """
    numbers = [field.name for field in schema if pa.types.is_integer(field.type)]
    return {
        "compression": compression,
        "compression_level": ZSTD_LEVEL if compression == "zstd" else None,
        "use_dictionary": [field.name for field in schema if field.name not in numbers],
        "column_encoding": dict.fromkeys(numbers, "DELTA_BINARY_PACKED"),
        "store_schema": not any(isinstance(field.type, pa.BaseExtensionType) for field in schema),
        "sorting_columns": [pq.SortingColumn(key) for key in range(keys)],
    }
