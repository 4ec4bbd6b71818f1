"""Where edges come from: files, found and checked by what they say of themselves, and cut into blocks of row groups."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from .errors import InputError, UsageError
from .inputs.columns import USUAL_COLUMNS, choose_columns, common_type, id_type
from .inputs.finding import Found, find_all_files, find_files
from .inputs.form import Bipartite, Form
from .inputs.formats import Format, compression_of, is_text
from .inputs.head import Head, look_at_files
from .inputs.layout import Layout
from .inputs.opening import DAMAGE, reason
from .inputs.partitioned import partitioned
from .inputs.sizes import id_bytes, id_range
from .inputs.types import end_types, filter_of, input_type, refuse_form
from .tables.finding import table_at
from .tables.live import LiveFiles, Table
from .versions import refuse_changed
from .where.condition import parse_where
from .where.filter import RowFilter

if TYPE_CHECKING:
    from .identity import Kind  # planning a run reads footers, and needs nothing that handles ids

__all__ = [
    "DAMAGE",
    "FOOTER_READERS",
    "USUAL_COLUMNS",
    "Block",
    "Frame",
    "Piece",
    "Source",
    "SourceFile",
    "check_columns",
    "open_source",
    "plan_blocks",
    "reason",
    "refuse_changed_files",
]

TEXT_PER_BLOCK = 2**28
"""Bytes of strings read by one task, at most, unless one row group has more."""

FOOTER_READERS = 16
"""Threads that read footers; they wait for the storage most of the time."""

_PLAIN = Form()
_LEAST_LINE = 4
"""Bytes of a line with two ids."""


@dataclass(frozen=True)
class SourceFile:
    """One file of the input."""

    path: str
    """Absolute path, or URL."""

    bytes: int
    """Size of the file."""

    row_groups: tuple[int, ...]
    """Rows of each row group, or, of other formats than Parquet, of each part that can be read alone: an estimate."""

    version: str | None
    """What the storage says that changes with the content (time and inode, ETag); None where it says nothing."""

    id_bytes: tuple[int, ...] = ()
    """[row groups] uncompressed bytes of both id columns, as the footer says or as estimated, if ids are strings."""

    spans: tuple[tuple[int, int | None], ...] = ()
    """[row groups] the bytes of text, or the record batches, that each has; none of Parquet."""

    names: tuple[str, ...] = ()
    """Columns of CSV, in the order of the file."""

    constants: Mapping[str, Any] = field(default_factory=dict)
    """Columns of the condition whose value the path gives."""

    @property
    def rows(self) -> int:
        """Rows of the file."""
        return sum(self.row_groups)


@dataclass(frozen=True)
class Frame:
    """Edges that were given to a run in memory, or by tasks of Dask, and not as files."""

    kind: str
    """What it was, as `pandas.DataFrame`."""

    sha256: tuple[str, ...]
    """[files] digests of what was written of it."""


@dataclass(frozen=True)
class Source:
    """The input as its files describe it. Picklable; the storage options stay out of its repr."""

    path: str
    """What the user gave."""

    files: tuple[SourceFile, ...]
    """Sorted by path."""

    source_column: str
    target_column: str

    id_type: pa.DataType
    """The common type of both columns over all files, which the output has too."""

    storage_options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """For fsspec; may hold secrets."""

    id_range: tuple[int, int] | None = None
    """The smallest and the largest id, as the footers say; None where they do not, and of strings."""

    table: Table | None = None
    """The Delta or Iceberg table that the files hold the rows of."""

    frame: Frame | None = None
    """The frame or graph in memory whose edges the files hold for the time of the run."""

    format: Format = "parquet"

    layout: Layout | None = None
    """How the rows of files that are not Parquet are laid out."""

    where: RowFilter | None = None
    """The rows that are wanted; None: all."""

    files_left_out: int = 0
    """Files that are not read, as their paths say that none of their rows is wanted."""

    bipartite: Bipartite | None = None
    """What is done about ids of the two columns that are the same, where the columns are two sets of ids."""

    directed: bool = False
    """Whether edges lead from the source column to the target column, and that matters."""

    prefixes: tuple[str, str] | None = None
    """What the ids of each column are given in front."""

    notes: tuple[str, ...] = ()
    """What was guessed, in sentences."""

    @property
    def most_rows(self) -> int | None:
        """As many as there can be; None where that is not known before they are read."""
        if self.is_counted:
            return self.rows
        if not is_text(self.format) or any(compression_of(file.path) for file in self.files):
            return None
        return sum(file.bytes // _LEAST_LINE + 1 for file in self.files)

    @property
    def is_counted(self) -> bool:
        """Whether the rows of all files are known before they are read."""
        return self.format == "parquet"

    @property
    def kind(self) -> Kind:
        """Integers or strings."""
        return "integer" if pa.types.is_integer(self.id_type) else "string"

    @property
    def rows(self) -> int:
        """Rows of all files."""
        return sum(file.rows for file in self.files)

    @property
    def bytes(self) -> int:
        """Size of all files."""
        return sum(file.bytes for file in self.files)

    def id_bytes(self, piece: Piece) -> int:
        """Uncompressed bytes of both id columns in some row groups, as the footer says."""
        return sum(self.files[piece.file].id_bytes[group] for group in piece.row_groups)


class _Files(Protocol):
    """Files that are read with the same options."""

    @property
    def files(self) -> tuple[SourceFile, ...]: ...

    @property
    def storage_options(self) -> Mapping[str, Any]: ...


@dataclass(frozen=True)
class Piece:
    """Row groups of one file."""

    file: int
    """Position in `Source.files`."""

    row_groups: tuple[int, ...]
    """Consecutive numbers in the file."""


@dataclass(frozen=True)
class Block:
    """What one task reads: consecutive row groups, over file borders too."""

    number: int
    rows: int
    pieces: tuple[Piece, ...]


def open_source(
    path: str | Sequence[str],
    source_column: str | None = None,
    target_column: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    reserved: Collection[str] = (),
    table_version: int | None = None,
    form: Form = _PLAIN,
) -> Source:
    """Find the files of a file, folder, glob or fsspec URL, or of several of these, and check their columns. Reads the
    footers of Parquet, and the beginnings of other files.

    A folder is searched at any depth; names that start with "." or "_" are left out. Of a Delta or Iceberg table the
    files are those of its version `table_version`, or of the current one. Columns that are not named are the
    USUAL_COLUMNS, else the only two. `reserved` are names that the output needs for itself. `form` is what is known of
    the files, and which of their rows are wanted.

    Raises InputAbsent, an InputError, if nothing is found; InputError if a file cannot be read, the columns are
    missing or of an unusable type, or a table's files alone do not give its rows; UsageError for a table that cannot
    be read, a part of a table, a version of what is no table, or a condition that does not fit the columns.
    """
    options = dict(storage_options or {})
    condition = None if form.where is None else parse_where(form.where)
    live = None
    if isinstance(path, str):
        table = table_at(path, options)
        live = None if table is None else table.live_files(table_version)
        found = find_files(path, options, form.format) if live is None else Found.of(live)
    else:
        found = _find_all(path, options, form)
        path = ", ".join(path)
    if live is None and table_version is not None:
        raise UsageError(f"input.table_version is {table_version}, but input {path!r} is no Delta or Iceberg table")
    refuse_form(form, found.format, path, is_table=live is not None)
    wanted_files = partitioned(found, condition, live)
    paths = wanted_files.paths
    with (
        nullcontext() if live is None else live.all_there(),
        ThreadPoolExecutor(min(FOOTER_READERS, len(paths))) as readers,
    ):
        heads = look_at_files(readers, paths, found.format, form, options)
    names = heads[0].names if live is None else list(live.columns)
    source_column, target_column, guessed = choose_columns(paths[0], names, source_column, target_column)
    ends = source_column, target_column
    where = None if condition is None else filter_of(condition, heads, wanted_files)
    _refuse_columns(path, live, heads, ends, where, reserved)
    types = end_types(heads, ends, found.format, form)
    common = input_type(path, heads, types, found.format, form)
    prefixes = _prefixes(ends) if form.bipartite == "prefix" else None
    is_text_id = prefixes is not None or not pa.types.is_integer(common)
    files = tuple(
        SourceFile(
            head.path,
            head.bytes,
            head.row_groups,
            head.version,
            id_bytes(heads, head, ends, prefixes) if is_text_id else (),
            head.spans,
            head.names if is_text(found.format) else (),
            constants,
        )
        for head, constants in zip(heads, wanted_files.constants, strict=True)
    )
    return Source(
        path,
        files,
        *ends,
        common if prefixes is None else pa.string(),
        options,
        None if is_text_id else id_range(heads, types),
        None if live is None else live.table,
        None,
        found.format,
        _layout(found.format, heads, ends, common, where),
        where,
        wanted_files.left_out,
        form.bipartite,
        form.directed,
        prefixes,
        _notes(heads, ends, guessed, form),
    )


def _refuse_columns(
    path: str,
    live: LiveFiles | None,
    heads: Sequence[Head],
    ends: tuple[str, str],
    where: RowFilter | None,
    reserved: Collection[str],
) -> None:
    _refuse_reserved(path, ends, reserved)
    if live is None:
        return
    columns = (*ends, *(where.columns if where is not None else ()))
    live.refuse_columns(columns)
    for head in heads:
        live.refuse_file(head.path, head.schema, columns)


def _refuse_reserved(path: str, ends: Collection[str], reserved: Collection[str]) -> None:
    for column in set(ends) & set(reserved):
        raise InputError(f"column {column!r} of input {path!r} has a name that the output uses for results: rename it")


def _find_all(paths: Sequence[str], options: Mapping[str, Any], form: Form) -> Found:
    for path in paths:
        if table_at(path, options) is not None:
            raise UsageError(f"input {path!r} is a table, which is an input of its own: leave out the other paths")
    return find_all_files(paths, options, form.format)


def check_columns(
    name: str,
    schema: pa.Schema,
    source_column: str | None = None,
    target_column: str | None = None,
    reserved: Collection[str] = (),
) -> tuple[str, str]:
    """The columns of a frame that are the ends of an edge, chosen as `open_source` does; `name` is what to call it.

    Raises InputError if they cannot be told, are missing, of an unusable type or `reserved`.
    """
    source, target, _ = choose_columns(name, schema.names, source_column, target_column)
    _refuse_reserved(name, (source, target), reserved)
    types = dict(zip(schema.names, schema.types, strict=True))
    found = [id_type(name, schema.names, types, end) for end in (source, target)]
    common_type(name, [kind for kind in found if not pa.types.is_null(kind)])
    return source, target


def _prefixes(ends: tuple[str, str]) -> tuple[str, str]:
    """Such that no id with the one is an id with the other."""
    first, second = (f"{column}:" for column in ends)
    if first.startswith(second) or second.startswith(first):
        raise UsageError(
            f"input.bipartite is prefix, and ids of columns {ends[0]!r} and {ends[1]!r} could still meet: rename one"
        )
    return first, second


def _layout(
    format: Format, heads: Sequence[Head], ends: tuple[str, str], common: pa.DataType, where: RowFilter | None
) -> Layout | None:
    if format == "parquet":
        return None
    text = heads[0].text
    if text is None:
        return Layout(format)
    types = dict.fromkeys(ends, common)
    for name, kind in where.types if where is not None else ():
        if where is not None and name in where.columns:
            types.setdefault(name, kind)
    return Layout(format, text.delimiter, text.header, text.comment, tuple(types.items()))


def _notes(heads: Sequence[Head], ends: tuple[str, str], guessed: bool, form: Form) -> tuple[str, ...]:
    """What was guessed, and how to say otherwise."""
    notes = []
    text, first = heads[0].text, heads[0]
    if text is not None and text.delimiter and not text.header and form.header is None:
        columns = ", ".join(first.names)
        notes.append(f"{first.path} has no names of columns in its first line: they are called {columns}")
    elif text is not None and not text.header_told:
        columns = ", ".join(first.names)
        notes.append(
            f"the first line of {first.path} is taken as the names of its columns, {columns}: "
            "if it is a row, say --set input.header=false"
        )
    if guessed:
        notes.append(
            f"columns {ends[0]!r} and {ends[1]!r} are taken as the two ends of an edge, with ids of one kind: "
            "name them with --source-column and --target-column, or, if the same id means different things in "
            "each, say --bipartite prefix"
        )
    return tuple(notes)


def plan_blocks(source: Source, rows_per_block: int, bytes_per_block: int = TEXT_PER_BLOCK) -> list[Block]:
    """Cut the input into blocks of at most `rows_per_block` rows, and of strings of at most `bytes_per_block` in the
    files, uncompressed; in file order; at least one block, possibly empty.

    A row group is never cut, so one that is larger makes a block of its own.
    """
    groups = [(f, g, rows) for f, file in enumerate(source.files) for g, rows in enumerate(file.row_groups) if rows]
    blocks: list[list[tuple[int, int, int]]] = [[]]
    filled = text = 0
    for group in groups:
        more = source.id_bytes(Piece(group[0], (group[1],))) if source.kind == "string" else 0
        if blocks[-1] and (filled + group[2] > rows_per_block or text + more > bytes_per_block):
            blocks.append([])
            filled = text = 0
        blocks[-1].append(group)
        filled += group[2]
        text += more
    return [Block(number, sum(rows for *_, rows in block), _pieces(block)) for number, block in enumerate(blocks)]


def refuse_changed_files(source: _Files) -> None:
    """Raises InputError if a file of the input has changed since its footer was read, or is gone."""
    with ThreadPoolExecutor(FOOTER_READERS) as readers:
        list(readers.map(lambda file: refuse_changed(file.path, file.version, source.storage_options), source.files))


def _pieces(block: Iterable[tuple[int, int, int]]) -> tuple[Piece, ...]:
    by_file: dict[int, list[int]] = {}
    for file, group, _ in block:
        by_file.setdefault(file, []).append(group)
    return tuple(Piece(file, tuple(row_groups)) for file, row_groups in by_file.items())
