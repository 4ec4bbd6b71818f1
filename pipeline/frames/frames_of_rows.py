"""From Arrow tables to frames of other libraries, in memory."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pyarrow as pa

from ...tasks.errors import UsageError
from ...tasks.inputs.columns import is_uuid
from ...tasks.sources import reason
from ...tasks.spelling import spelled_column
from .needed import needed

__all__ = ["to_cudf", "to_pandas", "to_polars"]


def to_pandas(table: pa.Table, nullable: Collection[str] = ()) -> Any:
    """A pandas.DataFrame. The columns in `nullable` are integers that may be missing: they become `Int64`, which does
    not round as float64 would. Raises UsageError if pandas is not installed.
    """
    pandas = needed("pandas", "to_pandas()")
    frame = table.to_pandas()
    for name in nullable:
        if name in frame:
            frame[name] = pandas.Int64Dtype().__from_arrow__(table[name])
    return frame


def to_polars(table: pa.Table) -> Any:
    """A polars.DataFrame, which shares memory with the table where it can. Raises UsageError without polars."""
    return needed("polars", "to_polars()").from_arrow(table)


def to_cudf(table: pa.Table) -> Any:
    """A cudf.DataFrame: a copy of the table in the memory of the GPU. UUIDs, for which cudf has no type, are text in
    it. Raises UsageError without cudf, and for a column of another type that cudf does not have.
    """
    cudf = needed("cudf", "to_cudf()")
    for place, field in enumerate(table.schema):
        if is_uuid(field.type):
            parts = [spelled_column(part) for part in table.column(place).chunks]
            table = table.set_column(place, field.name, pa.chunked_array(parts, pa.string()))
    try:  # cudf takes the numbers in all parts of a column for those of one dictionary
        return cudf.DataFrame.from_arrow(table.unify_dictionaries())
    except (TypeError, ValueError, RuntimeError) as error:
        columns = ", ".join(f"{field.name} {field.type}" for field in table.schema)
        raise UsageError(
            f"cudf cannot make a frame of this table ({columns}): {reason(error)}; "
            "name the columns that it can hold: to_cudf(columns=…)"
        ) from error
