"""The two columns with the ends of an edge, and the common type of their ids."""

from __future__ import annotations

import glob
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import PurePosixPath

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InputError
from ..tables.live import LiveFiles
from .formats.input_format import format_called, format_named_by
from .head import Head

USUAL_COLUMNS = (
    ("src", "dst"),
    ("source", "target"),
    ("from", "to"),
    (":START_ID", ":END_ID"),
    ("u", "v"),
    ("node_1", "node_2"),
    ("source", "destination"),
    ("~from", "~to"),
)
"""Names of the two columns, in any case, that are tried in this order if the user names no columns. Those of Neo4j may
have a name before them and a set of ids behind: `person:START_ID(Person)`.
"""
_EXPECTED = USUAL_COLUMNS[:2]
"""Names that need no note."""
_NEO4J = re.compile(r"[^:]*(:(?:start_|end_)?id)(?:\((.*)\))?", re.IGNORECASE)
_NAMING = "--source-column and --target-column"


def choose_columns(
    path: str,
    names: Sequence[str],
    source: str | None,
    target: str | None,
    folders: Collection[str] = (),
    is_declared: bool = False,
) -> tuple[str, str, tuple[str, ...]]:
    """The source and target column of a file with the columns `names`, and sentences on what was not named by the user.

    `folders` are columns whose values are in the names of folders: they are only chosen if the file has no such pair.
    `is_declared`: whether the user said that the columns are two sets of ids.
    Raises InputError if the columns are ambiguous.
    """
    if source is not None and source == target:
        raise InputError(f"source and target column are both {source!r}; name two different columns")
    if source is not None and target is not None:
        return source, target, ()
    usual = _usual_pairs(names, source, target) or _usual_pairs([*names, *({*folders} - {*names})], source, target)
    if usual:
        (one, other), *rest = usual
        others = "".join(f", and not {first!r} and {second!r}" for first, second in rest)
        if (one, other) in _EXPECTED and not rest:
            return one, other, ()
        note = f"columns {one!r} and {other!r} are taken as the two ends of an edge, by their names{others}"
        return one, other, (f"{note}: name others with {_NAMING}",)
    if len(names) == 2:
        named = source if source is not None else target
        if named is None and is_declared:
            note = f"columns {names[0]!r} and {names[1]!r} are taken as the two ends of an edge"
            return names[0], names[1], (f"{note}: name them with {_NAMING}",)
        if named is None:
            note = (
                f"columns {names[0]!r} and {names[1]!r} are taken as the two ends of an edge, with ids of one kind: "
                f"name them with {_NAMING}, or, if the same id means different things in "
                "each, say --bipartite prefix"
            )
            return names[0], names[1], (note,)
        if named in names:
            other = names[1 - names.index(named)]
            return (named, other, ()) if source is not None else (other, named, ())
    raise InputError(
        f"cannot tell which columns of {path} are the ends of an edge; it has {listed(names)}: name them with {_NAMING}"
    )


def _usual_pairs(names: Sequence[str], source: str | None, target: str | None) -> list[tuple[str, str]]:
    """Pairs of columns with the names of USUAL_COLUMNS, in that order."""
    pairs = [(usual_name(names, one), usual_name(names, other)) for one, other in USUAL_COLUMNS]
    return [
        (one, other)
        for one, other in pairs
        if one is not None and other is not None and source in (None, one) and target in (None, other)
    ]


def usual_name(names: Sequence[str], usual: str) -> str | None:
    """The column of this name, or the only one that has it in another case; None if there is none."""
    if usual in names:
        return usual
    found = [name for name in names if _without_parts(name).lower() == usual.lower()]
    return found[0] if len(found) == 1 else None


def _without_parts(name: str) -> str:
    neo4j = _NEO4J.fullmatch(name)
    return name if neo4j is None else neo4j[1]


def refuse_folder_columns(
    path: str, file: str, names: Collection[str], folders: Collection[str], columns: Sequence[str]
) -> None:
    """Raises InputError if one of `columns` is not among the `names` in the files but in the names of `folders`. `file`
    is one of the files.
    """
    column = next((one for one in columns if one not in names and one in folders), None)
    if column is None:
        return
    name = PurePosixPath(file)
    files = path if glob.has_magic(path) else f"{path.rstrip('/')}/**/*{name.suffix}"
    quoted = files.replace("'", "''")
    reader = format_called(format_named_by(file) or "parquet").duckdb_reader
    example = (
        f", for example with DuckDB: COPY (FROM {reader}('{quoted}', hive_partitioning = true)) TO 'edges.parquet'"
    )
    raise InputError(
        f"the values of column {column!r} of {path!r} are in the names of its folders, {column}=…, which only --where "
        f"reads, and not in its files: write them into the files{example if reader else ''}"
    )


