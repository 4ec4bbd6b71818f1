"""Triangles on the GPU: a hash table in shared memory of one set, and a stream of lookups of the other; see
intersect.cu.
"""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from . import tables
from .rows import row_numbers
from .runtime import source

_BLOCK = 256


def intersect(starts: Any, members: Any, offsets: Any, high: Any, home: Any) -> tuple[Any, Any, Any]:
    """Find each triangle a < b < c whose list of a is given and whose edge (b, c) is in this partition."""
    support = cupy.zeros(len(high), np.int32)
    gain = cupy.zeros(len(members), np.int32)
    outer = cupy.zeros(len(members), np.bool_)
    if len(members) and len(high):
        _find(starts, members, offsets, high, 0 if bool(home.all()) else home, support, gain, outer)
    return support, gain, outer


def supports(offsets: Any, high: Any) -> Any:
    """The triangles of each edge of a whole graph, int32 [edges]; `offsets` and `high` are its oriented CSR."""
    support = cupy.zeros(len(high), np.int32)
    if len(high):
        _find(offsets, high, offsets, high, 0, support, support, 0)  # no edge is another partition's
    return support


def _find(starts: Any, members: Any, offsets: Any, high: Any, homes: Any, support: Any, gain: Any, outer: Any) -> None:
    """Add the triangles to `support` and `gain`, which may be one array. `homes` is 0 if all vertices are at home."""
    vertices, lists, entries = len(offsets) - 1, len(starts) - 1, len(members)
    row = row_numbers(starts)
    used = cupy.zeros(vertices + 1, np.int32)
    blocks = source.grid(entries, _BLOCK, 32)
    source.kernel("intersect:tally")((blocks,), (_BLOCK,), (members, np.int64(entries), np.int32(vertices), used))
    side, table, grouped = cupy.empty(entries, np.int8), cupy.zeros(lists, np.bool_), cupy.zeros(vertices, np.int32)
    source.kernel("intersect:choose")(
        (blocks,),
        (_BLOCK,),
        (members, np.int64(entries), row, starts, offsets, homes, used, side, table, grouped),
    )
    groups = tables.group(members, side, grouped)
    arguments = (row, starts, members, offsets, high, homes, side, *groups, support, gain, outer)
    tables.launch("intersect", 0, cupy.where(table, cupy.diff(starts), 0), cupy.diff(starts), arguments)
    tables.launch("intersect", 1, cupy.where(grouped > 0, cupy.diff(offsets), 0), grouped, arguments)
