"""Columns of Parquet files as a Delta table declares them."""

from __future__ import annotations

import pyarrow as pa

from ...tasks.errors import UsageError

__all__ = ["declared", "refuse_columns"]

_SIGNED = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64()}
"""Delta tables have no unsigned integers. These are the types that Spark reads such columns of Parquet as."""
_FORBIDDEN = frozenset(" ,;{}()\n\t=")
"""Characters that Spark takes in no column of a Delta table."""


def refuse_columns(id_type: pa.DataType, names: list[str]) -> None:
    """Raises UsageError if a Delta table cannot have ids of this type, or the columns of edges these names."""
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
                f"output.format delta: the column {name!r} has a character that Delta tables do not take in a name "
                "(space , ; { } ( ) = tab or a line break): rename it in the input"
            )
    seen: dict[str, str] = {}
    for name in names:
        if (other := seen.setdefault(name.lower(), name)) != name:
            raise UsageError(
                f"output.format delta: the columns {other!r} and {name!r} differ by capitals alone, which Delta tables "
                "do not tell apart: rename one in the input"
            )


def declared(schema: pa.Schema) -> tuple[pa.Schema, list[str]]:
    """The columns that a Delta table declares of files with this schema, and those that it leaves out.

    Readers of a Delta table read the columns that it declares, whatever else its files have.
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
    """None for a type that not all readers of Delta tables know."""
    if isinstance(kind, pa.BaseExtensionType):  # as UUIDs are
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
