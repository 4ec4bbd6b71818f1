"""Attributes of vertices: found and checked, read in blocks, and sent to the buckets of their vertices.

    every block   read_attributes
    exchange 1    send_attributes    blocks → buckets: publish_attributes

Attributes come from Parquet files, which are found and checked by their footers. Buckets are those of the ids
(tasks/ingest/numbering.py), so the table of attributes has the order of the vertices. The ids of a table of vertices
may be a part of the input that has no edges (`read_listed_ids`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..kernels.runtime.sizes import SizedArrays
from .device import MemorySpace
from .errors import InputAbsent, InputError
from .ids import identity
from .ids.display import display_id, type_name
from .ids.id_types import from_internal, to_internal
from .ids.identity import Ids
from .ingest.blocks import BlockEdges
from .ingest.left_out import NONE
from .ingest.numbering import BucketIds
from .inputs.columns import id_type as id_type_of
from .inputs.columns import is_uuid, plain_values, refuse_folder_columns, usual_name, value_type
from .inputs.finding import find_files
from .inputs.formats.parquet import encrypted, open_parquet, read_parquet_footer
from .inputs.opening import READ_ERRORS, error_reason
from .inputs.partitions import texts_of_path
from .inputs.sources import FOOTER_READERS, Source, SourceFile
from .messages import Bundle, bundle
from .publish.writing import OutputFile, write_table
from .storage.folders import Folder
from .tables.finding import table_at
from .tables.live import TableVersion

RESERVED = ("id", "side", "degree_inside", "degree", "triangles", "butterflies", "lambda")
"""Names that attributes cannot have: tables with attributes have these columns themselves."""

_USUAL_IDS = ("id", "vertex", "node", ":ID", "~id")
"""Names of the column of ids, in any case, that are tried in this order if the user names no column."""
_USUAL_LABELS = ("label", "name")

_BLOCK_BYTES = 2**28
"""Uncompressed bytes that one task reads at most. One row group may have more."""


@dataclass(frozen=True)
class AttributeSource:
    """A table with a row for each vertex, as its footers describe it. Picklable; its repr shows no storage options."""

    path: str
    """As the user wrote it."""

    files: tuple[SourceFile, ...]
    """Sorted by path."""

    group_bytes: tuple[tuple[int, ...], ...]
    """[files] uncompressed bytes of each row group."""

    id_column: str

    id_type: pa.DataType
    """The type of the ids in the edges."""

    schema: pa.Schema
    """The attributes, without the id."""

    label: str | None
    """The attribute that is shown beside the id of a vertex; None if there is none."""

    storage_options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """For fsspec; may have secrets."""

    table: TableVersion | None = None
    """The Delta or Iceberg table of these files."""

    @property
    def rows(self) -> int:
        """Rows of all files."""
        return sum(file.rows for file in self.files)


@dataclass(frozen=True)
class AttributeBlock:
    """Row groups that one task reads: pairs of an index in `AttributeSource.files` and an index in the file."""

    number: int
    row_groups: tuple[tuple[int, int], ...]


def open_attributes(
    path: str,
    id_type: pa.DataType,
    *,
    id_column: str | None = None,
    columns: Sequence[str] | None = None,
    label: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    only_ids: bool = False,
) -> AttributeSource:
    """Find the Parquet files of a file, folder, glob, table or fsspec URL, and check their columns. Reads footers only.

    `id_type` is the type of the ids in the edges. Defaults: `id_column` is found by its name; `columns` are all others;
    `label` is `label` or `name`, or else the only string attribute. `only_ids` allows a table without attributes.

    Raises InputError, which names the file and the column, if nothing is found, a footer cannot be read, a column is
    missing, has a reserved name or a type that cannot be published, or the ids and those of the edges differ in kind.
    """
    options = dict(storage_options or {})
    folder = table_at(path, options)
    live = None if folder is None else folder.live_files(None)
    folders: Collection[str] = ()
    try:
        if live is None:
            paths, folders = _parquet_files(path, options)
        else:
            paths = live.paths
    except InputAbsent as error:
        raise InputError(str(error).replace("input ", "--vertices ", 1)) from error
    with ThreadPoolExecutor(min(FOOTER_READERS, len(paths))) as readers:
        footers = list(readers.map(lambda found: read_parquet_footer(found, options), paths))
    first, names = footers[0].path, footers[0].schema.names if live is None else list(live.columns)
    id_column = _id_column(first, names, id_column)
    refuse_folder_columns(path, first, names, folders, (id_column,))
    for footer in footers:
        types = dict(zip(footer.schema.names, footer.schema.types, strict=True))
        if not sum(footer.row_groups):
            types = dict.fromkeys(types, pa.null())  # writers choose any type for a column without values
        found = id_type_of(footer.path, footer.schema.names, types, id_column)
        _refuse_other_ids(footer.path, found, id_column, id_type)
    chosen = _columns(first, names, id_column, columns, only_ids)
    refuse_folder_columns(path, first, names, folders, chosen)
    schemas = {footer.path: footer.schema for footer in footers}
    if live is not None:
        live.refuse_columns([id_column, *chosen])
        for file_path, schema in schemas.items():
            live.refuse_file(file_path, schema, [id_column, *chosen])
    filled = {footer.path: footer.schema for footer in footers if sum(footer.row_groups)} or schemas
    schema = pa.schema([(name, _type(filled, name)) for name in chosen])
    return AttributeSource(
        path,
        tuple(SourceFile(f.path, f.size, f.row_groups, f.version) for f in footers),
        tuple(footer.group_bytes for footer in footers),
        id_column,
        id_type,
        schema,
        _label(first, schema, label),
        options,
        None if live is None else live.table,
    )


def plan_attribute_blocks(source: AttributeSource, rows_per_block: int) -> list[AttributeBlock]:
    """Cut the table into blocks of at most `rows_per_block` rows, in file order: at least one, which may be empty.

    A row group is never cut: a larger one is a block by itself.
    """
    blocks: list[list[tuple[int, int]]] = [[]]
    rows = size = 0
    for index, file in enumerate(source.files):
        for group, more in enumerate(file.row_groups):
            if not more:
                continue
            own = source.group_bytes[index][group]
            if blocks[-1] and (rows + more > rows_per_block or size + own > _BLOCK_BYTES):
                blocks.append([])
                rows = size = 0
            blocks[-1].append((index, group))
            rows, size = rows + more, size + own
    return [AttributeBlock(number, tuple(groups)) for number, groups in enumerate(blocks)]


def _parquet_files(path: str, options: Mapping[str, Any]) -> tuple[Sequence[str], Collection[str]]:
    """The files of the input, and the columns whose values are in the names of their folders."""
    found = find_files(path, options)
    if found.format != "parquet":
        quoted = path.replace("'", "''")
        raise InputError(
            f"--vertices {path!r} is {found.format}, but attributes must be Parquet: convert it, for example "
            f"with DuckDB: COPY (SELECT * FROM '{quoted}') TO 'vertices.parquet'"
        )
    return found.paths, texts_of_path(found.root, found.paths[0]).keys()


def _id_column(path: str, names: Sequence[str], named: str | None) -> str:
    if named is not None:
        return named
    found = next((name for usual in _USUAL_IDS if (name := usual_name(names, usual)) is not None), None)
    if found is None:
        raise InputError(
            f"{path} has no column 'id' or 'vertex'; it has {', '.join(map(repr, names))}: name the column of ids "
            "with --vertex-id COLUMN"
        )
    return found


def _refuse_other_ids(path: str, found: pa.DataType, column: str, expected: pa.DataType) -> None:
    same = pa.types.is_integer(found) == pa.types.is_integer(expected) and is_uuid(found) == is_uuid(expected)
    if pa.types.is_null(found) or same:
        return
    raise InputError(
        f"{path}: column {column!r} is {found}, and the ids of the edges are {expected}: cast it to that type, or name "
        "another column with --vertex-id"
    )


def _columns(path: str, names: Sequence[str], id_column: str, named: Sequence[str] | None, only_ids: bool) -> list[str]:
    chosen = [name for name in names if name != id_column] if named is None else list(named)
    for name in chosen:
        if name in RESERVED:
            raise InputError(
                f"{path}: column {name!r} has a name that the result uses itself: rename it, or choose others with "
                "input.vertex_columns"
            )
        if name == id_column:
            raise InputError(f"input.vertex_columns has {name!r}, which is the id column: leave it out")
    if not chosen and not only_ids:
        raise InputError(
            f"{path} has no column besides {id_column!r}, so there are no attributes: leave out --vertices, or say "
            "--set input.isolated=true, if ids without edges are vertices, too"
        )
    return chosen


def _type(schemas: Mapping[str, pa.Schema], name: str) -> pa.DataType:
    """The type of an attribute in the output: that of the files. Raises InputError if they differ."""
    found: dict[pa.DataType, str] = {}
    for path, schema in schemas.items():
        if name not in schema.names:
            known = ", ".join(map(repr, schema.names))
            raise InputError(f"{path} has no column {name!r}; it has {known}: see input.vertex_columns")
        if (count := schema.names.count(name)) > 1:
            raise InputError(f"{path} has {count} columns named {name!r}; rename all but one")
        kind = schema.field(name).type
        kind = value_type(kind)
        if pa.types.is_large_string(kind):
            kind = pa.string()
        if not pa.types.is_null(kind):
            found.setdefault(kind, path)
    if len(found) > 1:
        (one, path), (other, other_path) = list(found.items())[:2]
        raise InputError(
            f"column {name!r} is {one} in {path} and {other} in {other_path}: cast it to one type, or choose others "
            "with input.vertex_columns"
        )
    kind, path = next(iter(found.items()), (pa.string(), ""))
    if not _can_be_published(kind):
        quoted = name.replace('"', '""')
        raise InputError(
            f"{path}: column {name!r} is {kind}; attributes are strings, numbers, booleans, dates and timestamps: cast "
            f'it, in SQL CAST("{quoted}" AS VARCHAR), or choose others with input.vertex_columns'
        )
    return kind


def _can_be_published(kind: pa.DataType) -> bool:
    tests = (
        *(pa.types.is_string, pa.types.is_integer, pa.types.is_float32, pa.types.is_float64, pa.types.is_boolean),
        *(pa.types.is_date, pa.types.is_timestamp, pa.types.is_decimal),
    )
    return any(test(kind) for test in tests)


def _label(path: str, schema: pa.Schema, named: str | None) -> str | None:
    if named is not None and named not in schema.names:
        known = ", ".join(map(repr, schema.names))
        raise InputError(f"input.vertex_label is {named!r}, which is no attribute of {path}; it has {known}")
    if named is not None:
        return named
    usual = [name for name in _USUAL_LABELS if name in schema.names]
    texts = [field.name for field in schema if pa.types.is_string(field.type)]
    return usual[0] if usual else texts[0] if len(texts) == 1 else None


_GROUP_BYTES = 2**27
"""Bytes of a row group of attributes, approximately, at most."""


@dataclass(frozen=True)
class AttributeRows(SizedArrays):
    """Attribute rows that are sent to the buckets of their vertices. `len()` is the number of rows."""

    number: int
    """Number of the block."""

    ids: pa.Array
    """[rows] int64 or large_string, ascending, without nulls."""

    values: pa.Table
    """[rows] the attributes; text is large_string."""

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class AttributeTable:
    """Where and how the table is written."""

    folder: Folder
    compression: str
    row_group_rows: int


@dataclass(frozen=True)
class BucketAttributes:
    """The file of one bucket, and its counts."""

    file: OutputFile
    unknown: int
    """Rows whose id is no vertex of the graph."""
    missing: int
    """Vertices without a row."""


def bucket_range(ids: BucketIds) -> Ids:
    """The first id of a bucket, as an array of one id; empty if the bucket has no vertices."""
    return identity.to_host(identity.part(ids.ids, 0, min(1, len(ids))))


def read_attributes(source: AttributeSource, block: AttributeBlock) -> AttributeRows:
    """Read a block and sort it by id. Raises InputError, which names the file, for damage and null ids."""
    tables = [_read(source, file, group) for file, group in block.row_groups]
    id_type = pa.int64() if pa.types.is_integer(source.id_type) else pa.large_string()
    schema = pa.schema(
        [pa.field("id", id_type), *(field.with_type(_internal_type(field.type)) for field in source.schema)]
    )
    table = pa.concat_tables([schema.empty_table(), *tables])
    table = table.take(pc.sort_indices(table["id"])).combine_chunks()
    return AttributeRows(block.number, _combined(table["id"]), table.drop(["id"]))


def send_attributes(rows: AttributeRows, firsts: Sequence[Ids]) -> Bundle[AttributeRows]:
    """Block → buckets: the rows in each bucket's range of ids. `firsts` is [buckets] their `bucket_range`."""
    filled = [bucket for bucket, first in enumerate(firsts) if len(first)] or [0]
    splitters = [firsts[bucket] for bucket in filled[1:]]
    ids = rows.ids.to_numpy() if pa.types.is_integer(rows.ids.type) else rows.ids
    cuts = [0, len(rows)] if not splitters else identity.split(ids, identity.concatenate(splitters)).tolist()
    parts = {}
    for index, bucket in enumerate(filled):
        start, stop = cuts[index], cuts[index + 1]
        if start < stop:  # copied: Arrow pickles the whole array of a slice
            values = rows.values.slice(start, stop - start)
            own = pa.Table.from_batches(
                [pa.RecordBatch.from_arrays([pa.concat_arrays(c.chunks) for c in values.columns], schema=values.schema)]
            )
            parts[bucket] = AttributeRows(rows.number, pa.concat_arrays([rows.ids.slice(start, stop - start)]), own)
    return bundle(rows.number, parts)


