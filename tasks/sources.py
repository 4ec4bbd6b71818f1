"""Where edges come from: Parquet files, found and checked by their footers, and cut into blocks of row groups."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Protocol

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
from fsspec.implementations.local import LocalFileSystem

from .errors import InputAbsent, InputError, UsageError
from .places import file_system
from .sealed import footer_of, read_footer
from .statistics import column_bytes, column_range
from .stores import asked
from .tables.finding import refuse_parts_of_tables, refuse_parts_under, table_at
from .tables.live import Table
from .versions import look_at, refuse_changed

if TYPE_CHECKING:
    from .identity import Kind  # planning a run reads footers, and needs nothing that handles ids

USUAL_COLUMNS = (("src", "dst"), ("source", "target"))
"""Names tried, in this order, when the user names no columns."""

DAMAGE = (pa.ArrowException, OSError, ValueError, EOFError)
"""What pyarrow raises on a file that is no Parquet file or a damaged one."""

TEXT_PER_BLOCK = 2**28
"""Bytes of strings read by one task, at most, unless one row group has more."""

STREAM_BYTES = 2**20
"""Fetched of a column at a time when it is not read at once."""

FOOTER_READERS = 16
"""Threads that read footers; they wait for the storage most of the time."""

_STATISTICS_BYTES = 2**20
"""Of footers whose statistics are read, which takes 0.7 s; of larger ones a sample of the rows tells as much."""


@dataclass(frozen=True)
class SourceFile:
    """One Parquet file of the input."""

    path: str
    """Absolute path, or URL."""

    bytes: int
    """Size of the file."""

    row_groups: tuple[int, ...]
    """Rows of each row group."""

    version: str | None
    """What the storage says that changes with the content (time and inode, ETag); None where it says nothing."""

    id_bytes: tuple[int, ...] = ()
    """[row groups] uncompressed bytes of both id columns, as the footer says, if ids are strings."""

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
    """The input as its footers describe it. Picklable; the storage options stay out of its repr."""

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
) -> Source:
    """Find the Parquet files of a file, folder, glob or fsspec URL, or of several of these, and check their columns.
    Reads footers only.

    A folder is searched for *.parquet at any depth; names that start with "." or "_" are left out. Of a Delta or
    Iceberg table the files are those of its version `table_version`, or of the current one. Columns that are not
    named are the USUAL_COLUMNS, else the only two. `reserved` are names that the output needs for itself.

    Raises InputAbsent, an InputError, if nothing is found; InputError if a footer cannot be read, the columns are
    missing or of an unusable type, or a table's files alone do not give its rows; UsageError for a table that cannot
    be read, a part of a table, or a version of what is no table.
    """
    options = dict(storage_options or {})
    if isinstance(path, str):
        table = table_at(path, options)
        live = None if table is None else table.live_files(table_version)
        paths = _find(path, options) if live is None else live.paths
    else:
        live, paths = None, _find_all(path, options)
        path = ", ".join(path)
    if live is None and table_version is not None:
        raise UsageError(f"input.table_version is {table_version}, but input {path!r} is no Delta or Iceberg table")
    with (
        nullcontext() if live is None else live.all_there(),
        ThreadPoolExecutor(min(FOOTER_READERS, len(paths))) as readers,
    ):
        footers = list(readers.map(lambda found: _read_footer(found, options), paths))
    names = footers[0].schema.names if live is None else list(live.columns)
    source_column, target_column = _choose_columns(paths[0], names, source_column, target_column)
    ends = source_column, target_column
    if live is not None:
        live.refuse_columns(ends)
        for footer in footers:
            live.refuse_file(footer.file.path, footer.schema, ends)
    _refuse_reserved(path, ends, reserved)
    types = [{column: _id_type(footer.file.path, footer.schema, column) for column in ends} for footer in footers]
    all_types = [column_type for own in types for column_type in own.values() if not pa.types.is_null(column_type)]
    id_type = _common_type(path, all_types)
    id_range = _id_range(footers, types) if pa.types.is_integer(id_type) else None
    files = tuple(footer.file for footer in footers)
    if not pa.types.is_integer(id_type):
        small = _are_small(footers)
        files = tuple(replace(footer.file, id_bytes=_text_bytes(footer, ends, small)) for footer in footers)
    return Source(path, files, *ends, id_type, options, id_range, None if live is None else live.table)


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
    ends = _choose_columns(name, schema.names, source_column, target_column)
    _refuse_reserved(name, ends, reserved)
    _common_type(name, [found for end in ends if not pa.types.is_null(found := _id_type(name, schema, end))])
    return ends


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


def reason(error: BaseException) -> str:
    """The first line of an error of pyarrow's, without a full stop."""
    return str(error).partition("\n")[0].rstrip(". ") or type(error).__name__


