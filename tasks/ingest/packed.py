"""Packed rows: both ids of a row in one number, and how such rows become numbered edges in buckets.

One sort of the rows of many blocks replaces the cleaning of each block. As ids are small, a table over their range
tells which of them are vertices, so one exchange replaces the three that other ids take. Ids that are large or far
apart are sorted instead, if there is one bucket (`number_wide`).

With one bucket, one task does all of it. With several, the rows travel once: `send_keys` sorts some blocks together and
sends each row to the bucket of its smaller id, with a bit for each id of these blocks. `number_keys` then has the bits
of all blocks, and so the numbers of all vertices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels.runtime.device import module_of
from ...kernels.runtime.sizes import SizedArrays
from ..device import MemorySpace
from ..ids import order
from ..inputs.sources import InputBlock, Source
from ..messages import Bundle, Payload, bundle
from .blocks import BlockEdges, clean
from .left_out import LeftOut
from .numbering import BucketEdges, BucketIds, bucket_starts, check_edges
from .reading import IdRows, read_rows

PACKED_BITS = 31
"""Bits of an id in PackedRows."""
LARGER_ENDS = 16
"""One of this many sampled rows adds its larger end to the sample, too. Without larger ends, one bucket could get most
of the vertices.
"""


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
class WideRows(SizedArrays):
    """The rows of one block that has ids of more than PACKED_BITS bits. `len()` is their number."""

    number: int
    """Number of the block."""

    source: NDArray[np.int64]
    """[rows] in the order of the file."""

    target: NDArray[np.int64]
    """[rows]"""

    rows: int
    """As in PackedRows."""

    self_loops: int

    left_out: LeftOut
    """As in BlockEdges."""

    duplicates: int = 0
    """As in PackedRows."""

    def __len__(self) -> int:
        return len(self.source)


@dataclass(frozen=True)
class PackedFacts:
    """What the driver needs to know of the rows of a block that was not cleaned."""

    rows: int
    largest: int
    """The largest id, of PackedRows; WIDE, of WideRows."""
    self_loops: int
    sample: NDArray[np.int64]
    """[samples] ids of ends, on the host. They cut the range of ids into buckets. None of WideRows."""


WIDE = 2**63 - 1
"""A largest id that no table has room for."""


def can_pack(source: Source) -> bool:
    """Whether the rows of an input are pairs of integers and nothing else."""
    return source.kind == "integer" and not source.directed and source.weights is None and source.bipartite != "refuse"


def has_dense_ids(rows: int, largest: int) -> bool:
    """Whether a table over the ids 0 … largest is small enough for `rows` packed rows."""
    return largest < 1 << PACKED_BITS and order.fits_table(largest + 1, 2 * rows)


def read_packed(source: Source, block: InputBlock, space: MemorySpace) -> PackedRows | WideRows:
    """Read one block of integer ids into `space`. Raises as `read_block`.

    The source must be undirected, without weights, and must not ask for the columns of ids.
    """
    rows = read_rows(source, block)
    return pack(block.number, replace(rows, source=space.place(rows.source), target=space.place(rows.target)))


def pack(number: int, rows: IdRows) -> PackedRows | WideRows:
    """The rows of a block with integer ids, packed unless an id is negative or has more than PACKED_BITS bits."""
    xp = module_of(rows.source)  # one thread packs before all others read
    low, high = xp.minimum(rows.source, rows.target), xp.maximum(rows.source, rows.target)
    largest = order.largest(high)
    self_loops = kernels.total(low == high)
    read = len(low) + rows.left_out.rows
    if len(low) and (int(low.min()) < 0 or order.bits(largest + 1) > PACKED_BITS):
        return WideRows(number, rows.source, rows.target, read, self_loops, rows.left_out)
    low <<= PACKED_BITS
    low |= high
    return PackedRows(number, low, largest, read, self_loops, rows.left_out)


def unpack(block: PackedRows | WideRows | BlockEdges, space: MemorySpace) -> BlockEdges:
    """The distinct edges of a block: the block itself if it was cleaned."""
    if isinstance(block, BlockEdges):
        return block
    return clean(block.number, IdRows(*_columns(block), block.left_out), space)


def _columns(block: PackedRows | WideRows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Both ids of each row."""
    if isinstance(block, WideRows):
        return block.source, block.target
    return block.keys >> PACKED_BITS, block.keys & ((1 << PACKED_BITS) - 1)


