"""The first active source of rows of in-edges: a step of a search from the targets' side. See first.cu."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from ...in_rows import InRows
from ..runtime import source
from .classes import BLOCK


def row_lengths(rows: InRows, selected: Any) -> Any:
    """The number of entries of each selected row."""
    lengths, count = cupy.empty(len(selected), np.int64), len(selected)
    if count:
        shape = (source.grid(count, BLOCK),), (BLOCK,)
        source.kernel("programs/first:row_lengths")(*shape, (rows.offsets, selected, np.int64(count), lengths))
    return lengths


def count_selected(rows: InRows, selected: Any) -> int:
    """The number of entries of the selected rows."""
    return int(row_lengths(rows, selected).sum())


def count_entries(rows: InRows, receiving: Any) -> int:
    """The number of entries of the receiving rows, or of all rows."""
    return len(rows) if receiving is None else int((cupy.diff(rows.offsets) * receiving).sum())


def first_active_sources(rows: InRows, receiving: Any, active: Any) -> tuple[Any, Any, int]:
    """The receiving rows with an active source, the first of each, and the entries of all receiving rows."""
    count, which = rows.rows, 0 if receiving is None else receiving
    best, rest, left = cupy.empty(count, np.int32), cupy.empty(count, np.int32), cupy.zeros(1, np.uint32)
    source.kernel("programs/first:try_rows")(
        (source.grid(count, BLOCK, 16),),
        (BLOCK,),
        (rows.offsets, np.int64(count), which, rows.source, active, best, rest, left),
    )
    source.kernel("programs/first:read_rows")(
        (source.grid(32 * count, BLOCK),), (BLOCK,), (rows.offsets, rows.source, active, best, rest, left)
    )
    found = cupy.flatnonzero(best >= 0).astype(np.int32)
    return found, best[found], count_entries(rows, receiving)
