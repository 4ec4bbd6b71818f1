"""Triangles by their third vertex on the device, and the edges of a group put in order; see closing.cu."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cupy
import numpy as np

from ..held import Held
from . import source, tables
from .rows import row_numbers, starts_of

_BLOCK = 256


@dataclass(frozen=True)
class MergedEdges(Held):
    """Edges from several sorted runs, sorted by (low, high): 12 bytes an edge."""

    low: Any
    """uint32 [edges]"""
    high: Any
    """uint32 [edges]"""
    origin: Any
    """uint32 [edges] where the edge stood in the runs."""
    vertices: int
    """Of the whole graph."""


@dataclass(frozen=True)
class ClosingLists(Held):
    """The edges that a group owns, as rows a → c: 4 bytes an edge and 8 a vertex of the whole graph."""

    offsets: Any
    """int64 [vertices + 1] where the row of each vertex of the graph starts."""
    high: Any
    """int32 [edges] rank of the other endpoint, ascending within a row."""

    def __len__(self) -> int:
        return len(self.high)


def merge_rows(low: Any, high: Any, runs: Any, vertices: int) -> MergedEdges:
    """Merge runs of edges, each sorted by (low, high), by a radix sort of keys.

    It takes about 48 bytes an edge beside what it is given and gives; none for a single run.
    """
    if len(runs) <= 2:
        return MergedEdges(low, high, cupy.arange(len(high), dtype=np.uint32), vertices)
    key = low.astype(np.uint64)
    key <<= np.uint64(32)
    key |= high
    origin = cupy.argsort(key).astype(np.uint32)
    del key
    return MergedEdges(low[origin], high[origin], origin, vertices)


def close_rows(rows: MergedEdges, cut: Any, first: int, shards: int) -> ClosingLists:
    """The rows of a group, which owns all of these edges."""
    length = cupy.zeros(rows.vertices, np.int32)
    cupy.add.at(length, rows.low.view(np.int32), 1)
    return ClosingLists(starts_of(length), rows.high.view(np.int32))


def count_closed(rows: ClosingLists, starts: Any, low: Any, high: Any, sums: Any) -> tuple[Any, int]:
    """Find the triangles a < b < c of the edges (a, b) that pass by, with c of the group's classes.

    It takes 9 bytes an edge that passes by, 8 more for each that is streamed past a table of its b, and 24 a vertex.
    """
    found = cupy.zeros(len(high), np.int32)
    vertices, entries = len(rows.offsets) - 1, len(high)
    if not entries or not len(rows):
        return found, 0
    starts, low, members = starts.astype(np.int64), low.view(np.int32), high.view(np.int32)
    row = row_numbers(starts)
    used, grouped = cupy.zeros(vertices, np.int32), cupy.zeros(vertices, np.int32)
    cupy.add.at(used, members, 1)
    side, table = cupy.empty(entries, np.int8), cupy.zeros(len(low), np.bool_)
    source.kernel("closing:choose")(
        (source.grid(entries, _BLOCK, 32),),
        (_BLOCK,),
        (members, np.int64(entries), row, low, starts, rows.offsets, rows.high, used, side, table, grouped),
    )
    del used
    groups = tables.group(members, side, grouped)
    arguments = (row, low, starts, members, rows.offsets, rows.high, side, *groups, sums, found)
    length = cupy.diff(rows.offsets)
    tables.launch("closing", 0, cupy.where(table, length[low], 0), cupy.diff(starts), arguments)
    tables.launch("closing", 1, cupy.where(grouped > 0, length, 0), grouped, arguments)
    return found, int(found.sum(dtype=np.int64))


def arrange(
    origin: Any, owned: Any, low: Any, support: Any, row: Any, runs: Any, senders: Any
) -> tuple[Any, Any, Any, Any]:
    """Low ends and supports in the order of `origin`, and sender and row of the owned edges."""
    if not len(origin):
        return low, support, cupy.zeros(0, np.int16), row
    row_at = cupy.empty(len(origin), np.int32)
    row_at[cupy.flatnonzero(owned)] = row
    mine = origin[cupy.flatnonzero(owned[origin])]
    run = cupy.searchsorted(cupy.asarray(runs[1:]), mine.astype(np.int64), side="right")
    return low[origin], support[origin], cupy.asarray(senders)[run], row_at[mine]
