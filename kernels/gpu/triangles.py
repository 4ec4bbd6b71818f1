"""Triangles on the GPU: one set is a hash table in shared memory, in which the other set is looked up; see
intersect.cu.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import cupy
import numpy as np

from . import tables
from .adjacency import row_numbers
from .runtime import source
from .runtime.memory import room

_BLOCK = 256
PART_BYTES = 14
"""Bytes of an edge while its list is processed: its list (4), its side (1), its place in a group (8), and rounding."""
PART_VERTEX_BYTES = 48
"""Bytes of a vertex at the same time."""
MOST_PARTS = 64
"""Most parts of a graph: each has arrays for all vertices, and builds tables of its own."""


def supports(offsets: Any, high: Any, share: int = 0, shares: int = 1) -> Any:
    """The triangles of each edge of a whole graph, int32 [edges]; `offsets` and `high` are its oriented CSR.

    If memory is scarce the lists of vertices are processed in several parts, each with arrays of its own. With `shares`
    above 1 only triangles of the lists of vertices v with v % `shares` == `share` are counted.
    """
    # First, as this returns unused memory: the supports then get memory that they share with no other array.
    parts = _parts(offsets, len(high))
    support = cupy.zeros(len(high), np.int32)
    for first, last, begin, end in parts:
        # Views: an edge's place in its list is its number.
        members, gain = high[begin:end], support[begin:end]
        own = np.int32(first), np.int32(share), np.int32(shares)
        _find(offsets[first : last + 1] - begin, members, offsets, high, support, gain, own)
    return support


def _parts(offsets: Any, edges: int) -> list[tuple[int, int, int, int]]:
    """Cut the lists into parts that fit the memory beside supports: (first vertex, last + 1, first edge, last + 1)."""
    vertices = len(offsets) - 1
    taken, beside = PART_BYTES * edges, PART_VERTEX_BYTES * vertices + np.dtype(np.int32).itemsize * edges
    free = room(taken + beside) - beside
    parts = min(MOST_PARTS, max(1, -(-taken // max(free, 1)))) if edges else 0
    shares = cupy.asarray([edges * part // parts for part in range(1, parts)], np.int64)
    cuts = sorted({*cupy.searchsorted(offsets, shares, side="right").get().tolist(), vertices} - {0}) if parts else []
    ends = [0, *offsets[cupy.asarray(cuts, np.int64)].get().tolist()]
    both = zip(pairwise([0, *cuts]), pairwise(ends), strict=True)
    return [(*of_vertices, *of_edges) for of_vertices, of_edges in both if of_edges[1] > of_edges[0]]


def _find(starts: Any, members: Any, offsets: Any, high: Any, support: Any, gain: Any, share: tuple[Any, ...]) -> None:
    """Add the triangles of a share to `support` and `gain`, which may be one array."""
    vertices, lists, entries = len(offsets) - 1, len(starts) - 1, len(members)
    row = row_numbers(starts)
    used = cupy.zeros(vertices, np.int32)
    blocks = source.grid(entries, _BLOCK, 32)
    source.kernel("intersect:tally")((blocks,), (_BLOCK,), (members, np.int64(entries), row, *share, used))
    side, table, grouped = cupy.empty(entries, np.int8), cupy.zeros(lists, np.bool_), cupy.zeros(vertices, np.int32)
    source.kernel("intersect:choose")(
        (blocks,),
        (_BLOCK,),
        (members, np.int64(entries), row, starts, offsets, used, *share, side, table, grouped),
    )
    groups = tables.group(members, side, grouped)
    arguments = (row, starts, members, offsets, high, side, *groups, support, gain)
    tables.launch("intersect", 0, cupy.where(table, cupy.diff(starts), 0), cupy.diff(starts), arguments)
    tables.launch("intersect", 1, cupy.where(grouped > 0, cupy.diff(offsets), 0), grouped, arguments)
