"""One block of Parquet rows, cleaned: loops and repetitions counted and dropped, each edge as (low id, high id)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from .. import kernels
from ..kernels.held import Held
from . import identity, order
from .coding import Coding
from .identity import Ids, Put
from .left_out import LeftOut
from .reading import IdRows, read_parts, read_rows
from .sources import Block, Source
from .ways import DOWN, UP, distinct_edges

SAMPLES = 256
"""Ids sampled for each bucket. The driver holds them all; a bucket then is about a tenth larger than the mean."""


@dataclass(frozen=True)
class BlockEdges(Held):
    """The distinct edges of one block, in terms of its own ids. `len()` counts them."""

    number: int
    """Which block."""

    ids: Ids
    """[ids] every id of the block, ascending, distinct; those of dropped loops too, as vertices come from all rows."""

    low: NDArray[np.int32]
    """[edges] position in `ids` of the smaller end."""

    high: NDArray[np.int32]
    """[edges] position in `ids` of the larger end; edges are sorted by (low, high)."""

    rows: int
    """Rows read: edges + self_loops + duplicates + left_out.rows."""

    self_loops: int
    duplicates: int

    left_out: LeftOut
    """Rows with a null id, and those that the condition leaves out."""

    sides: NDArray[np.uint8] | None = None
    """[ids] 1 for those in the source column, 2 in the target column, 3 in both; None where that does not matter."""

    ways: NDArray[np.uint8] | None = None
    """[edges] where each leads, as in `tasks.ways`; None of an undirected graph."""

    def __len__(self) -> int:
        return len(self.low)


@dataclass(frozen=True)
class LocalEdges(Held):
    """The edges of a block when the buckets have its ids. `len()` counts them."""

    number: int
    """Which block."""

    vertices: int
    """Ids that it had."""

    low: NDArray[np.int32]
    """[edges] as in BlockEdges."""

    high: NDArray[np.int32]
    """[edges] as in BlockEdges."""

    ways: NDArray[np.uint8] | None = None
    """[edges] as in BlockEdges."""

    def __len__(self) -> int:
        return len(self.low)


def without_ids(block: BlockEdges) -> LocalEdges:
    """What is needed of a block until its ids have numbers; the ids are most of its memory."""
    return LocalEdges(block.number, len(block.ids), block.low, block.high, block.ways)


def read_block(source: Source, block: Block, put: Put = kernels.to_host) -> BlockEdges:
    """Read and clean one block, where `put` puts integer ids. Raises InputError as `reading.read_rows` does."""
    with_sides = source.bipartite == "refuse"
    if source.kind == "string":
        found = _read_strings(source, block, with_sides)
    else:
        found = clean(block.number, read_rows(source, block), put, with_sides, source.directed)
    if put is kernels.to_host:
        pa.default_memory_pool().release_unused()  # beside the block itself Arrow would keep what it took to read it
    return found


def clean(
    number: int, rows: IdRows, put: Put = kernels.to_host, with_sides: bool = False, directed: bool = False
) -> BlockEdges:
    """Clean the rows of one block, where `put` puts integer ids; `with_sides` tells which column each id is in, and
    `directed` where each edge leads.
    """
    if isinstance(rows.source, pa.Array):
        coded = identity.encode(rows.source, rows.target)
    else:
        coded = identity.encode(put(rows.source), put(rows.target))
    return _edges(number, *coded, rows.left_out, with_sides, directed)


def _read_strings(source: Source, block: Block, with_sides: bool) -> BlockEdges:
    coding = Coding()
    for part in read_parts(source, block):
        coding.add(part)
    return _edges(block.number, *coding.end(), coding.left_out, with_sides, source.directed)


def _edges(
    number: int,
    ids: Ids,
    first: NDArray[np.int32],
    second: NDArray[np.int32],
    left_out: LeftOut,
    with_sides: bool,
    directed: bool,
) -> BlockEdges:
    """The edges of rows whose ends are positions in `ids`."""
    sides = None
    if with_sides:
        sides = np.zeros_like(first, dtype=np.uint8, shape=len(ids))
        sides[first] |= 1
        sides[second] |= 2
    low, high = np.minimum(first, second), np.maximum(first, second)
    ways = np.where(first < second, np.uint8(UP), np.uint8(DOWN)) if directed else None
    proper = low != high
    edges = int(np.count_nonzero(proper))
    self_loops = len(low) - edges
    if self_loops:
        low, high = low[proper], high[proper]
        ways = None if ways is None else ways[proper]
    if ways is None:
        low, high = order.distinct_pairs(low, high, len(ids), len(ids))
    else:
        low, high, ways = distinct_edges(low, high, ways, len(ids), len(ids))
    rows = len(first) + left_out.rows
    return BlockEdges(number, ids, low, high, rows, self_loops, edges - len(low), left_out, sides, ways)


def sample_interval(rows: int, buckets: int) -> int:
    """The `every` of `sample_ids` for an input of that many rows: SAMPLES for each bucket, none for a single one."""
    return max(1, rows // (SAMPLES * buckets)) if buckets > 1 else rows + 1


def sample_ids(block: BlockEdges, every: int) -> Ids:
    """One id for each `every` rows a bucket would get from this block: its edges by low end, and its vertices.

    Blocks sampled with the same `every` weigh as much as they have rows.
    """
    edges = identity.take(block.ids, block.low[every // 2 :: every])
    return identity.to_host(identity.concatenate([edges, identity.sample(block.ids, every)]))


def choose_splitters(samples: Sequence[Ids], buckets: int) -> Ids:
    """The buckets - 1 ids, ascending, that cut the id space into ranges of about equal rows; ranges may be empty."""
    return identity.quantiles(identity.concatenate(samples), buckets)
