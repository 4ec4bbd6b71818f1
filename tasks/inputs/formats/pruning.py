"""Skipping of Parquet row groups in which no row can match a condition, by their statistics.

Arrow's reader of statistics aborts the process on a damaged footer. So statistics are parsed from the footer's bytes.
Arrow only decides whether a condition can be true within bounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow.fs import LocalFileSystem

from ...storage.parquet_checksum import read_footer_bytes
from ..opening import open_version
from .statistics import Bounds, column_bounds


def matching_row_groups(
    path: str,
    version: str | None,
    storage_options: Mapping[str, Any],
    row_groups: tuple[int, ...],
    types: Mapping[str, pa.DataType],
    condition: pc.Expression,
) -> tuple[int, ...]:
    """The members of `row_groups` that may have a row for which `condition` is true. `types` are those of its columns.

    Raises as `open_parquet` does.
    """
    with open_version(path, version, storage_options) as opened:
        content, _ = read_footer_bytes(opened)
    bounds = column_bounds(content, types)
    return tuple(group for group in row_groups if _can_match(bounds[group], types, condition))


def _can_match(bounds: Bounds, types: Mapping[str, pa.DataType], condition: pc.Expression) -> bool:
    if not bounds:
        return True
    known = None
    for name, (least, most) in bounds.items():
        own = (pc.field(name) >= pa.scalar(least, types[name])) & (pc.field(name) <= pa.scalar(most, types[name]))
        known = own if known is None else known & own
    format, files = ds.ParquetFileFormat(), LocalFileSystem()
    fragment = format.make_fragment("", filesystem=files, partition_expression=known)  # no path: nothing is opened
    table = ds.FileSystemDataset([fragment], pa.schema(list(types.items())), format, files)
    return any(True for _ in table.get_fragments(filter=condition))
