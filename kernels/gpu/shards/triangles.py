"""Triangles by their third vertex on the GPU, and the merging of a group's edges; see shards/third_vertex.cu.

Sorted runs of edges are merged range of vertices by range: a sort of all edges at once takes too much memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import cupy
import numpy as np

from ...runtime.sizes import SizedArrays
from .. import tables
from ..adjacency import row_numbers, starts_of
from ..arrays.indexing import count_ranks, total
from ..runtime import source

_SAMPLES = 2**12
"""Ends sampled for each range."""


def low_ranges(lows: Sequence[Any], most: int) -> list[list[slice]]:
    """Cut sorted runs into ranges of low ends, with about `most` edges of all runs in each.

    `lows` [runs] are the low ends of each run, ascending. Returns the slice of each run for each range, as lists
    [ranges][runs]. All edges of one low end are in one range, whatever their number.
    """
    edges = sum(map(len, lows))
    count = -(-edges // most)
    if count <= 1:
        return [[slice(0, len(low)) for low in lows]] if edges else []
    stride = max(1, edges // (count * _SAMPLES))
    sample = np.sort(np.concatenate([low[stride // 2 :: stride] for low in lows]))
    first = sample[np.asarray(np.arange(1, count) * len(sample) // count, like=sample)]
    cuts = [[0, *np.searchsorted(low, first).tolist(), len(low)] for low in lows]
    return [[slice(cut[i], cut[i + 1]) for cut in cuts] for i in range(count)]


def order_of(low: Any, high: Any) -> Any:
    """The permutation that sorts edges by (low, high), uint32 ends. Takes about 40 bytes an edge."""
    key = low.astype(np.uint64)
    key <<= np.uint64(32)
    key |= high
    return np.argsort(key)


_BLOCK = 256


MERGED_AT_ONCE = 2**28
"""Approximate number of edges that one sort merges."""


@dataclass(frozen=True)
class MergedEdges(SizedArrays):
    """Edges from several sorted runs, sorted by (low, high): 12 bytes an edge."""

    low: Any
    """uint32 [edges]"""
    high: Any
    """uint32 [edges]"""
    origin: Any
    """uint32 [edges] index of the edge in the input."""
    vertices: int
    """Number of vertices of the whole graph."""


@dataclass(frozen=True)
class ThirdVertexLists(SizedArrays):
    """The edges that a group owns, as rows a → c. Takes 4 bytes an edge and 8 bytes a vertex of the whole graph."""

    offsets: Any
    """int64 [vertices + 1] where the row of each vertex starts."""
    high: Any
    """uint32 [edges] rank of the other endpoint, ascending within a row."""

    def __len__(self) -> int:
        return len(self.high)


def merge_rows(low: Any, high: Any, runs: Any, vertices: int) -> MergedEdges:
    """Merge sorted runs of edges by one radix sort of keys for each range of low ends; see `kernels.merge_rows`.

    Takes about 60 bytes for each edge of a range in addition to arguments and result. A single run is not sorted.
    """
    if len(runs) <= 2:
        return MergedEdges(low, high, cupy.arange(len(high), dtype=np.uint32), vertices)
    ends = [cupy.empty(len(high), np.uint32) for _ in range(2)]
    merged = MergedEdges(ends[0], ends[1], cupy.empty(len(high), np.uint32), vertices)
    bounds, stop = np.asarray(runs).tolist(), 0
    for cuts in low_ranges([low[first:last] for first, last in pairwise(bounds)], MERGED_AT_ONCE):
        own = [slice(first + cut.start, first + cut.stop) for first, cut in zip(bounds, cuts, strict=False)]
        own_low, own_high = (cupy.concatenate([end[part] for part in own]) for end in (low, high))
        by = order_of(own_low, own_high)
        start, stop = stop, stop + len(by)
        merged.low[start:stop], merged.high[start:stop] = own_low[by], own_high[by]
        del own_low, own_high
        index = cupy.concatenate([cupy.arange(part.start, part.stop, dtype=np.uint32) for part in own])
        merged.origin[start:stop] = index[by]
    return merged


def third_vertex_rows(rows: MergedEdges, cut: Any, first: int, shards: int) -> ThirdVertexLists:
    """The rows of a group that owns all edges of `rows`; see `kernels.third_vertex_rows`."""
    return ThirdVertexLists(starts_of(count_ranks(rows.low, rows.vertices)), rows.high)


def count_by_third_vertex(rows: ThirdVertexLists, starts: Any, low: Any, high: Any, sums: Any) -> tuple[Any, int]:
    """Find the triangles a < b < c of the given edges (a, b) with c in the group; see `kernels.count_by_third_vertex`.

    Takes 9 bytes a given edge, 8 more for each edge whose N(a) is looked up in a table of N(b), and 24 bytes a vertex.
    """
    found = cupy.zeros(len(high), np.int32)
    vertices, entries = len(rows.offsets) - 1, len(high)
    if not entries or not len(rows):
        return found, 0
    starts = starts.astype(np.int64)
    row = row_numbers(starts)
    used, grouped = count_ranks(high, vertices), cupy.zeros(vertices, np.int32)
    side, table = cupy.empty(entries, np.int8), cupy.zeros(len(low), np.bool_)
    source.kernel("shards/third_vertex:choose")(
        (source.grid(entries, _BLOCK, 32),),
        (_BLOCK,),
        (high, np.int64(entries), row, low, starts, rows.offsets, rows.high, used, side, table, grouped),
    )
    del used
    groups = tables.group(high, side, grouped)
    arguments = (row, low, starts, high, rows.offsets, rows.high, side, *groups, sums, found)
    length = cupy.diff(rows.offsets)
    tables.launch("shards/third_vertex", 0, cupy.where(table, length[low], 0), cupy.diff(starts), arguments)
    tables.launch("shards/third_vertex", 1, cupy.where(grouped > 0, length, 0), grouped, arguments)
    return found, total(found)