def publish_attributes(
    source: AttributeSource, how: AttributeTable, ids: BucketIds, parts: Mapping[int, AttributeRows]
) -> BucketAttributes:
    """Write attributes/part-N.parquet: a row for each vertex of the bucket, in the order of ids, with nulls for a
    vertex without a row. `parts` are the rows by block. Raises InputError for an id with several rows.
    """
    schema = pa.schema([field.with_type(_internal_type(field.type)) for field in source.schema])
    ordered = [parts[block] for block in sorted(parts)]
    rows = pa.concat_tables([schema.empty_table(), *(part.values for part in ordered)])
    known = ids.ids if isinstance(ids.ids, pa.Array) else pa.array(identity.to_host(ids.ids))
    found = pa.concat_arrays([pa.array([], known.type), *(part.ids for part in ordered)])
    _refuse_repeats(source, found)
    at = pc.index_in(known, value_set=found)
    missing = at.null_count
    file = write_table(
        how.folder,
        f"attributes/part-{ids.bucket:05d}.parquet",
        pa.schema([pa.field("id", source.id_type), *source.schema]),
        1,
        _batches(source, how, known, rows, at),
        how.compression,
    )
    return BucketAttributes(file, len(found) - (len(known) - missing), missing)


def _read(source: AttributeSource, file: int, group: int) -> pa.Table:
    own, columns = source.files[file], [source.id_column, *source.schema.names]
    try:
        with open_parquet(own.path, own.version, source.storage_options) as opened:
            table = opened.read_row_groups([group], columns=columns).select(columns)
    except READ_ERRORS as error:
        raise encrypted(own.path, error) or InputError(
            f"{own.path}: row group {group} cannot be read: {error_reason(error)}; the file is damaged or changed "
            "during the run: write it again"
        ) from error
    nulls = table.column(0).null_count
    if nulls:
        raise InputError(
            f"{own.path}: row group {group} has {nulls} null ids in column {source.id_column!r}: each row needs the id "
            "of its vertex; leave such rows out of the file"
        )
    kinds = [_internal_type(field.type) for field in source.schema]
    try:
        values = [plain_values(column).cast(kind) for column, kind in zip(table.columns[1:], kinds, strict=True)]
        return pa.table(
            [pa.array(to_internal(table.column(0), source.id_type)), *values], names=["id", *source.schema.names]
        )
    except pa.ArrowInvalid as error:
        raise InputError(
            f"{own.path}: row group {group}: column {source.id_column!r}, {table.column(0).type}, has ids that are no "
            f"{type_name(source.id_type)}, as those of the edges are ({error_reason(error)}): leave such rows out"
        ) from error


