"""Sorted rows that change by batches: a thread for each entry of the touched rows, and for each entry of the batch.

The counterpart of `kernels.cpu.update.dynamic_rows`.
"""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from .rows import starts_of
from .runtime import source

FLAG = np.int32(1 << 30)
"""Added to the support of an edge of the batch while triangles are found."""
_BLOCK = 256


def _launch(name: str, items: int, *arguments: Any) -> None:
    if items:
        source.kernel(f"dynamic_rows:{name}")((source.grid(items, _BLOCK, 32),), (_BLOCK,), arguments)


def _entries(begin: Any, length: Any, neighbour: Any, low: Any, high: Any) -> Any:
    """The entry of each pair at its lower end, int64 [pairs]; -1 for a pair that is no edge."""
    found = cupy.empty(len(low), np.int64)
    _launch("find_pairs", len(low), begin, length, neighbour, low, high, np.int64(len(low)), found)
    return found


def present(begin: Any, length: Any, neighbour: Any, low: Any, high: Any) -> Any:
    """Whether each pair is an edge of the rows, bool [pairs]. A binary search for each."""
    return _entries(begin, length, neighbour, low, high) >= 0


def merge_into(
    rows: Any, starts: Any, ends: Any, begin: Any, length: Any, neighbour: Any, support: Any, to: Any
) -> None:
    """Write the union of each touched row and its new neighbours to the row's new place; see the counterpart."""
    sums, touched = starts_of(length[rows]), np.int64(len(rows))
    entries = int(sums[-1])
    shape = sums, touched, np.int64(entries)
    _launch("merge_old", entries, rows, starts, ends, *shape, begin, to, neighbour, support)
    new = touched, np.int64(len(ends))
    _launch("merge_new", len(ends), rows, starts, ends, *new, begin, length, to, neighbour, support, FLAG)
    _launch("move_rows", len(rows), rows, starts, touched, to, begin, length, np.int32(1))


def leave_out_of(rows: Any, starts: Any, ends: Any, begin: Any, length: Any, neighbour: Any, support: Any) -> None:
    """Take neighbours out of rows, in place, by a copy of the touched rows; see the counterpart."""
    sums, touched = starts_of(length[rows]), np.int64(len(rows))
    entries = int(sums[-1])
    old = cupy.empty(entries, np.int32), cupy.empty(entries, np.int32)
    shape = sums, touched, np.int64(entries)
    _launch("copy_entries", entries, rows, *shape, begin, neighbour, support, *old)
    _launch("take_out", entries, rows, starts, ends, *shape, begin, *old, neighbour, support)
    _launch("move_rows", len(rows), rows, starts, touched, 0, begin, length, np.int32(-1))


def pack(
    begin: Any, length: Any, neighbour: Any, support: Any, new_begin: Any, new_neighbour: Any, new_support: Any
) -> None:
    """Copy all rows to their new places, which follow each other from 0 on."""
    entries = int(length.sum())
    arguments = new_begin, np.int64(len(begin)), np.int64(entries), begin, neighbour, support
    _launch("pack_rows", entries, *arguments, new_neighbour, new_support)


def set_flags(low: Any, high: Any, begin: Any, length: Any, neighbour: Any, support: Any) -> None:
    """Add FLAG to the support of edges."""
    support[_entries(begin, length, neighbour, low, high)] += FLAG


def change_supports(low: Any, high: Any, begin: Any, length: Any, neighbour: Any, support: Any, change: int) -> Any:
    """Find the triangles of the batch's edges, which have FLAG; see the counterpart."""
    own = cupy.zeros(len(low), np.int32)
    sums = starts_of(cupy.minimum(length[low], length[high]))
    entries = int(sums[-1])
    shape = sums, np.int64(len(low)), np.int64(entries)
    rows = begin, length, neighbour, support
    _launch("count_common", entries, low, high, *shape, *rows, np.int32(change), FLAG, own)
    return own


def set_supports(low: Any, high: Any, begin: Any, length: Any, neighbour: Any, support: Any, values: Any) -> None:
    """Set the support of edges that are there."""
    support[_entries(begin, length, neighbour, low, high)] = values


def get_supports(low: Any, high: Any, begin: Any, length: Any, neighbour: Any, support: Any) -> Any:
    """The support of edges that are there, int32 [pairs]."""
    return support[_entries(begin, length, neighbour, low, high)]


def group_by_row(low: Any, high: Any) -> tuple[Any, Any, Any]:
    """Both directions of some pairs: the rows, where the entries of each start, and the entries; all ascending."""
    shift = np.int64(32)
    keys = cupy.concatenate([low.astype(np.int64) << shift | high, high.astype(np.int64) << shift | low])
    keys.sort()
    of = (keys >> shift).astype(np.int32)
    is_head = cupy.ones(len(of), np.bool_)
    is_head[1:] = of[1:] != of[:-1]
    heads = cupy.flatnonzero(is_head)
    starts = cupy.empty(len(heads) + 1, np.int64)
    starts[:-1] = heads
    starts[-1] = len(of)
    return of[heads], starts, keys.astype(np.int32)
