"""The rows of a block as they were read: each is one number, which holds both ids."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .... import kernels
from ....kernels.runtime.device import module_of
from ....kernels.runtime.sizes import SizedArrays
from ...device import MemorySpace
from ...ids import order
from ...inputs.sources import Block, Source
from ..blocks import BlockEdges, clean
from ..left_out import LeftOut
from ..reading import IdRows, read_rows

PACKED_BITS = 31
"""Bits of an id in PackedRows."""
LARGER_ENDS = 16
"""Smaller ends that are sampled for each larger end. Without larger ends, one bucket could get most of the vertices."""


@dataclass(frozen=True)
class PackedRows(SizedArrays):
    """The packed rows of one block. `len()` is their number."""

    number: int
    """Number of the block."""

    keys: NDArray[np.int64]
    """[rows] (smaller id << PACKED_BITS) | larger id, in the order of the file."""

    largest: int
    """The largest id, 0 without rows."""

    rows: int
    """Rows read: len(keys) + left_out.rows."""

    self_loops: int

    left_out: LeftOut
    """As in BlockEdges."""

    duplicates: int = 0
    """Always 0: repeated rows are found when the rows of all blocks are sorted."""

    def __len__(self) -> int:
        return len(self.keys)


@dataclass(frozen=True)
class PackedFacts:
    """What the driver needs to know of the packed rows of a block."""

    rows: int
    largest: int
    self_loops: int
    sample: NDArray[np.int64]
    """[samples] ids of ends, on the host. They cut the range of ids into buckets."""


def can_pack(source: Source) -> bool:
    """Whether the rows of an input are pairs of integers and nothing else."""
    return source.kind == "integer" and not source.directed and source.weights is None and source.bipartite != "refuse"


def has_dense_ids(rows: int, largest: int) -> bool:
    """Whether a table over the ids 0 … largest is small enough for so many packed rows."""
    return largest < 1 << PACKED_BITS and order.fits_table(largest + 1, 2 * rows)


def read_packed(source: Source, block: Block, space: MemorySpace) -> PackedRows | BlockEdges:
    """Read one block of integer ids into `space`, packed if its ids allow it, else cleaned. Raises as `read_block`.

    The source must be undirected, without weights, and must not ask for the columns of ids.
    """
    rows = read_rows(source, block)
    placed = replace(rows, source=space.place(rows.source), target=space.place(rows.target))
    packed = pack(block.number, placed)
    return clean(block.number, placed, space) if packed is None else packed


def pack(number: int, rows: IdRows) -> PackedRows | None:
    """The rows of a block with integer ids, packed; None if an id is negative or has more than PACKED_BITS bits."""
    xp = module_of(rows.source)  # one thread packs before all others read
    low, high = xp.minimum(rows.source, rows.target), xp.maximum(rows.source, rows.target)
    largest = order.largest(high)
    if len(low) and (int(low.min()) < 0 or order.bits(largest + 1) > PACKED_BITS):
        return None
    self_loops = kernels.total(low == high)
    low <<= PACKED_BITS
    low |= high
    return PackedRows(number, low, largest, len(low) + rows.left_out.rows, self_loops, rows.left_out)


def unpack(block: PackedRows | BlockEdges, space: MemorySpace) -> BlockEdges:
    """The distinct edges of a block: itself if it is not packed."""
    if isinstance(block, BlockEdges):
        return block
    rows = IdRows(block.keys >> PACKED_BITS, block.keys & ((1 << PACKED_BITS) - 1), block.left_out)
    return clean(block.number, rows, space)


def facts_of(block: PackedRows, every: int) -> PackedFacts:
    """The facts of a packed block, with the smaller end of every `every`-th row.

    Of LARGER_ENDS sampled rows, one adds its larger end.
    """
    rows = kernels.to_host(block.keys[every // 2 :: every])
    larger = rows[::LARGER_ENDS] & ((1 << PACKED_BITS) - 1)
    sample = np.concatenate([rows >> PACKED_BITS, larger])
    return PackedFacts(len(block), block.largest, block.self_loops, sample)
