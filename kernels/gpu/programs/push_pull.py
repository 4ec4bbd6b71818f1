"""Push the values of a few sources to their rows (push.cu), and pull the first active source of each row (first.cu)."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from ...graph import Extreme, InRows, Received
from ..adjacency import starts_of
from ..runtime import source
from .classes import BLOCK
from .reductions import defines_of


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
    """The receiving rows with an active source, the first active source of each, and the number of entries of all
    receiving rows.
    """
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


class Pushed:
    """The entries of a few sources, for kernels with a thread an entry. The host need not know their number."""

    def __init__(self, transposed: InRows, changed: Any) -> None:
        self._starts = starts = starts_of(row_lengths(transposed, changed))
        self._arguments = (starts, changed, np.int32(len(changed)), transposed.offsets, transposed.source)

    @property
    def entries(self) -> int:
        """The number of entries. Waits for the GPU."""
        return int(self._starts[-1])

    def launch(self, name: str, *own: Any, **defines: Any) -> None:
        """Run a kernel of push.cu."""
        kernel = source.kernel(f"programs/push:{name}", **defines)
        kernel((source.grid(2**31, BLOCK),), (BLOCK,), (*self._arguments, *own))


def push(transposed: InRows, changed: Any, values: Any, extreme: Extreme, received: Received) -> Any:
    """Push the values of the changed sources to their rows. Returns the rows that received a value."""
    out: Any = received.value
    bound: Any = received.bound
    touched = cupy.empty(len(out), np.int32)
    if not len(changed):
        return touched[:0]
    pushed = Pushed(transposed, changed)
    defines = defines_of(extreme, values.dtype)
    keys, size = cupy.empty(len(out), np.uint64), cupy.zeros(1, np.uint32)
    weighted = 0 if transposed.weight is None else transposed.weight, values, keys
    sources = (cupy.full(len(out), -1, np.int32) if received.source is None else received.source).view(np.uint32)
    pushed.launch("clear_keys", keys, **defines)
    pushed.launch("find_best", *weighted, **defines)
    pushed.launch("find_source", *weighted, sources, touched, size, **defines)
    pushed.launch("write_best", *weighted, sources, out, **defines)
    rows = touched[: int(size[0])]
    if bound is None:
        return rows
    better = out[rows] > bound[rows] if extreme.largest else out[rows] < bound[rows]
    worse = rows[~better]
    out[worse] = extreme.worst(out.dtype)
    sources[worse] = np.uint32(2**32 - 1)
    return rows[better]