def _refuse_repeats(source: AttributeSource, found: pa.Array) -> None:
    counts = found.value_counts()
    several = counts.filter(pc.greater(counts.field("counts"), 1))
    if len(several):
        one = several.field("values").take(pc.sort_indices(several.field("values")))[0]
        times = several.filter(pc.equal(several.field("values"), one)).field("counts")[0]
        raise InputError(
            f"{source.path}: the id {_shown(one, source.id_type)!r} is in {times} rows of column "
            f"{source.id_column!r}: keep one row of each id"
        )


def _shown(id: pa.Scalar, id_type: pa.DataType) -> int | str:
    """An internal id as in the user's files."""
    own = pa.array([id.as_py()], id.type)
    value: int | str = display_id(from_internal(_ids(own, 0, 1), id_type)[0].as_py())
    return value


def _batches(
    source: AttributeSource, how: AttributeTable, known: pa.Array, rows: pa.Table, at: pa.Array
) -> Iterator[list[pa.Array]]:
    kinds = [field.type for field in source.schema]
    pending = [
        (start, min(start + how.row_group_rows, len(known))) for start in range(0, len(known), how.row_group_rows)
    ][::-1]
    while pending:
        start, stop = pending.pop()
        own = rows.take(at.slice(start, stop - start))
        if own.nbytes > _GROUP_BYTES and stop - start > 1:
            middle = (start + stop) // 2
            pending += [(middle, stop), (start, middle)]
            continue
        values = [_combined(column).cast(kind) for column, kind in zip(own.columns, kinds, strict=True)]
        yield [from_internal(_ids(known, start, stop), source.id_type), *values]