@contextmanager
def open_file(
    file: SourceFile, storage_options: Mapping[str, Any], pre_buffer: bool = True
) -> Iterator[pq.ParquetFile]:
    """One file found by `open_source`, open for reading; raises what is in DAMAGE, and what `asked` does. `pre_buffer`
    fetches the columns of whole row groups ahead; without, they are read by and by.

    Raises InputError if it is another version before or after it was read. On a disk that is asked of what is open, so
    that what is read is of the version that was looked at.

    Checks page checksums where there are any, and the footer of what edgemill wrote. That is always on: it takes a few
    in a hundred of the time in which R-MAT 20 is read and decoded (docs/reliability.md), and none where there are none.
    """
    descriptor = None
    try:
        with _opened(file.path, storage_options) as opened:
            descriptor = None if "://" in file.path else opened.fileno()
            if descriptor is not None:
                refuse_changed(file.path, file.version, storage_options, descriptor)
            yield pq.ParquetFile(
                opened,
                metadata=read_footer(opened),
                pre_buffer=pre_buffer,
                buffer_size=0 if pre_buffer else STREAM_BYTES,
                page_checksum_verification=True,
            )
            refuse_changed(file.path, file.version, storage_options, descriptor)
    except DAMAGE:
        refuse_changed(file.path, file.version, storage_options)
        raise


@contextmanager
def _opened(path: str, storage_options: Mapping[str, Any]) -> Iterator[Any]:
    with (
        asked("read", path),
        fsspec.open(path, "rb", **storage_options).open() if "://" in path else pa.OSFile(path) as file,
    ):
        yield file


def _pieces(block: Iterable[tuple[int, int, int]]) -> tuple[Piece, ...]:
    by_file: dict[int, list[int]] = {}
    for file, group, _ in block:
        by_file.setdefault(file, []).append(group)
    return tuple(Piece(file, tuple(row_groups)) for file, row_groups in by_file.items())


def _find_all(paths: Sequence[str], options: Mapping[str, Any]) -> list[str]:
    for path in paths:
        if table_at(path, options) is not None:
            raise UsageError(f"input {path!r} is a table, which is an input of its own: leave out the other paths")
    return sorted({found for path in paths for found in _find(path, options)})


def _find(path: str, options: Mapping[str, Any]) -> list[str]:
    filesystem, root = file_system(path, options)
    filesystem.invalidate_cache()  # what an earlier run in this process saw may have changed
    try:
        with asked("list", path):
            found = _expand(filesystem, path, root)
    except FileNotFoundError:
        raise InputAbsent(f"input {path!r} does not exist") from None
    except OSError as error:
        raise InputError(f"input {path!r} cannot be listed: {error}") from error
    if isinstance(filesystem, LocalFileSystem):
        return found
    return [filesystem.unstrip_protocol(name) for name in found]


def _expand(filesystem: Any, path: str, root: str) -> list[str]:
    if filesystem.isfile(root):
        return [root]
    if filesystem.isdir(root):
        found = _parquet_files(filesystem, path, root)
        if not found:
            raise InputAbsent(f"input {path!r} is a folder without *.parquet files")
        return found
    if not any(mark in root for mark in "*?["):
        raise InputAbsent(f"input {path!r} does not exist")
    matches = [name for name in filesystem.glob(root) if not PurePosixPath(name).name.startswith((".", "_"))]
    refuse_parts_under(path, filesystem, root, matches)
    found = []
    for name in matches:
        found += _parquet_files(filesystem, path, name) if filesystem.isdir(name) else [name]
    if not found:
        raise InputAbsent(f"no file matches input {path!r}")
    return sorted(set(found))


def _parquet_files(filesystem: Any, path: str, folder: str) -> list[str]:
    def visible(name: str) -> bool:
        return not any(part.startswith((".", "_")) for part in PurePosixPath(name).relative_to(folder).parts)

    listed = filesystem.find(folder)
    found = sorted(name for name in listed if name.endswith(".parquet") and visible(name))
    refuse_parts_of_tables(path, filesystem, found, listed)
    return found


@dataclass(frozen=True)
class _Footer:
    """What a file says of itself."""

    file: SourceFile
    schema: pa.Schema
    content: bytes
    """As it is in the file, without its length."""
    group_bytes: tuple[int, ...]
    """[row groups] uncompressed bytes of all columns."""


def _read_footer(path: str, options: Mapping[str, Any]) -> _Footer:
    try:
        size, version = look_at(path, options)  # before the footer is read: what changes meanwhile is noticed later
        if not size:
            raise InputError(f"{path} is empty (0 bytes), not a Parquet file; write it again or take it away")
        with _opened(path, options) as file:
            content, metadata = footer_of(file)
            groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
            row_groups = tuple(group.num_rows for group in groups)
            if min(row_groups, default=0) < 0 or sum(row_groups) != metadata.num_rows:
                raise ValueError(f"its footer has {metadata.num_rows} rows, and other numbers in its row groups")
            schema = pq.ParquetFile(file, metadata=metadata).schema_arrow
            group_bytes = tuple(group.total_byte_size for group in groups)
            return _Footer(SourceFile(path, size, row_groups, version), schema, content, group_bytes)
    except DAMAGE as error:
        raise _no_parquet(path, error) from error


