"""Triangles on the device: a table in shared memory for one set, the other streamed past it; see intersect.cu."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from . import source
from .rows import row_numbers, starts_of

SIZES = (
    # members, slots of a table (a quarter full, the largest half), warps of a block, whether a table is one warp's work
    (32, 128, 8, 1),
    (256, 1024, 4, 0),
    (1024, 4096, 16, 0),
    (2**31, 8192, 32, 0),
)
"""Kernels by the size of their tables."""
_PART = 1024
"""Sets that one team streams past a table; as in intersect.cu."""
_BLOCK = 256


def intersect(starts: Any, members: Any, offsets: Any, high: Any, home: Any) -> tuple[Any, Any, Any]:
    """Find every triangle a < b < c with the list of a in `members` and b in this partition."""
    support = cupy.zeros(len(high), np.int32)
    gain = cupy.zeros(len(members), np.int32)
    outer = cupy.zeros(len(members), np.bool_)
    vertices, lists, entries = len(offsets) - 1, len(starts) - 1, len(members)
    if not entries or not len(high):
        return support, gain, outer
    given = 0 if bool(home.all()) else home
    row = row_numbers(starts)
    used = cupy.zeros(vertices + 1, np.int32)
    cupy.add.at(used, members, 1)  # members of -1 count for the last, which is none
    side, table, grouped = cupy.empty(entries, np.int8), cupy.zeros(lists, np.bool_), cupy.zeros(vertices, np.int32)
    blocks = source.grid(entries, _BLOCK, 32)
    source.kernel("intersect:choose")(
        (blocks,), (_BLOCK,), (members, np.int64(entries), row, starts, offsets, given, used, side, table, grouped)
    )
    group_starts = starts_of(grouped)
    entry = cupy.empty(int(group_starts[-1]), np.int64)
    source.kernel("intersect:group")(
        (blocks,), (_BLOCK,), (members, np.int64(entries), side, group_starts.astype(np.uint64), entry)
    )
    sizes = (cupy.where(table, cupy.diff(starts), 0), cupy.where(grouped > 0, cupy.diff(offsets), 0))
    streams = (cupy.diff(starts), grouped)
    arguments = (row, starts, members, offsets, high, given, side, group_starts, entry, support, gain, outer)
    for by_b in (0, 1):
        least = 0
        for most, slots, warps, one_warp in SIZES:
            tables = cupy.flatnonzero((sizes[by_b] > least) & (sizes[by_b] <= most)).astype(np.int32)
            least = most
            if not len(tables):
                continue
            tables, part = _in_parts(tables, streams[by_b])
            kernel = _kernel(by_b, slots, warps, one_warp)
            shared = 8 * slots * (warps if one_warp else 1)
            kernel.max_dynamic_shared_size_bytes = shared
            blocks = source.grid(len(tables), warps if one_warp else 1, 16)
            cursor = cupy.zeros(1, np.uint64)
            kernel(
                (blocks,), (32 * warps,), (tables, part, np.int32(len(tables)), cursor, *arguments), shared_mem=shared
            )
    return support, gain, outer


def _kernel(side: int, slots: int, warps: int, one_warp: int) -> Any:
    return source.kernel("intersect", SIDE=side, SLOTS=slots, WARPS=warps, ONE_WARP=one_warp)


def compile_all() -> None:
    """Load the kernels for tables of every size."""
    for side in (0, 1):
        for _, slots, warps, one_warp in SIZES:
            _kernel(side, slots, warps, one_warp).compile()


def _in_parts(tables: Any, streams: Any) -> tuple[Any, Any]:
    """The tables, each as often as `streams` of it need teams, and which of its parts each team takes."""
    first = starts_of(-(-streams[tables] // _PART))
    of_table = row_numbers(first)
    return tables[of_table], cupy.arange(len(of_table), dtype=np.int32) - first[of_table].astype(np.int32)