def _ids(known: pa.Array, start: int, stop: int) -> Ids:
    own = known.slice(start, stop - start)
    return own.to_numpy() if pa.types.is_integer(own.type) else own


def _internal_type(kind: pa.DataType) -> pa.DataType:
    """The type of values before they are written: large_string for strings."""
    return pa.large_string() if pa.types.is_string(kind) else kind


def _combined(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def read_listed_ids(
    source: AttributeSource, edges: Source, block: AttributeBlock, number: int, space: MemorySpace
) -> BlockEdges:
    """The ids of a block as a block of the input `edges`, with this number and without edges, so that their vertices
    are in the graph. Integer ids are placed in `space`. Raises InputError as `read_attributes` does.
    """
    ids = read_attributes(replace(source, schema=pa.schema([])), block).ids
    own = pc.unique(ids)
    distinct: Ids = own if pa.types.is_large_string(own.type) else space.place(own.to_numpy())
    none = space.place(np.zeros(0, np.int32))
    return BlockEdges(
        number,
        distinct,
        none,
        none,
        0,
        0,
        0,
        NONE,
        np.zeros_like(none, np.uint8, shape=(len(own),)) if edges.bipartite == "refuse" else None,
        none.astype(np.uint8) if edges.directed else None,
        np.zeros(0) if edges.weights is not None else None,
    )