def facts_of(block: PackedRows | WideRows, every: int) -> PackedFacts:
    """The facts of a block, if it is packed with the smaller end of every `every`-th row.

    One of LARGER_ENDS sampled rows adds its larger end, too.
    """
    if isinstance(block, WideRows):
        return PackedFacts(len(block), WIDE, block.self_loops, np.zeros(0, np.int64))
    rows = kernels.to_host(block.keys[every // 2 :: every])
    larger = rows[::LARGER_ENDS] & ((1 << PACKED_BITS) - 1)
    sample = np.concatenate([rows >> PACKED_BITS, larger])
    return PackedFacts(len(block), block.largest, block.self_loops, sample)


_HIGH = (1 << PACKED_BITS) - 1


@dataclass(frozen=True)
class Keys(Payload):
    """Rows for one bucket. `len()` counts the keys and the bytes of the table, so that a table without keys is sent,
    too.
    """

    keys: NDArray[np.int64]
    """[rows] as in PackedRows, ascending, distinct, without self-loops."""

    present: NDArray[np.uint8]
    """[bytes] a bit for each id of the graph's range: 1 if it is an id of the sender's blocks."""

    def __len__(self) -> int:
        return len(self.keys) + len(self.present)


def number_packed(blocks: Sequence[PackedRows]) -> tuple[BucketIds, BucketEdges]:
    """The only bucket of a graph, from the packed rows of all its blocks. Takes a table over the range of ids.

    Reads and writes about 90 bytes a row, most of them to sort. Raises OutOfRoom for more than 2^31 - 2 edges.
    """
    span = max(block.largest for block in blocks) + 1
    keys = _distinct([block.keys for block in blocks])
    low, high = _ends(keys)
    del keys
    present = _present(low, high, span)
    proper = low != high
    low, high = low[proper], high[proper]
    sent = sum(len(block) - block.self_loops for block in blocks)
    return _numbered(0, np.array([0, span]), present, low, high, sent)


def number_wide(blocks: Sequence[PackedRows | WideRows]) -> tuple[BucketIds, BucketEdges]:
    """The only bucket of a graph, from the rows of all its blocks, whose ids may be any integers.

    Sorts all ids, and then the rows of their dense numbers. Takes up to 32 bytes of memory a row beside the blocks.
    Raises OutOfRoom for more than `order.MAX_CODES` vertices or 2^31 - 2 edges.
    """
    ids = _distinct([column for block in blocks for column in _columns(block)])
    order.check_codes(len(ids))
    keys = _distinct([_numbered_keys(ids, *_columns(block)) for block in blocks])
    low, high = _ends(keys)
    del keys
    proper = low != high
    low, high = low[proper], high[proper]
    check_edges(0, len(low))
    highs, (high,) = order.encode(high)
    sent = sum(len(block) - block.self_loops for block in blocks)
    return BucketIds(0, ids, {}), BucketEdges(0, bucket_starts([len(ids)]), low, high, highs, sent - len(low))


def _numbered_keys(ids: NDArray[np.int64], source: NDArray[np.int64], target: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows packed as in PackedRows, with the positions of their ids in `ids`."""
    ends = order.lookup(ids, source), order.lookup(ids, target)
    keys: NDArray[np.int64] = np.minimum(*ends).astype(np.int64)
    keys <<= PACKED_BITS
    keys |= np.maximum(*ends)
    return keys


def send_keys(sender: int, blocks: Sequence[PackedRows], splitters: NDArray[np.int64], span: int) -> Bundle[Keys]:
    """Blocks → buckets: the rows of some blocks, each to the bucket of its smaller id.

    `splitters` [buckets - 1] are the first ids of all buckets but the first, `span` is the number of ids in the range.
    """
    keys = _distinct([block.keys for block in blocks])
    low, high = _ends(keys)
    present = np.packbits(_present(low, high, span))
    keys = keys[low != high]
    del low, high
    first = np.asarray(splitters << PACKED_BITS, like=keys)
    cuts = [0, *kernels.to_host(np.searchsorted(keys, first)).tolist(), len(keys)]
    parts = {b: Keys(keys[start:stop], present) for b, (start, stop) in enumerate(pairwise(cuts))}
    return bundle(sender, parts)


def number_keys(
    bucket: int, splitters: NDArray[np.int64], span: int, parts: Mapping[int, Keys]
) -> tuple[BucketIds, BucketEdges]:
    """One bucket, from the rows of all blocks. Takes a table over the range of ids.

    Raises OutOfRoom for more than 2^31 - 2 edges.
    """
    found = list(parts.values())
    bits = found[0].present.copy()
    for part in found[1:]:
        bits |= part.present
    present = np.unpackbits(bits)[:span].view(np.bool_)
    runs = [part.keys for part in found if len(part.keys)] or [found[0].keys]
    keys = runs[0] if len(runs) == 1 else _distinct(runs)
    low, high = _ends(keys)
    del keys
    bounds = np.concatenate([[0], np.minimum(splitters, span), [span]])
    return _numbered(bucket, bounds, present, low, high, sum(map(len, runs)))


def _numbered(
    bucket: int, bounds: NDArray[np.int64], present: NDArray[np.bool_], low: Any, high: Any, sent: int
) -> tuple[BucketIds, BucketEdges]:
    """A bucket from its distinct edges, whose ends are ids; `sent` rows became these edges.

    `bounds` [buckets + 1] are the first ids of the buckets, and the end of the range. `present` tells which ids of the
    range are vertices.
    """
    check_edges(bucket, len(low))
    code = np.cumsum(present, dtype=np.int32)  # of an id that is a vertex: 1 more than its dense number
    before = kernels.to_host(code[np.asarray(np.maximum(bounds - 1, 0), like=code)])
    starts = np.where(bounds > 0, before, 0).astype(np.int64)
    first, last = int(bounds[bucket]), int(bounds[bucket + 1])
    ids = np.flatnonzero(present[first:last])
    if first:
        ids += first
    if len(low) and (starts[-1] < len(present) or bucket):
        code -= np.int32(1)
        low, high = code[low], code[high]
        low -= np.int32(starts[bucket])
    highs, (high,) = order.encode(high)
    return BucketIds(bucket, ids, {}), BucketEdges(bucket, starts, low, high, highs, sent - len(low))


def _distinct(runs: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    keys = np.concatenate(runs)
    keys.sort()
    return keys[order.heads(keys)]


def _ends(keys: NDArray[np.int64]) -> tuple[Any, Any]:
    """The smaller and the larger id of each row, int32."""
    return (keys >> PACKED_BITS).astype(np.int32), (keys & _HIGH).astype(np.int32)


def _present(low: Any, high: Any, span: int) -> NDArray[np.bool_]:
    """[span] whether each id is an end of a row."""
    present = np.zeros(span, np.bool_, like=low)
    present[low] = True
    present[high] = True
    return present
