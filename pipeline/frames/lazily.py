"""Parts of a result's files as partitions of a Dask DataFrame, read by the workers that compute it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from .frames_of_rows import to_pandas
from .needed import needed

__all__ = ["as_partitions"]


def as_partitions(
    label: str,
    pieces: Sequence[ds.ParquetFileFragment],
    filters: Sequence[pc.Expression | None],
    schema: pa.Schema,
    nullable: Sequence[str],
) -> Any:
    """A dask.dataframe.DataFrame with a partition for each piece of a file, of the rows that its filter lets through.

    `schema` has the columns to read, `nullable` those of `to_pandas`. Raises UsageError if pandas is not installed.
    """
    needed("pandas", "to_dask()")
    frames = needed("dask.dataframe", "to_dask()")
    empty = to_pandas(schema.empty_table(), nullable)
    if not pieces:
        return frames.from_pandas(empty, npartitions=1)
    return frames.from_map(
        _partition,
        list(pieces),
        list(filters),
        meta=empty,
        label=label,
        enforce_metadata=False,
        columns=schema.names,
        nullable=tuple(nullable),
    )


def _partition(
    piece: ds.ParquetFileFragment, filter: pc.Expression | None, columns: list[str], nullable: tuple[str, ...]
) -> Any:
    return to_pandas(piece.to_table(columns=columns, filter=filter), nullable)
