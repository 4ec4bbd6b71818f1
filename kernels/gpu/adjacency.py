"""Rows of a subgraph in both directions, with a hash table for each long row, and their compaction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cupy
import numpy as np

from ..graph import Topology
from ..runtime.sizes import SizedArrays
from .runtime import source

SHORT = 16
"""Rows with at most this many entries have no hash table and are searched from end to end."""
_BLOCK = 256


@dataclass(frozen=True)
class HashedRows(SizedArrays):
    """Rows as in `graph.Adjacency`, but packed, and with unordered entries. rows.cuh describes the hash tables."""

    low: Any
    """int32 [all edges] the lower endpoints, from which compacted rows are built."""
    high: Any
    """int32 [all edges] the higher endpoints."""
    offsets: Any
    """int64 [vertices + 1] where each row starts. A row keeps the space of the entries that it was built with."""
    length: Any
    """int32 [vertices] entries in each row."""
    buckets: Any
    """int64 [vertices + 1] where the buckets of each row start."""
    pairs: Any
    """int32 [entries, 2] pairs (neighbour, edge)."""
    table: Any
    """int32 [buckets, 8] four neighbours, -1 for an empty slot, and their edges."""
    filters: Any
    """uint16 [buckets] one bit for each neighbour that hashes to the bucket."""

    @property
    def begin(self) -> Any:
        """int64 [vertices] where each row starts."""
        return self.offsets[:-1]

    @property
    def widest(self) -> int:
        """Entries of the longest row. Waits for the device."""
        return int(self.length.max()) if len(self.length) else 0

    @property
    def neighbour(self) -> Any:
        """int32 [entries]"""
        return self.pairs[:, 0]

    @property
    def edge(self) -> Any:
        """int32 [entries]"""
        return self.pairs[:, 1]


def row_numbers(offsets: Any) -> Any:
    """The row of each entry of a CSR, int32 [entries]: the last row that starts at the entry or before it."""
    rows, entries = len(offsets) - 1, int(offsets[-1])
    numbers = cupy.empty(entries, np.int32)
    if entries:
        blocks = source.grid(entries, _BLOCK, 32)
        source.kernel("rows:number_rows")((blocks,), (_BLOCK,), (offsets, np.int64(rows), np.int64(entries), numbers))
    return numbers


def adjacency(topology: Topology) -> HashedRows:
    """The rows of a subgraph in both directions."""
    return _build(topology.low, topology.high, topology.vertices, None)


def compact(rows: HashedRows, live: Any) -> HashedRows:
    """Rows of the live edges alone, built from the endpoints."""
    edges = cupy.flatnonzero(live).astype(np.int32)
    return _build(rows.low, rows.high, len(rows.offsets) - 1, edges)


def trim(rows: HashedRows, count: Any) -> None:
    """Remove the entries of removed edges, whose count is negative, from the rows. The hash tables keep them."""
    vertices = len(rows.length)
    blocks = source.grid(32 * vertices, _BLOCK)
    source.kernel("rows:trim_rows")(
        (blocks,), (_BLOCK,), (rows.offsets, rows.length, np.int32(vertices), count, rows.pairs)
    )


def _build(low: Any, high: Any, vertices: int, edges: Any) -> HashedRows:
    count = len(low) if edges is None else len(edges)
    edge_list = 0 if edges is None else edges
    blocks = source.grid(count, _BLOCK, 32)
    length = cupy.zeros(vertices, np.int32)
    source.kernel("rows:measure_rows")((blocks,), (_BLOCK,), (edge_list, np.int64(count), low, high, length))
    offsets, buckets = starts_of(length), starts_of(cupy.where(length > SHORT, (length + 7) >> 3 << 2, 0))
    pairs = cupy.empty((2 * count, 2), np.int32)
    total = int(buckets[-1])
    table = cupy.full((total, 8), -1, np.int32)
    filters = cupy.zeros(total + 1 >> 1, np.uint32)
    used = cupy.zeros(vertices, np.int32)
    source.kernel("rows:fill_rows")(
        (blocks,),
        (_BLOCK,),
        (edge_list, np.int64(count), low, high, offsets, length, buckets, used, pairs, table, filters),
    )
    return HashedRows(low, high, offsets, length, buckets, pairs, table, filters.view(np.uint16))


def starts_of(sizes: Any) -> Any:
    """The offsets of consecutive runs, int64 [runs + 1]: where each starts, and where the last one ends."""
    starts = cupy.zeros(len(sizes) + 1, np.int64)
    cupy.cumsum(sizes, dtype=np.int64, out=starts[1:])
    return starts
