"""The input of a run as its files describe it, and blocks: the row groups that one task reads."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from hashlib import file_digest
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar

import pyarrow as pa

from ..errors import InputError, OtherType, clipped
from ..tables.live import TableVersion
from ..where.expression import RowFilter
from .formats.form import Bipartite, RowLayout, Weights
from .formats.input_format import compression_of, format_called, is_text
from .formats.matrix_market import Matrix, refuse_other_entries
from .opening import refuse_changed

if TYPE_CHECKING:
    from ..ids.identity import Kind


Measure: TypeAlias = Literal["triangles", "butterflies"]
"""What the λ of an edge counts: triangles, or the butterflies (complete subgraphs of two and two vertices) of a graph
with two sides.
"""

_MIN_LINE_BYTES = 4
"""Bytes of the shortest line with two ids."""

_FRACTION = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
"""A number that float64 holds."""

TEXT_PER_BLOCK = 2**28
"""Bytes of strings that one task reads at most. One row group may have more."""

FOOTER_READERS = 16
"""Threads that read footers. They mostly wait for the storage."""


@dataclass(frozen=True)
class SourceFile:
    """One file of the input."""

    path: str
    """Absolute path, or URL."""

    bytes: int
    """Size of the file."""

    row_groups: tuple[int, ...]
    """Rows of each row group. In other formats than Parquet: estimated rows of each part that can be read alone."""

    version: str | None
    """Changes with the content (time and inode, ETag); None if the storage has no such information."""

    id_bytes: tuple[int, ...] = ()
    """[row groups] uncompressed bytes of both id columns, from the footer or estimated; empty if ids are integers."""

    spans: tuple[tuple[int, int | None], ...] = ()
    """[row groups] range of bytes (text) or record batches (Arrow), end excluded; empty for Parquet."""

    names: tuple[str, ...] = ()
    """Columns of a text file, in its order."""

    constants: Mapping[str, Any] = field(default_factory=dict)
    """Columns of the condition whose value is in the path (`column=value`), and this value."""

    matrix: Matrix | None = None
    """None except for Matrix Market."""

    line_end: str = "\n"
    """What ends the lines of a text file: a line feed, or a carriage return."""

    @property
    def rows(self) -> int:
        """Rows of the file."""
        return sum(self.row_groups)


@dataclass(frozen=True)
class Frame:
    """Edges that were passed to a run as a frame or graph in memory, or as a Dask DataFrame, not as files."""

    kind: str
    """Package and class, as `pandas.DataFrame`."""

    sha256: tuple[str, ...]
    """[files] digests of the temporary files with its edges."""


@dataclass(frozen=True)
class Source:
    """The input as its files describe it. Picklable; its repr does not show the storage options."""

    path: str
    """As the user wrote it."""

    files: tuple[SourceFile, ...]
    """Sorted by path."""

    source_column: str
    target_column: str

    id_type: pa.DataType
    """The common type of both columns over all files, and of the ids in the output."""

    storage_options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """For fsspec; may hold secrets."""

    id_range: tuple[int, int] | None = None
    """The smallest and the largest id, from the footers; None if these do not tell, and for strings."""

    most_id_bytes: float | None = None
    """The mean bytes of an id in the row group where it is largest, or more, by the footers: each id counts as often as
    it occurs. None if they do not tell, and for integers.
    """

    table: TableVersion | None = None
    """The Delta or Iceberg table of these files."""

    frame: Frame | None = None
    """The frame or graph whose edges are in these temporary files."""

    format: str = "parquet"

    layout: RowLayout | None = None
    """How rows are laid out in the files; None for Parquet."""

    where: RowFilter | None = None
    """The condition that selects rows; None selects all."""

    files_left_out: int = 0
    """Files that are not read, since their paths exclude a match of the condition."""

    bipartite: Bipartite | None = None
    """How equal ids in both columns are treated, if the columns are two sets of ids."""

    two_sided: bool = False
    """Whether every edge joins two sides, which are the columns: λ counts butterflies. The ids have prefixes, and those
    of the source column sort before those of the target column.
    """

    directed: bool = False
    """Whether the direction of edges, from the source to the target column, is kept."""

    weights: Weights | None = None
    """The weights of edges; None if edges have none."""

    prefixes: tuple[str, str] | None = None
    """Prefixes that are added to the ids of each column."""

    notes: tuple[str, ...] = ()
    """What was guessed, in sentences."""

    @property
    def most_rows(self) -> int | None:
        """An upper limit of the rows; None if it is not known before they are read."""
        if self.is_counted:
            return self.rows
        if self.format == "mtx":
            return sum(file.matrix.entries for file in self.files if file.matrix is not None)
        if not is_text(self.format) or any(compression_of(file.path) for file in self.files):
            return None
        return sum(file.bytes // _MIN_LINE_BYTES + 1 for file in self.files)

    @property
    def is_counted(self) -> bool:
        """Whether the number of rows is known before they are read."""
        return format_called(self.format).is_counted

    @property
    def measure(self) -> Measure:
        """What λ counts."""
        return "butterflies" if self.two_sided else "triangles"

    @property
    def kind(self) -> Kind:
        """Whether ids are integers or strings."""
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
        """Uncompressed bytes of both id columns in the row groups of `piece`."""
        return sum(self.files[piece.file].id_bytes[group] for group in piece.row_groups)

    def with_types(self, types: Mapping[str, pa.DataType]) -> Source:
        """The same text files with other types of some of the columns that are read. Both columns of ids have one."""
        layout, where, files = self.layout, self.where, self.files
        assert layout is not None
        ids = next((types[name] for name in layout.id_columns if name in types), None)
        shown = self.id_type if ids is None or self.prefixes is not None else ids
        if ids is not None and not pa.types.is_integer(ids):
            files = tuple(map(_with_id_bytes, files))
        if where is not None:
            where = replace(where, types=tuple((name, types.get(name, kind)) for name, kind in where.types))
        layout = replace(layout, types=tuple((name, types.get(name, kind)) for name, kind in layout.types))
        return replace(self, files=files, id_type=shown, layout=layout, where=where)

    def with_ids(self, id_type: pa.DataType) -> Source:
        """The same text files with ids of a type that is not guessed."""
        assert self.layout is not None
        wider = self.with_types(dict.fromkeys(self.layout.id_columns, id_type))
        assert wider.layout is not None
        return replace(wider, layout=replace(wider.layout, types_are_guessed=False))

    def widened(self, found: OtherType) -> Source:
        """The same text files with a type that also holds the value that was found in a column, and a note.

        Raises `found` if no type does that.
        """
        layout = self.layout
        assert layout is not None
        is_id = found.column in layout.id_columns
        kind = _wider(dict(layout.types)[found.column], found.value, layout, is_id)
        if kind is None:
            raise found
        wider = self.with_types(dict.fromkeys(layout.id_columns if is_id else (found.column,), kind))
        return replace(wider, notes=(*self.notes, _wider_note(found, kind)))


class _Files(Protocol):
    """Files that have the same storage options."""

    @property
    def files(self) -> tuple[SourceFile, ...]: ...

    @property
    def storage_options(self) -> Mapping[str, Any]: ...


@dataclass(frozen=True)
class Piece:
    """Row groups of one file."""

    file: int
    """Index in `Source.files`."""

    row_groups: tuple[int, ...]
    """Consecutive indexes in the file."""


@dataclass(frozen=True)
class InputBlock:
    """Consecutive row groups, of one file or several, that one task reads."""

    number: int
    rows: int
    pieces: tuple[Piece, ...]


def plan_blocks(source: Source, rows_per_block: int, bytes_per_block: int = TEXT_PER_BLOCK) -> list[InputBlock]:
    """Cut the input into blocks, in file order: at least one, which may be empty.

    A block has at most `rows_per_block` rows and, if ids are strings, `bytes_per_block` uncompressed bytes. A row group
    is never cut: a larger one is a block by itself. Blocks of Matrix Market have rows of one file, which are counted.
    """
    groups = [(f, g, rows) for f, file in enumerate(source.files) for g, rows in enumerate(file.row_groups) if rows]
    blocks: list[list[tuple[int, int, int]]] = [[]]
    filled = text = 0
    for group in groups:
        more = source.id_bytes(Piece(group[0], (group[1],))) if source.kind == "string" else 0
        is_full = filled + group[2] > rows_per_block or text + more > bytes_per_block
        if blocks[-1] and (is_full or (source.format == "mtx" and blocks[-1][-1][0] != group[0])):
            blocks.append([])
            filled = text = 0
        blocks[-1].append(group)
        filled += group[2]
        text += more
    return [InputBlock(number, sum(rows for *_, rows in block), _pieces(block)) for number, block in enumerate(blocks)]


def refuse_other_counts(source: Source, blocks: Sequence[InputBlock], rows: Sequence[int]) -> None:
    """Raises InputError if a Matrix Market file has other entries than it says; `rows` are the rows of each block."""
    found = [0] * len(source.files)
    for block, count in zip(blocks, rows, strict=True):
        for piece in block.pieces[:1]:
            found[piece.file] += count
    for file, count in zip(source.files, found, strict=True):
        if file.matrix is not None:
            refuse_other_entries(file.path, file.matrix, count)


def refuse_changed_files(source: _Files) -> None:
    """Raises InputError if a file of the input was changed or removed since its footer was read."""
    with ThreadPoolExecutor(FOOTER_READERS) as readers:
        list(readers.map(lambda file: refuse_changed(file.path, file.version, source.storage_options), source.files))


T = TypeVar("T")


def read_with_types(source: Source, read: Callable[[Source], T]) -> T:
    """The value of `read` for a source. It is called again with a wider type, as long as rows of text files have values
    that are not of the types that the first rows have. So these types do not depend on the order of the rows.

    Raises OtherType, an InputError, for a value that no type holds together with the others.
    """
    while True:
        try:
            return read(source)
        except OtherType as error:
            found = error.with_traceback(None)  # its frames hold what was read
        source = source.widened(found)


def _wider(kind: pa.DataType, value: str, layout: RowLayout, is_id: bool) -> pa.DataType | None:
    """The type that holds integers of the type `kind` and also `value`; None if there is none."""
    if not pa.types.is_integer(kind):
        return None
    if not is_id:
        return pa.float64() if _FRACTION.fullmatch(value.strip()) else None
    if kind == pa.int64() and value.isdecimal() and value.isascii() and value[0] != "0" and int(value) < 2**64:
        return pa.uint64()
    return None if layout.format == "jsonl" else pa.string()


def text_ids_note(where: str, value: str, column: str) -> str:
    """The sentence that says why ids are text although some of them may be integers."""
    advice = "if this is a mistake, correct it, and --set input.id_type=int64 then refuses others"
    if value.strip() != value:
        advice = "--set input.strip=true removes blanks around fields"
    shown = clipped(value)
    return (
        f"all ids are read as text, since {where} has {shown!r} in column {column!r}, "
        f"which is not how an integer is written: {advice}"
    )


def _wider_note(found: OtherType, kind: pa.DataType) -> str:
    """The sentence that says why a column has another type than its first rows."""
    where = str(found).partition(": column ")[0]
    if kind == pa.string():
        return text_ids_note(where, found.value, found.column)
    return f"column {found.column!r} is read as {kind}, since {where} has {found.value}"


def _with_id_bytes(file: SourceFile) -> SourceFile:
    """The file with the bytes of its parts as those of its ids, which are not more unless it is compressed."""
    return replace(file, id_bytes=tuple((file.bytes if stop is None else stop) - start for start, stop in file.spans))


def _pieces(block: Iterable[tuple[int, int, int]]) -> tuple[Piece, ...]:
    by_file: dict[int, list[int]] = {}
    for file, group, _ in block:
        by_file.setdefault(file, []).append(group)
    return tuple(Piece(file, tuple(row_groups)) for file, row_groups in by_file.items())


def file_digests(files: Sequence[SourceFile]) -> list[str] | None:
    """SHA-256 of the content of each file, in as many threads as there are cores; None if a store has one of them.

    Reading from a store costs as much as the rest of a night. Raises InputError for a file that cannot be read.
    """
    if any("://" in file.path for file in files):
        return None
    with ThreadPoolExecutor(os.cpu_count()) as readers:
        return list(readers.map(_digest, (file.path for file in files)))


def _digest(path: str) -> str:
    try:
        with open(path, "rb", buffering=0) as file:
            return file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
