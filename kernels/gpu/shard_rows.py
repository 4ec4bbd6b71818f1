"""Rows cut by the third vertex on the device: those of one shard; shard_rows.cuh tells what they hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cupy
import numpy as np

from ..held import Held
from . import source

SHORT_PART = 8
"""Rows of up to so many entries have no table; as in shard_rows.cuh."""
MOST_ENTRIES = 2**32 - 8
"""Of one shard, with what aligns long rows."""
MOST_TRIANGLES = 2**27
"""Supports are below this: see shard_count.cuh."""
STANDING = -(2**28) - 2**27
"""Halves of at least this are those of edges that stand."""
LEFT = -(2**30)
"""The half of an edge that left at level k is LEFT + k."""
_BLOCK = 256


@dataclass(frozen=True)
class Part:
    """One shard of a cut graph."""

    vertices: int
    """Of the whole graph."""
    shards: int
    own: int
    """Its class."""

    def launch(self, name: str, edges: int, *arguments: Any) -> None:
        """Run a kernel over edges."""
        cut = (np.uint32(self.vertices), np.uint32(self.shards), np.uint32(self.own))
        blocks = source.grid(edges, _BLOCK, 32)
        source.kernel(f"shard_rows:{name}")((blocks,), (_BLOCK,), (*cut, np.int64(edges), *arguments))


@dataclass(frozen=True)
class PartRows(Held):
    """The rows of one shard."""

    rows: Any
    """uint32 [vertices, 4] where each row begins, its entries, its buckets, and nothing."""
    pairs: Any
    """int32 [entries, 2] number of the neighbour in its class, and the half of the edge."""
    table: Any
    """int32 [buckets, 8] four neighbours, -1 for none, and their halves."""
    filters: Any
    """uint16 [buckets]"""


def build_part(part: Part, low: Any, high: Any) -> PartRows:
    """The rows of the edges `low`, `high`, which all have an end of the class; their numbers are those of their halves.

    Raises MemoryError for more than MOST_ENTRIES entries.
    """
    vertices, edges = part.vertices, len(low)
    length = cupy.zeros(vertices, np.uint32)
    part.launch("measure_parts", edges, low, high, length)
    long_stop = cupy.cumsum(cupy.where(length > SHORT_PART, length + 7 & 0xFFFFFFF8, 0), dtype=np.int64)
    short_stop = cupy.cumsum(cupy.where(length > SHORT_PART, 0, length), dtype=np.int64)
    long, short = (int(stop[-1]) if vertices else 0 for stop in (long_stop, short_stop))
    if long + short > MOST_ENTRIES:
        raise MemoryError(f"a shard of {long + short:,} entries; a GPU holds {MOST_ENTRIES:,}: use more shards")
    rows = cupy.empty((vertices, 4), np.uint32)
    source.kernel("shard_rows:place_parts")(
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
    """Take the entries of edges that left out of their rows; tables keep them."""
    vertices = len(rows.rows)
    source.kernel("shard_rows:trim_parts")(
        (source.grid(vertices, _BLOCK),), (_BLOCK,), (np.int64(vertices), count, rows.rows, rows.pairs)
    )


def split_counts(part: Part, low: Any, high: Any, support: Any) -> tuple[Any, int]:
    """The halves of the edges at the start, and the supports of those of which the shard has the high end."""
    count, supports = cupy.empty(len(low), np.int32), cupy.zeros(1, np.uint64)
    part.launch("split_counts", len(low), low, high, support, count, supports)
    return count, int(supports[0])


def owned(part: Part, high: Any) -> Any:
    """Whether the shard has the high end, bool [edges]."""
    found = cupy.empty(len(high), np.bool_)
    part.launch("mark_owned", len(high), high, found)
    return found
