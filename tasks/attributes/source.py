"""The source of vertex attributes: Parquet files, found and checked by their footers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from ..errors import InputAbsent, InputError
from ..inputs.columns import id_type as id_type_of
from ..inputs.columns import is_uuid, refuse_folder_columns, usual_name, value_type
from ..inputs.finding import find_files
from ..inputs.formats.parquet import read_parquet_footer
from ..inputs.sources import FOOTER_READERS, SourceFile
from ..tables.finding import table_at
from ..tables.live import Table
from ..where.partitions import texts_of_path

RESERVED = ("id", "degree_inside", "degree", "triangles", "lambda")
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

    table: Table | None = None
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
