"""Row groups of a Parquet file in which no row can meet a condition, by their statistics.

Arrow's own reader of statistics ends the process on a damaged footer. So they are read from the footer's bytes, and
Arrow is asked only whether a condition can be met within bounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow.fs import LocalFileSystem

from ..sealed import footer_of
from ..statistics import Bounds, column_bounds
from .opening import open_version

__all__ = ["matching_row_groups"]


def matching_row_groups(
    path: str,
    version: str | None,
    storage_options: Mapping[str, Any],
    row_groups: tuple[int, ...],
    types: Mapping[str, pa.DataType],
    wanted: pc.Expression,
) -> tuple[int, ...]:
    """Those of some row groups that can have rows that meet an Arrow expression over columns of these types.

    Raises as `open_parquet` does.
    """
    with open_version(path, version, storage_options) as opened:
        content, _ = footer_of(opened)
    bounds = column_bounds(content, types)
    return tuple(group for group in row_groups if _can_match(bounds[group], types, wanted))


def _can_match(bounds: Bounds, types: Mapping[str, pa.DataType], wanted: pc.Expression) -> bool:
    if not bounds:
        return True
    known = None
    for name, (least, most) in bounds.items():
        own = (pc.field(name) >= pa.scalar(least, types[name])) & (pc.field(name) <= pa.scalar(most, types[name]))
        known = own if known is None else known & own
    format, files = ds.ParquetFileFormat(), LocalFileSystem()
    fragment = format.make_fragment("", filesystem=files, partition_expression=known)  # a bare name: nothing is opened
    table = ds.FileSystemDataset([fragment], pa.schema(list(types.items())), format, files)
    return any(True for _ in table.get_fragments(filter=wanted))