def _no_parquet(path: str, error: BaseException) -> InputError:
    return InputError(
        f"{path} cannot be read as Parquet: {reason(error)}; "
        "it is another kind of file, was cut short or is damaged: write it again"
    )


def _choose_columns(path: str, names: Sequence[str], source: str | None, target: str | None) -> tuple[str, str]:
    if source is not None and source == target:
        raise InputError(f"source and target column are both {source!r}; name two different columns")
    if source is not None and target is not None:
        return source, target
    for pair in USUAL_COLUMNS:
        if set(pair) <= set(names) and source in (None, pair[0]) and target in (None, pair[1]):
            return pair
    if len(names) == 2:
        given = source if source is not None else target
        if given is None:
            return names[0], names[1]
        if given in names:
            other = names[1 - names.index(given)]
            return (given, other) if source is not None else (other, given)
    raise InputError(
        f"cannot tell which columns of {path} are the ends of an edge; it has {_listed(names)}: "
        "name the source column and the target column"
    )


def _refuse_reserved(path: str, ends: Collection[str], reserved: Collection[str]) -> None:
    for column in set(ends) & set(reserved):
        raise InputError(f"column {column!r} of input {path!r} has a name that the output uses for results: rename it")


def _id_type(path: str, schema: pa.Schema, column: str) -> pa.DataType:
    found = schema.get_all_field_indices(column)
    if not found:
        raise InputError(f"{path} has no column {column!r}; it has {_listed(schema.names)}")
    if len(found) > 1:
        raise InputError(f"{path} has {len(found)} columns named {column!r}; rename all but one")
    column_type = schema.field(found[0]).type
    if pa.types.is_dictionary(column_type):
        column_type = column_type.value_type
    if pa.types.is_string_view(column_type):
        return pa.string()
    if any(
        test(column_type)
        for test in (pa.types.is_integer, pa.types.is_string, pa.types.is_large_string, pa.types.is_null)
    ):
        return column_type
    raise InputError(
        f"{path}: column {column!r} is {column_type}, but ids are integers or strings: "
        "cast it to an integer or string type"
    )


def _common_type(path: str, types: Sequence[pa.DataType]) -> pa.DataType:
    """The narrowest type that holds all of them; uint64 beside signed types is int64, as ids end at 2^63-1."""
    if not types:
        return pa.int64()
    integers = [column_type for column_type in types if pa.types.is_integer(column_type)]
    if not integers:
        return pa.large_string() if pa.large_string() in types else pa.string()
    if len(integers) < len(types):
        raise InputError(
            f"the id columns of input {path!r} are integers in one place and strings in another: cast them"
        )
    unsigned = max((t.bit_width for t in integers if pa.types.is_unsigned_integer(t)), default=0)
    signed = max((t.bit_width for t in integers if pa.types.is_signed_integer(t)), default=0)
    if not signed:
        return {8: pa.uint8(), 16: pa.uint16(), 32: pa.uint32(), 64: pa.uint64()}[unsigned]
    width = min(max(signed, 2 * unsigned), 64)
    return {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[width]


def _id_range(footers: Sequence[_Footer], types: Sequence[Mapping[str, pa.DataType]]) -> tuple[int, int] | None:
    """The smallest and the largest id by the statistics of all row groups, or None where one does not tell."""
    if not _are_small(footers):
        return None
    ranges = []
    for footer, columns in zip(footers, types, strict=True):
        if not footer.file.rows:
            continue
        try:
            found = column_range(footer.content, columns)
        except ValueError as error:
            raise _no_parquet(footer.file.path, error) from error
        if found is None:
            return None
        ranges.append(found)
    return (min(least for least, _ in ranges), max(most for _, most in ranges)) if ranges else None


def _text_bytes(footer: _Footer, columns: Collection[str], small: bool) -> tuple[int, ...]:
    """[row groups] uncompressed bytes of the columns; of all columns where footers are not `small`."""
    try:
        if small:
            return column_bytes(footer.content, columns)
        return tuple(max(0, size) for size in footer.group_bytes)
    except ValueError as error:
        raise _no_parquet(footer.file.path, error) from error


def _are_small(footers: Sequence[_Footer]) -> bool:
    """Whether what footers say of each column is worth the time of reading it."""
    return sum(len(footer.content) for footer in footers) <= _STATISTICS_BYTES


def _listed(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names) or "no columns"