def refuse_two_sets(path: str, ends: tuple[str, str], is_declared: bool) -> None:
    """Raises InputError if Neo4j's names of the columns are of two sets of ids, unless the user declared two sets."""
    spaces = [found[2] for end in ends if (found := _NEO4J.fullmatch(end)) and found[2]]
    if len(set(spaces)) > 1 and not is_declared:
        raise InputError(
            f"columns {ends[0]!r} and {ends[1]!r} of {path!r} are of two sets of ids, {spaces[0]} and {spaces[1]}, and "
            "the same id may be in both: keep them apart with --bipartite prefix"
        )


def check_columns(
    name: str,
    schema: pa.Schema,
    source_column: str | None = None,
    target_column: str | None = None,
    reserved: Collection[str] = (),
    weight_column: str | None = None,
    two_sets: bool = False,
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The source and target column of a frame, chosen as `open_source` does, and the column of weights, if any; and
    sentences on what the user did not name. `name` is the frame in messages. If the ids are of `two_sets`, which get
    prefixes, their types may differ.

    Raises InputError if they are ambiguous, missing, of an unusable type or `reserved`.
    """
    source, target, notes = choose_columns(name, schema.names, source_column, target_column, is_declared=two_sets)
    refuse_reserved(name, (source, target), reserved)
    types = dict(zip(schema.names, schema.types, strict=True))
    found = [(name, end, id_type(name, schema.names, types, end)) for end in (source, target)]
    if not two_sets:
        common_type([own for own in found if not pa.types.is_null(own[2])])
    if weight_column is None:
        return (source, target), notes
    refuse_weight(name, schema.names, types, weight_column)
    return (source, target, weight_column), notes


def refuse_weight(path: str, names: Sequence[str], types: Mapping[str, pa.DataType], column: str) -> None:
    """Raises InputError unless a file or frame has one column of this name, and numbers in it."""
    found = list(names).count(column)
    if found != 1:
        raise InputError(
            f"{path} has {'no column' if not found else f'{found} columns named'} {column!r}, which "
            f"input.weight_column names; it has {listed(names)}"
        )
    kind = value_type(types[column])
    tests = pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_null
    if not any(test(kind) for test in tests):
        raise InputError(
            f"{path}: column {column!r} is {types[column]}, but weights are integers, floating-point numbers or "
            f"decimals: {_cast(column, 'float64', 'DOUBLE')}"
        )


def refuse_reserved(path: str, columns: Collection[str], reserved: Collection[str]) -> None:
    """Raises InputError if a column has a name of the output's own columns."""
    for column in set(columns) & set(reserved):
        raise InputError(f"column {column!r} of input {path!r} has a name that the output uses for results: rename it")


def refuse_columns(live: LiveFiles, heads: Sequence[Head], columns: Sequence[str]) -> None:
    """Raises InputError or UsageError if the table lacks a column, or if a file of it has the column otherwise."""
    live.refuse_columns(columns)
    for head in heads:
        live.refuse_file(head.path, head.schema, columns)


def id_type(path: str, names: Sequence[str], types: Mapping[str, pa.DataType], column: str) -> pa.DataType:
    """The type of an id column of a file. Raises InputError if it is missing, there twice, or of an unusable type."""
    found = list(names).count(column)
    if not found:
        raise InputError(f"{path} has no column {column!r}; it has {listed(names)}")
    if found > 1:
        raise InputError(f"{path} has {found} columns named {column!r}; rename all but one")
    column_type = value_type(types[column])
    if is_whole_decimal(column_type):
        return pa.int64()
    if is_uuid(column_type) or any(
        test(column_type)
        for test in (pa.types.is_integer, pa.types.is_string, pa.types.is_large_string, pa.types.is_null)
    ):
        return column_type
    numbers = pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean
    cast = ("int64", "BIGINT") if any(test(column_type) for test in numbers) else ("string", "VARCHAR")
    raise InputError(
        f"{path}: column {column!r} is {types[column]}, but ids are integers, strings or UUIDs: {_cast(column, *cast)}"
    )


def _cast(column: str, to: str, sql: str) -> str:
    quoted = column.replace('"', '""')
    return f'cast it to {to}, in SQL CAST("{quoted}" AS {sql})'


def value_type(column_type: pa.DataType) -> pa.DataType:
    """The type of a column's values as Arrow computes with them: without dictionaries, runs and views; decimals have at
    least 128 bits.
    """
    while pa.types.is_dictionary(column_type) or pa.types.is_run_end_encoded(column_type):
        column_type = column_type.value_type
    if pa.types.is_string_view(column_type):
        return pa.string()
    if pa.types.is_decimal32(column_type) or pa.types.is_decimal64(column_type):
        return pa.decimal128(column_type.precision, column_type.scale)
    return pa.binary() if pa.types.is_binary_view(column_type) else column_type


def plain_values(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column with values of `value_type`. Then its nulls are those of its values."""
    kind = value_type(column.type)
    if kind == column.type:
        return column
    return pa.chunked_array([_plain(chunk) for chunk in column.chunks], kind)


def storage_values(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column without an extension type, such as that of UUIDs."""
    if isinstance(column.type, pa.BaseExtensionType):
        return pa.chunked_array([chunk.storage for chunk in column.chunks], column.type.storage_type)
    return column


def _plain(values: pa.Array) -> pa.Array:
    """An array of `value_type`. Arrow itself cannot take, cast or decode all of these types."""
    if isinstance(values, pa.DictionaryArray):
        return _plain(values.dictionary).take(values.indices)
    if isinstance(values, pa.RunEndEncodedArray):
        positions = pa.array(np.arange(len(values.values)))
        runs = pa.RunEndEncodedArray.from_arrays(values.run_ends, positions).slice(values.offset, len(values))
        return _plain(values.values).take(pc.run_end_decode(runs))
    kind = value_type(values.type)
    return values if values.type == kind else values.cast(kind)


def is_whole_decimal(column_type: pa.DataType) -> bool:
    """Whether values are decimals without a fraction, such as those of DuckDB's HUGEINT."""
    return bool(pa.types.is_decimal(column_type) and column_type.scale == 0)


def is_uuid(column_type: pa.DataType) -> bool:
    """Whether values are UUIDs: of Arrow's UUID type, or of 16 bytes each."""
    if isinstance(column_type, pa.BaseExtensionType):
        return bool(column_type == pa.uuid())
    return bool(pa.types.is_fixed_size_binary(column_type) and column_type.byte_width == 16)


def id_kind(id_type: pa.DataType) -> str:
    """The kind of the ids of a type, in the plural. Ids of one kind are compared, whatever their types."""
    if is_uuid(id_type):
        return "UUIDs"
    return "integers" if pa.types.is_integer(id_type) else "strings"


def common_type(found: Sequence[tuple[str, str, pa.DataType]]) -> pa.DataType:
    """The narrowest type that holds all ids. uint64 and a signed type become int64, with ids up to 2^63-1.

    `found` has the file, the column and its type. Raises InputError if some are integers and others strings or UUIDs.
    """
    if not found:
        return pa.int64()
    kinds: dict[str, tuple[str, str]] = {}
    for path, column, kind in found:
        kinds.setdefault(id_kind(kind), (path, column))
    if len(kinds) > 1:
        (one, (path, column)), (other, (other_path, other_column)) = list(kinds.items())[:2]
        place = "" if other_path == path else f" of {other_path}"
        raise InputError(
            f"{path}: column {column!r} has {one}, and column {other_column!r}{place} has {other}: cast all ids to one "
            "type"
        )
    types = {kind for *_, kind in found}
    uuids = types if "UUIDs" in kinds else set()
    integers = types if "integers" in kinds else set()
    if uuids:
        return pa.uuid() if pa.uuid() in uuids else pa.binary(16)
    if not integers:
        return pa.large_string() if pa.large_string() in types else pa.string()
    unsigned = max((t.bit_width for t in integers if pa.types.is_unsigned_integer(t)), default=0)
    signed = max((t.bit_width for t in integers if pa.types.is_signed_integer(t)), default=0)
    if not signed:
        return {8: pa.uint8(), 16: pa.uint16(), 32: pa.uint32(), 64: pa.uint64()}[unsigned]
    width = min(max(signed, 2 * unsigned), 64)
    return {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[width]


def listed(names: Sequence[str]) -> str:
    """Names of columns, for a message."""
    return ", ".join(repr(name) for name in names) or "no columns"
