"""Read and check single tables of a result. Shares no code with ingest or publish."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ..errors import InputError
from ..inputs.columns import is_uuid, is_whole_decimal
from ..storage.folders import Folder
from ..storage.stores import store_errors

Int = NDArray[np.int64]


class Flaw(Exception):
    """A defect of a result, in one line."""


def reject(wrong: NDArray[np.bool_], message: Callable[[int], str]) -> None:
    """Raise Flaw if `wrong` is true anywhere: `message` of the first such position, and the number of positions."""
    count = int(np.count_nonzero(wrong))
    if count:
        more = f" (the first of {count:,})" if count > 1 else ""
        raise Flaw(message(int(wrong.argmax())) + more)


def table_files(manifest: dict[str, Any], table: str) -> list[str]:
    """The files of a table, sorted by name. Raises Flaw if there are none."""
    names = sorted(entry["path"] for entry in manifest["outputs"])
    own = [name for name in names if PurePosixPath(name).parent.name == table]
    if not own:
        raise Flaw(f"{table}: no file")
    return own


def read_file(out: Folder, name: str, columns: Sequence[str]) -> pa.Table:
    """One Parquet file of a result. Raises Flaw if it is damaged or has other columns."""
    try:
        files = None if out.is_local else out.files
        with store_errors("read", str(out)):
            table = pq.read_table(
                out.path(name),
                filesystem=files,
                partitioning=None,
                page_checksum_verification=True,
                arrow_extensions_enabled=True,
            )
    except (pa.ArrowException, OSError) as error:
        raise Flaw(f"{name} cannot be read: {error}") from error
    if table.schema.names != list(columns):
        raise Flaw(f"{name} has columns {table.schema.names}, not {list(columns)}")
    return table


def read_table(
    out: Folder,
    manifest: dict[str, Any],
    table_name: str,
    ids: list[str],
    numbers: dict[str, pa.DataType],
    nulls: Sequence[str] = (),
    first: str | None = None,
    last: Sequence[str] = (),
) -> pa.Table:
    """All rows of a table of the result. Raises Flaw unless columns, types and nulls are as expected.

    The columns are `first`, one of `numbers`, if given; then `ids`, of any id type; then the other `numbers`, of the
    given types; then `last`, of any type. Only the columns `nulls` may have nulls.
    """
    tables: list[pa.Table] = []
    columns = [*([first] if first else []), *ids, *(name for name in numbers if name != first), *last]
    for name in table_files(manifest, table_name):
        table = read_file(out, name, columns)
        for column in ids:
            kind = table[column].type
            if not (pa.types.is_integer(kind) or _is_string(kind) or is_uuid(kind)):
                raise Flaw(f"{name}: {column} is {kind}, neither integers, strings nor UUIDs")
        for column, kind in numbers.items():
            if table[column].type != kind:
                raise Flaw(f"{name}: {column} is {table[column].type}, not {kind}")
        for column in table.schema.names:
            if table[column].null_count and column not in nulls:
                raise Flaw(f"{name}: {column} has {table[column].null_count} nulls")
        if tables and table.schema.types != tables[0].schema.types:
            raise Flaw(f"{name} has other types than the first file: {table.schema.types}")
        tables.append(table)
    return pa.concat_tables(tables)


def id_array(column: Any) -> Any:
    """A column of ids as one Arrow array of int64, uint64, large_string or large_binary.

    Raises InputError for values of other types.
    """
    if isinstance(column.type, pa.BaseExtensionType) and is_uuid(column.type):
        column = column.cast(column.type.storage_type)
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_integer(kind):
        kind = pa.uint64() if pa.types.is_uint64(kind) else pa.int64()
    elif _is_string(kind):
        kind = pa.large_string()
    elif is_uuid(kind) or pa.types.is_large_binary(kind):
        kind = pa.large_binary()
    elif is_whole_decimal(kind):
        kind = pa.uint64() if (pc.max(column).as_py() or 0) >= 2**63 else pa.int64()
    elif not pa.types.is_null(kind):
        raise InputError(f"ids of type {kind} are neither integers, strings nor UUIDs")
    cast = column.cast(kind)
    if isinstance(cast, pa.Array):
        return cast
    return pa.concat_arrays(cast.chunks) if cast.num_chunks else pa.array([], kind)


def positions(column: Any, ids: Any) -> Int:
    """The position of each value of a column in `ids`, or -1. Raises InputError if the values cannot be ids."""
    values = id_array(column)
    if pa.types.is_integer(values.type) and pa.types.is_integer(ids.type):
        values = values.cast(ids.type, safe=False) if _fits(values, ids.type) else values
    if values.type != ids.type:
        return np.full(len(values), -1)
    found = pc.index_in(values, value_set=ids)
    answer: Int = pc.fill_null(found, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    return answer


def _is_string(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _fits(values: Any, kind: pa.DataType) -> bool:
    """Whether all integers fit a type. Raises InputError for integers too large for a signed type."""
    try:
        values.cast(kind)
    except pa.ArrowInvalid as error:
        if pa.types.is_uint64(kind):
            return False  # negative values are no ids of the result
        raise InputError(f"ids do not fit {kind}: {error}") from error
    return True
