"""Convert Arrow tables to frames of other libraries, in memory."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ....tasks.errors import UsageError
from ....tasks.ids.display import display_column
from ....tasks.inputs.columns import is_uuid
from ....tasks.inputs.opening import error_reason
from ...frames.optional import import_optional

if TYPE_CHECKING:
    import pandas
    import polars


def to_pandas(table: pa.Table, nullable: Collection[str] = ()) -> pandas.DataFrame:
    """A pandas.DataFrame. The columns in `nullable` are integers with nulls: they become `Int64`, which does not round.

    Raises UsageError if pandas is not installed.
    """
    package = import_optional("pandas", "to_pandas()")
    frame: pandas.DataFrame = table.to_pandas()
    for name in nullable:
        if name in frame:
            frame[name] = package.Int64Dtype().__from_arrow__(table[name])
    return frame


def to_polars(table: pa.Table) -> polars.DataFrame:
    """A polars.DataFrame, which shares memory with the table where possible.

    Raises UsageError if polars is not installed.
    """
    frame: polars.DataFrame = import_optional("polars", "to_polars()").from_arrow(table)
    return frame


def to_cudf(table: pa.Table) -> Any:
    """A cudf.DataFrame: a copy of the table in the memory of the GPU. cudf has no type for UUIDs; they become text.

    Raises UsageError if cudf is not installed or has no type for a column.
    """
    cudf = import_optional("cudf", "to_cudf()")
    for column, field in enumerate(table.schema):
        if is_uuid(field.type):
            parts = [display_column(part) for part in table.column(column).chunks]
            table = table.set_column(column, field.name, pa.chunked_array(parts, pa.string()))
    try:  # cudf uses one dictionary for all chunks of a column
        return cudf.DataFrame.from_arrow(table.unify_dictionaries())
    except (TypeError, ValueError, RuntimeError) as error:
        columns = ", ".join(f"{field.name} {field.type}" for field in table.schema)
        raise UsageError(
            f"cudf cannot make a frame of this table ({columns}): {error_reason(error)}; "
            "name the columns that it can hold: to_cudf(columns=…)"
        ) from error
