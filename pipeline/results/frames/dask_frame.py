"""A Dask DataFrame of parts of a result's files. The workers that compute it read the files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from ...frames.optional import import_optional
from .arrow_to_frame import to_pandas


def to_dask_frame(
    label: str,
    pieces: Sequence[ds.ParquetFileFragment],
    filters: Sequence[pc.Expression | None],
    schema: pa.Schema,
    nullable: Sequence[str],
) -> Any:
    """A dask.dataframe.DataFrame with a partition for each of `pieces`, of the rows that meet the filter of the piece.

    `schema` has the columns to read; `nullable` is as in `to_pandas`. Raises UsageError if pandas is not installed.
    """
    import_optional("pandas", "to_dask()")
    frames = import_optional("dask.dataframe", "to_dask()")
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
