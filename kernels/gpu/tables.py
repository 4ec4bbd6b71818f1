"""Launches kernels that look up streamed sets in hash tables in shared memory: one variant for each size of tables.

tables.cuh documents the tables.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import cupy
import numpy as np

from .adjacency import row_numbers, starts_of
from .runtime import source
from .runtime.constants import STREAM_PART

SIZES = (
    # most members, slots (tables are a quarter full, the largest half), warps of a block, whether one warp has a table
    (32, 128, 8, 1),
    (256, 1024, 4, 0),
    (1024, 4096, 16, 0),
    (2**31, 8192, 32, 0),
)
"""Kernels by the size of their tables: each row is one compiled variant."""


def group(members: Any, side: Any, grouped: Any) -> tuple[Any, Any]:
    """Group the entries on side 1 by member. Returns where each member's entries start, int64 [vertices + 1], and the
    entries. `grouped` [vertices] is the number of entries of each member on side 1.
    """
    starts = starts_of(grouped)
    entry = cupy.empty(int(starts[-1]), np.int64)
    source.kernel("intersect:group")(
        (source.grid(len(members), 256, 32),),
        (256,),
        (members, np.int64(len(members)), side, starts.astype(np.uint64), entry),
    )
    return starts, entry


def launch(name: str, side: int, sizes: Any, streams: Any, arguments: tuple[Any, ...]) -> None:
    """Run the kernel `name` for tables with `sizes` [tables] members and `streams` [tables] sets to look up in them."""
    least = 0
    for most, slots, warps, one_warp in SIZES:
        numbers = cupy.flatnonzero((sizes > least) & (sizes <= most))
        least = most
        if not len(numbers):
            continue
        tables, part = _in_parts(numbers, streams)
        kernel = _kernel(name, side, slots, warps, one_warp)
        shared = 8 * slots * (warps if one_warp else 1)
        kernel.max_dynamic_shared_size_bytes = shared
        blocks = source.grid(len(tables), warps if one_warp else 1, 16)
        cursor = cupy.zeros(1, np.uint64)
        kernel((blocks,), (32 * warps,), (tables, part, np.int32(len(tables)), cursor, *arguments), shared_mem=shared)


def compile_all(shards: bool) -> None:
    """Compile the kernels for tables of every size, or load them from CuPy's cache. `shards` adds kernels of shards."""
    names = ("intersect", "shards/third_vertex")[: 1 + shards]
    for name, side, (_, slots, warps, one_warp) in product(names, (0, 1), SIZES):
        _kernel(name, side, slots, warps, one_warp).compile()


def _kernel(name: str, side: int, slots: int, warps: int, one_warp: int) -> Any:
    return source.kernel(name, SIDE=side, SLOTS=slots, WARPS=warps, ONE_WARP=one_warp)


def _in_parts(numbers: Any, streams: Any) -> tuple[Any, Any]:
    """For each team the number of its table, and the part of the table's `streams` that the team processes.

    A table with more than STREAM_PART streams has several teams. The numbers become int32, whose bits the kernels read
    as uint32.
    """
    first = starts_of(-(-streams[numbers] // STREAM_PART))
    of_table = row_numbers(first)
    part = cupy.arange(len(of_table), dtype=np.int32) - first[of_table].astype(np.int32)
    return numbers.astype(np.int32)[of_table], part
