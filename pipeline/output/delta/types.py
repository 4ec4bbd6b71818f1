"""Types of Parquet columns in the schema of a Delta table."""

from __future__ import annotations

import pyarrow as pa

from ....tasks.errors import UsageError

_SIGNED = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64()}
"""Delta tables have no unsigned integers. Spark reads unsigned columns of Parquet as these types."""
_FORBIDDEN = frozenset(" ,;{}()\n\t=")
"""Characters that Spark does not allow in column names of a Delta table."""


def refuse_columns(id_type: pa.DataType, names: list[str]) -> None:
    """Raises UsageError if Delta tables do not support ids of this type, or edge columns with these names."""
    if id_type == pa.uint64():
        raise UsageError(
            "output.format delta: the ids are uint64, which Delta tables do not have: cast them to int64 or text in "
            "the input, or write output.format parquet"
        )
    if isinstance(id_type, pa.BaseExtensionType):
        raise UsageError(
            "output.format delta: the ids are UUIDs, which Delta tables do not have: cast them to text in the input, "
            "or write output.format parquet"
        )
    for name in names:
        if _FORBIDDEN & {*name}:
            raise UsageError(
                f"output.format delta: the column {name!r} has a character that Delta tables do not allow in a name "
                "(space , ; { } ( ) = tab or a line break): rename it in the input"
            )
    seen: dict[str, str] = {}
    for name in names:
        if (other := seen.setdefault(name.lower(), name)) != name:
            raise UsageError(
                f"output.format delta: the columns {other!r} and {name!r} differ only in upper and lower case, which "
                "Delta tables ignore: rename one in the input"
            )


def declared(schema: pa.Schema) -> tuple[pa.Schema, list[str]]:
    """The schema of a Delta table for files with this schema, and the columns that it leaves out.

    Readers of a Delta table ignore other columns of its files.
    """
    fields, left_out = [], []
    for field in schema:
        kind = _declared(field.type)
        if kind is None or _FORBIDDEN & {*field.name}:
            left_out.append(field.name)
        else:
            fields.append(pa.field(field.name, kind))
    return pa.schema(fields), left_out


def _declared(kind: pa.DataType) -> pa.DataType | None:
    """The Delta type of a Parquet type; None if not all readers of Delta tables support it."""
    if isinstance(kind, pa.BaseExtensionType):  # such as UUIDs
        kind = kind.storage_type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if kind in _SIGNED:
        return _SIGNED[kind]
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_fixed_size_binary(kind) or pa.types.is_large_binary(kind):
        return pa.binary()
    if pa.types.is_timestamp(kind):
        return kind if kind.tz is not None and kind.unit == "us" else None
    known = (
        pa.types.is_signed_integer(kind)
        or pa.types.is_float32(kind)
        or pa.types.is_float64(kind)
        or pa.types.is_decimal128(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_date32(kind)
    )
    return kind if known else None
