"""From Arrow tables to frames of other libraries, in memory."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pyarrow as pa

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
    """A cudf.DataFrame: a copy of the table in the memory of the GPU. Raises UsageError without cudf."""
    return needed("cudf", "to_cudf()").DataFrame.from_arrow(table)
