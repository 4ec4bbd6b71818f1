"""The rows of one shard, cut by the third vertex, on the GPU. shards/rows.cuh describes their content."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cupy
import numpy as np

from ...runtime.sizes import SizedArrays
from ..runtime import source
from ..runtime.constants import HALF_ROLE, SHORT_PART

MAX_ENTRIES = 2**32 - 8
"""Most entries of one shard, including the padding that aligns long rows."""
MAX_TRIANGLES = HALF_ROLE // 2
"""Supports must be less than this; see shards/count.cuh."""
_BLOCK = 256


@dataclass(frozen=True)
class Part:
    """One shard of a cut graph."""

    vertices: int
    """Number of vertices of the whole graph."""
    shards: int
    """Number of shards."""
    own: int
    """The class of this shard."""

    def launch(self, name: str, edges: int, *arguments: Any) -> None:
        """Run the kernel shards/rows:`name` over `edges` edges."""
        cut = (np.uint32(self.vertices), np.uint32(self.shards), np.uint32(self.own))
        blocks = source.grid(edges, _BLOCK, 32)
        source.kernel(f"shards/rows:{name}")((blocks,), (_BLOCK,), (*cut, np.int64(edges), *arguments))


@dataclass(frozen=True)
class PartRows(SizedArrays):
    """The rows of one shard."""

    rows: Any
    """uint32 [vertices, 4] start of each row, its entries, its buckets, unused."""
    pairs: Any
    """int32 [entries, 2] number of the neighbour in its class, and index of the half of the edge."""
    table: Any
    """int32 [buckets, 8] four neighbours, -1 for an empty slot, and their halves."""
    filters: Any
    """uint16 [buckets] one bit for each neighbour that hashes to the bucket."""


def build_part(part: Part, low: Any, high: Any) -> PartRows:
    """Build the rows of the edges `low`, `high`, each with an end in the shard's class. Edge i has half i.

    Raises MemoryError for more than MAX_ENTRIES entries.
    """
    vertices, edges = part.vertices, len(low)
    length = cupy.zeros(vertices, np.uint32)
    part.launch("measure_parts", edges, low, high, length)
    long_stop = cupy.cumsum(cupy.where(length > SHORT_PART, length + 7 & 0xFFFFFFF8, 0), dtype=np.int64)
    short_stop = cupy.cumsum(cupy.where(length > SHORT_PART, 0, length), dtype=np.int64)
    long, short = (int(stop[-1]) if vertices else 0 for stop in (long_stop, short_stop))
    if long + short > MAX_ENTRIES:
        raise MemoryError(
            f"a shard has {long + short:,} entries, and a GPU holds at most {MAX_ENTRIES:,}: use more shards"
        )
    rows = cupy.empty((vertices, 4), np.uint32)
    source.kernel("shards/rows:locate_parts")(
        (source.grid(vertices, _BLOCK),),
        (_BLOCK,),
        (np.int64(vertices), length, long_stop, short_stop, np.int64(long), rows),
    )
    del length, long_stop, short_stop
    pairs = cupy.empty((long + short, 2), np.int32)
    table = cupy.full((long // 2, 8), -1, np.int32)
    filters = cupy.zeros(long // 4 + 1, np.uint32)
    part.launch("fill_parts", edges, low, high, rows, pairs, table, filters)
    return PartRows(rows, pairs, table, filters.view(np.uint16))


def trim_part(rows: PartRows, count: Any) -> None:
    """Remove the entries of removed edges from the rows. The hash tables keep them."""
    vertices = len(rows.rows)
    source.kernel("shards/rows:trim_parts")(
        (source.grid(vertices, _BLOCK),), (_BLOCK,), (np.int64(vertices), count, rows.rows, rows.pairs)
    )


def split_counts(part: Part, low: Any, high: Any, support: Any) -> tuple[Any, int]:
    """The halves of the edges at the start of a peeling, and the sum of the supports of the edges whose high end is in
    the shard's class.
    """
    count, supports = cupy.empty(len(low), np.int32), cupy.zeros(1, np.uint64)
    part.launch("split_counts", len(low), low, high, support, count, supports)
    return count, int(supports[0])


def owned(part: Part, high: Any) -> Any:
    """Whether the high end of each edge is in the shard's class, bool [edges]."""
    found = cupy.empty(len(high), np.bool_)
    part.launch("mark_owned", len(high), high, found)
    return found
