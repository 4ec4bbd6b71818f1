"""Compare a result with its input. Shares no code with ingest or with the reading of a run.

Text files are read whole, and no row group is skipped. Files that a condition excludes by their path are read too, to
check that none of their rows meet it.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv
import pyarrow.json as arrow_json
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ..errors import InputError, OutOfRoom, UsageError
from ..ids.display import display_id, type_name
from ..inputs.columns import is_whole_decimal, plain_values, value_type
from ..inputs.finding import find_files
from ..inputs.formats.input_format import TypedFormat, format_called
from ..inputs.partitions import partition_values, texts_of_path
from ..storage.parquet_checksum import read_footer
from ..storage.stores import store_errors
from ..tables.finding import refuse_parts_of_tables, refuse_parts_under, table_at
from ..tables.live import LiveFiles
from ..where.condition import Condition, parse_where
from ..where.expression import cannot_match, expression_of
from .reading import Flaw, Int, id_array, positions, reject
from .tables import EdgeTable, VertexTable, edge_at


class InputPiece(NamedTuple):
    """A row group or a file of the input, without rows that have a null id or do not meet the condition."""

    location: str
    """The file and row group, for messages."""
    source: Any
    target: Any
    types: set[pa.DataType]
    """Types of the two columns in the file."""
    nulls: int
    """Number of rows with a null id."""
    filtered: int
    """Number of rows that do not meet the condition."""
    weight: Any = None
    """[rows] float64 weights; None if the run read none."""


def input_pieces(path: str, recorded: Mapping[str, Any], live: LiveFiles | None = None) -> Iterator[InputPiece]:
    """Read the input by row groups or files: the `live` files of a table, or a file, folder, glob or URL.

    `recorded` is the manifest's record of the input: columns, format, layout and condition. Raises InputError if the
    input cannot be read, UsageError if it includes part of a table, and Flaw if the run excluded a file with rows that
    meet the condition.
    """
    columns, format = (recorded["source_column"], recorded["target_column"]), recorded.get("format", "parquet")
    filesystem, root = fsspec.core.url_to_fs(path)
    names = _names(filesystem, root, path, format, columns, live)
    if not names:
        raise InputError(f"{path}: no file of the input is there")
    filter = _Filter(recorded, root if filesystem.isdir(root) else "", live)
    for name in sorted(names):
        try:
            with store_errors("read", path), filesystem.open(name, "rb") as stream:
                yield from _pieces(name, stream, recorded, columns, filter, live)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise InputError(f"{name}: cannot be read as {format_called(format).title}: {error}") from error


class _Filter:
    """The condition of the run."""

    def __init__(self, recorded: Mapping[str, Any], root: str, live: LiveFiles | None) -> None:
        where = recorded.get("where")
        self.condition: Condition | None = None if where is None else parse_where(where["condition"])
        self._types: Mapping[str, str] = {} if where is None else where["types"]
        self._root = root
        self._by_path = live is None or live.table.format == "delta"

    @property
    def columns(self) -> list[str]:
        """The columns in the condition."""
        return list(self._types)

    def constants(self, name: str, columns: Sequence[str]) -> dict[str, Any]:
        """Column values from the path of a file."""
        if self.condition is None or not self._by_path:
            return {}
        texts = {key: text for key, text in texts_of_path(self._root, name).items() if key in self._types}
        named = texts.keys() | {column for column in self._types if column not in columns}
        return partition_values(texts, {column: _type(self._types[column]) for column in named})

    def is_left_out(self, constants: Mapping[str, Any]) -> bool:
        """Whether the path excludes all rows of a file."""
        if self.condition is None or not constants:
            return False
        types = {name: _type(self._types[name]) for name in constants}
        return cannot_match(self.condition, types, constants)

    def matching(self, table: pa.Table, constants: Mapping[str, Any]) -> pa.Table:
        """The rows that meet the condition."""
        if self.condition is None:
            return table
        types = dict(zip(table.schema.names, table.schema.types, strict=True))
        types |= {name: _type(self._types[name]) for name in constants}
        return table.filter(expression_of(self.condition, types, constants))


def _names(
    filesystem: Any, root: str, path: str, format: str, columns: tuple[str, str], live: LiveFiles | None
) -> list[str]:
    with store_errors("list", path):
        if live is not None:
            live.refuse_columns(columns)
            return list(live.paths)
        if format != "parquet":
            return find_files(path, {}, format).paths
        if filesystem.isdir(root):
            listed = filesystem.find(root)
            names = [name for name in listed if _is_part(name[len(root) :])]
            refuse_parts_of_tables(path, filesystem, names, listed)
        else:
            names = filesystem.glob(root)
            refuse_parts_under(path, filesystem, root, names)
    return list(names)


def _is_part(name: str) -> bool:
    return name.endswith(".parquet") and not any(part.startswith((".", "_")) for part in name.split("/"))


def _pieces(
    name: str,
    stream: Any,
    recorded: Mapping[str, Any],
    columns: tuple[str, str],
    filter: _Filter,
    live: LiveFiles | None,
) -> Iterator[InputPiece]:
    left_out = False
    weights = recorded.get("weights")
    weighed = [] if weights is None else [weights["column"]]
    for location, table in _tables(name, stream, recorded, [*columns, *weighed, *filter.columns], live):
        missing = [column for column in (*columns, *weighed) if column not in table.schema.names]
        if missing:
            raise InputError(f"{location}: no column {min(missing)!r}")
        constants = filter.constants(name, table.schema.names)
        matching = filter.matching(_storage(table), constants)
        left_out = filter.is_left_out(constants)
        if left_out:
            if matching.num_rows:
                raise Flaw(f"{location} has rows that meet the condition, and was left out")
            continue
        kinds = {value_type(table[column].type) for column in columns} if table.num_rows else set()
        types = {kind for kind in kinds if not is_whole_decimal(kind)}  # these become integers
        ends = matching.select(list(columns))
        whole = ends.drop_null()
        weight = None
        if weighed:
            with_ends = matching.select([*columns, *weighed]).filter(
                pc.and_(pc.is_valid(ends.column(0)), pc.is_valid(ends.column(1)))
            )
            weight = with_ends.column(2).cast(pa.float64(), safe=False).to_numpy()
        nulls, filtered = ends.num_rows - whole.num_rows, table.num_rows - matching.num_rows
        source, target = (_prefixed(whole[column], column, recorded) for column in columns)
        yield InputPiece(location, source, target, types, nulls, filtered, weight)


def _storage(table: pa.Table) -> pa.Table:
    """The table without extension types, dictionaries, runs and views, which conditions cannot compare."""
    columns = []
    for column in map(plain_values, table.columns):
        if isinstance(column.type, pa.BaseExtensionType):
            column = column.cast(column.type.storage_type)
        columns.append(column)
    return pa.table(columns, table.schema.names)


def _prefixed(ids: pa.ChunkedArray, column: str, recorded: Mapping[str, Any]) -> pa.ChunkedArray:
    """The ids with the column as prefix, if the run prefixed them."""
    if recorded.get("bipartite") != "prefix":
        return ids
    return pa.chunked_array([pa.array([f"{column}:{display_id(value)}" for value in ids.to_pylist()], pa.string())])


def _tables(
    name: str, stream: Any, recorded: Mapping[str, Any], columns: Sequence[str], live: LiveFiles | None
) -> Iterator[tuple[str, pa.Table]]:
    """(location, columns in the file) of each row group of a Parquet file, or of a whole file of another format."""
    format = recorded.get("format", "parquet")
    if format == "parquet":
        file = pq.ParquetFile(
            stream, metadata=read_footer(stream), page_checksum_verification=True, arrow_extensions_enabled=True
        )
        if live is not None:
            live.refuse_file(name, file.schema_arrow, columns[:2])
        present = [column for column in dict.fromkeys(columns) if column in file.schema_arrow.names]
        for group in range(file.num_row_groups):
            yield f"{name}, row group {group}", file.read_row_group(group, columns=present)
        return
    reader = format_called(format)
    table = reader.whole(stream) if isinstance(reader, TypedFormat) else _text(name, stream.read(), recorded["layout"])
    yield name, table.select([column for column in dict.fromkeys(columns) if column in table.schema.names])


def _text(name: str, content: bytes, layout: Mapping[str, Any]) -> pa.Table:
    suffix = PurePosixPath(name.lower()).suffix
    if suffix == ".gz":
        content = gzip.decompress(content)
    elif suffix == ".bz2":
        content = bz2.decompress(content)
    elif suffix in (".zst", ".zstd"):
        content = pa.CompressedInputStream(pa.BufferReader(content), "zstd").read()
    content = content.removeprefix(b"\xef\xbb\xbf")
    if layout["format"] == "mtx":
        return _entries(name, content)
    content = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if layout["comment"]:
        content = re.sub(rb"(?m)^" + re.escape(layout["comment"].encode()) + rb".*\n?", b"", content)
    if layout["delimiter"] == " " or layout.get("strip"):
        content = b"\n".join(_without_blanks(line, layout) for line in content.split(b"\n"))
    content = content.strip(b"\n")
    types = {column: _type(kind) for column, kind in layout["types"]}
    if not content:
        return pa.table({column: pa.array([], kind) for column, kind in types.items()})
    if layout["format"] == "jsonl":
        schema = pa.schema(list(types.items()))
        options = arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
        return arrow_json.read_json(io.BytesIO(content), parse_options=options)
    first = content.partition(b"\n")[0].decode()
    count = len(next(csv.reader([first], delimiter=layout["delimiter"])))
    names = ("src", "dst", *(f"column_{number}" for number in range(3, count + 1)))[:count]
    reading = arrow_csv.ReadOptions() if layout["header"] else arrow_csv.ReadOptions(column_names=names)
    texts = types | {column: pa.string() for column in list(types)[:2]}  # the columns of ids
    table = arrow_csv.read_csv(
        io.BytesIO(content),
        read_options=reading,
        parse_options=arrow_csv.ParseOptions(delimiter=layout["delimiter"]),
        convert_options=arrow_csv.ConvertOptions(
            column_types=texts,
            include_columns=list(types),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    for position, (column, kind) in enumerate(list(types.items())[:2]):
        table = table.set_column(position, column, _ids(name, table[column], column, kind))
    return table


def _ids(name: str, texts: pa.ChunkedArray, column: str, kind: pa.DataType) -> pa.ChunkedArray:
    """Ids of a type from their texts. Raises Flaw for one that is not written as the id prints."""
    if pa.types.is_string(kind):
        return texts
    wrong = pc.index(pc.match_substring_regex(texts, "^(0|-?[1-9][0-9]*)$"), False).as_py()
    if wrong >= 0:
        raise Flaw(f"{name}: column {column!r} has {texts[wrong]}, which is no integer, and the ids are {kind}")
    return texts.cast(kind)


def _without_blanks(line: bytes, layout: Mapping[str, Any]) -> bytes:
    """A line without blanks around its fields, and one space in place of several if spaces divide fields."""
    divider = rb"[ \t]+" if layout["delimiter"] == " " else re.escape(layout["delimiter"].encode())
    if layout.get("strip"):
        divider = rb"\s*" + divider + rb"\s*"
    outside = rb'(?=(?:[^"]*"[^"]*")*[^"]*$)' if b'"' in line else b""
    fields = re.split(divider + outside, line.strip())
    if layout.get("strip"):
        fields = [re.sub(rb'^"\s+|\s+"$', b'"', field.strip()) for field in fields]
    delimiter: str = layout["delimiter"]
    return delimiter.encode().join(fields)


def _entries(name: str, content: bytes) -> pa.Table:
    """The entries of a Matrix Market file."""
    sizes, *entries = (line.split() for line in content.splitlines() if line.strip() and not line.startswith(b"%"))
    if len(entries) != int(sizes[2]):
        raise InputError(f"{name}: it has {len(entries):,} entries, and says {int(sizes[2]):,}")
    names = ("src", "dst", "value") if b" pattern " not in content[:200].lower() else ("src", "dst")
    columns = list(zip(*entries, strict=True)) or [()] * len(names)
    return pa.table(
        {
            column: pa.array([(float if column == "value" else int)(field) for field in fields])
            for column, fields in zip(names, columns, strict=True)
        },
        pa.schema([(column, pa.float64() if column == "value" else pa.int64()) for column in names]),
    )


def _type(text: str) -> pa.DataType:
    """The Arrow type with a name in the manifest."""
    zoned = re.fullmatch(r"timestamp\[(\w+), tz=(.+)\]", text)
    return pa.type_for_alias(text) if zoned is None else pa.timestamp(zoned[1], zoned[2])


def live_files(path: str, version: int | None, recorded: Mapping[str, Any] | None) -> LiveFiles | None:
    """The live files of the table at `path`, or None if there is no table.

    The version is `version`; else the version in the manifest, if that is of a table of the same format; else the
    current one. Raises as `TableFolder.live_files` does.
    """
    table = table_at(path, {})
    if table is None:
        if version is not None:
            raise UsageError(f"{path} is no Delta or Iceberg table, so it has no version {version}")
        return None
    if version is None and recorded is not None and recorded["format"] == table.format:
        version = int(recorded["version"])
    return table.live_files(version)


def check_input(
    path: str, manifest: dict[str, Any], edges: EdgeTable, vertices: VertexTable, live: LiveFiles | None = None
) -> tuple[str, bool]:
    """Compare edges, vertices, id type and row counts with the input at `path`, or the `live` files of a table.

    Raises Flaw, InputError if the input cannot be read, and OutOfRoom for more than 3,037,000,498 vertices.
    """
    size = len(vertices.ids)
    if size >= 3_037_000_499:  # a pair of positions would not fit int64
        raise OutOfRoom(f"{size} vertices are too many to compare with the input")
    keys = edges.source * size + edges.target
    edge_seen, vertex_seen = np.zeros(keys.size, np.bool_), np.zeros(size, np.bool_)
    rows = self_loops = nulls = filtered = 0
    types: set[Any] = set()
    columns = manifest["input"]["source_column"], manifest["input"]["target_column"]
    for batch in batches(input_pieces(path, manifest["input"], live), size):
        ends = [positions(end, vertices.ids) for end in (batch.source, batch.target)]
        for column, stored, end in zip(columns, (batch.source, batch.target), ends, strict=True):
            reject(
                end < 0,
                lambda at: (
                    f"{batch.location(at)}: {column} {display_id(stored[at].as_py())!r} is not in the vertex table"  # noqa: B023
                ),
            )
            vertex_seen[end] = True
        joins = np.flatnonzero(ends[0] != ends[1])
        row_keys = np.minimum(*ends)[joins] * size + np.maximum(*ends)[joins]
        ordered = np.sort(row_keys)
        found = np.minimum(np.searchsorted(keys, ordered), max(0, keys.size - 1))
        absent = keys[found] != ordered if keys.size else np.ones(ordered.size, np.bool_)
        reject(
            absent,
            lambda at: (
                f"{batch.location(joins[(row_keys == ordered[at]).argmax()])}: edge"  # noqa: B023
                f" ({vertices.name(ordered[at] // size)}, {vertices.name(ordered[at] % size)}) is not in the result"  # noqa: B023
            ),
        )
        edge_seen[found] = True
        types |= batch.types
        rows += len(batch.source) + batch.nulls + batch.filtered
        nulls += batch.nulls
        filtered += batch.filtered
        self_loops += len(batch.source) - joins.size
    reject(~edge_seen, lambda at: f"{edge_at(edges, vertices, at)} is not in the input")
    if manifest["input"].get("isolated"):  # the table of vertices has them, which `check_attributes` compares
        vertex_seen |= vertices.degree == 0
    reject(~vertex_seen, lambda at: f"vertex {vertices.name(at)} is not in the input")
    kept_types = manifest["input"].get("bipartite") != "prefix"  # which makes all ids strings
    if kept_types and len(types) == 1 and types != {vertices.id_type}:
        raise Flaw(f"the ids are {type_name(vertices.id_type)}; in the input they are {type_name(types.pop())}")
    expected = {
        "rows": rows,
        "self_loops": self_loops,
        "nulls_dropped": nulls,
        "filtered": filtered,
        "duplicates": rows - filtered - nulls - self_loops - keys.size,
    }
    for name, value in expected.items():
        stored = manifest["counts"].get(name, 0)  # results of releases before conditions have no such count
        if stored != value:
            raise Flaw(f"the manifest's counts.{name} is {stored}; the input gives {value}")
    return f"the same edges as the {rows:,} rows of {path if live is None else live.table}", True


def edges_of_input(
    path: str, manifest: dict[str, Any], vertices: VertexTable, live: LiveFiles | None = None
) -> tuple[Int, Int]:
    """The edges in the input, each once: positions of their smaller and larger ends in the vertex table, ascending.

    Rows with an id that is not in the table are left out. Raises as `check_input` does.
    """
    size = len(vertices.ids)
    found = np.zeros(0, np.int64)
    for batch in batches(input_pieces(path, manifest["input"], live), size):
        ends = np.stack([positions(end, vertices.ids) for end in (batch.source, batch.target)])
        ends = ends[:, (ends[0] != ends[1]) & (ends >= 0).all(axis=0)]
        found = np.union1d(found, ends.min(axis=0) * size + ends.max(axis=0))
    return found // max(size, 1), found % max(size, 1)


class InputRows(NamedTuple):
    """Rows of several row groups, without rows that have a null id."""

    source: Any
    target: Any
    types: set[pa.DataType]
    nulls: int
    filtered: int
    ends: Int
    """[row groups] end of the rows of each row group."""
    locations: list[str]
    weight: NDArray[np.float64] | None = None
    """[rows] None if the run read none."""

    def location(self, row: int) -> str:
        """The location of the row group with a row, for a message."""
        return self.locations[int(np.searchsorted(self.ends, row, "right"))]


def batches(pieces: Iterable[InputPiece], least_rows: int) -> Iterator[InputRows]:
    """Concatenate pieces with ids of the same types up to at least `least_rows` rows.

    The lookup of ids reads all vertices for each batch, so batches should be large.
    """
    buffered: list[InputPiece] = []
    rows = 0
    for piece in pieces:
        piece = piece._replace(source=id_array(piece.source), target=id_array(piece.target))
        if buffered and _kinds(piece) != _kinds(buffered[0]):
            yield _batch(buffered)
            buffered, rows = [], 0
        buffered.append(piece)
        rows += len(piece.source)
        if rows >= least_rows:
            yield _batch(buffered)
            buffered, rows = [], 0
    if buffered:
        yield _batch(buffered)


def _kinds(piece: InputPiece) -> tuple[pa.DataType, pa.DataType]:
    return piece.source.type, piece.target.type


def _batch(pieces: list[InputPiece]) -> InputRows:
    return InputRows(
        pa.concat_arrays([piece.source for piece in pieces]),
        pa.concat_arrays([piece.target for piece in pieces]),
        set().union(*(piece.types for piece in pieces)),
        sum(piece.nulls for piece in pieces),
        sum(piece.filtered for piece in pieces),
        np.cumsum([len(piece.source) for piece in pieces]),
        [piece.location for piece in pieces],
        None if pieces[0].weight is None else np.concatenate([piece.weight for piece in pieces]),
    )
