"""Build a block piece by piece, with its entries in files: for entries that do not fit memory while they are sorted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....kernels.chunked import Chunk, cut_chunks
from ....kernels.graph import InRows
from ....kernels.runtime.sizes import Allocator
from ...ids import order
from ...ids.order import Ints
from ..block import Block, Entries, build_block
from ..program import View

PIECE_BYTES = 64
"""Memory of an entry while its piece is sorted, with a weight."""


def build_block_in_pieces(
    group: int,
    groups: int,
    vertices: int,
    number: Ints,
    parts: Sequence[Entries],
    directed: bool,
    view: View,
    allocator: Allocator,
    most_entries: int,
) -> Block:
    """The block that `build_block` makes of all `parts`, with about `most_entries` entries in memory at once.

    `number` [own] must be consecutive. Entries are first put into pieces, which are ranges of rows, then each piece is
    sorted: an external bucket sort, which reads and writes each entry twice, in sequence. Arrays of entries are from
    the `allocator`. Raises OutOfRoom for 2^31 distinct sources.
    """
    first = int(number[0]) if len(number) else 0
    most_entries = max(most_entries, sum(map(len, parts)) >> 13)  # numbers of pieces are int16
    lengths = np.zeros(len(number), np.int64)
    seen = np.zeros(vertices, np.bool_)
    seen[first : first + len(number)] = True
    for part in _slices(parts, most_entries):
        lengths += np.bincount(part.target - first, minlength=len(number))
        seen[part.source] = True
    sources = np.flatnonzero(seen).astype(number.dtype)
    order.check_codes(len(sources))
    position = np.cumsum(seen, dtype=np.int32) - np.int32(1)
    del seen
    offsets = order.offsets(lengths)
    pieces = cut_chunks(offsets, most_entries)
    weighted = any(part.weight is not None for part in parts)
    put = _put_into_pieces(parts, pieces, first, int(offsets[-1]), number.dtype, weighted, allocator, most_entries)

    source = allocator.allocate(int(offsets[-1]), np.int32)
    weight = allocator.allocate(int(offsets[-1]), np.float64) if weighted else None
    times = allocator.allocate(int(offsets[-1]), np.uint8) if view == "either" and directed else None
    kept, stop = np.zeros(len(number), np.int64), 0
    for piece in pieces:
        own = number[piece.first : piece.last]
        block = build_block(group, groups, vertices, own, put.at(_range(piece)), directed, view)
        start, stop = stop, stop + len(block)
        source[start:stop] = position[block.sources][block.rows.source]
        kept[piece.first : piece.last] = np.diff(block.rows.offsets)
        if weight is not None:
            weight[start:stop] = block.rows.weight
        if times is not None:
            times[start:stop] = block.times
    rows = InRows(order.offsets(kept), source[:stop], None if weight is None else weight[:stop])
    mutual = not (directed and view == "in")
    found = None if times is None else times[:stop]
    return Block(group, vertices, view, number, rows, sources, groups == 1 and mutual, mutual, found)


def _range(piece: Chunk) -> Any:
    return slice(piece.begin, piece.end)


def _slices(parts: Sequence[Entries], most: int) -> Iterator[Entries]:
    """The entries of all parts, in order, at most `most` at once."""
    for part in parts:
        for start in range(0, len(part), most):
            yield part.at(slice(start, start + most))


def _put_into_pieces(
    parts: Sequence[Entries],
    pieces: Sequence[Chunk],
    first: int,
    entries: int,
    kind: np.dtype[Any],
    weighted: bool,
    allocator: Allocator,
    most: int,
) -> Entries:
    """All entries by piece; in each piece in their order."""
    weight: NDArray[np.float64] | None = allocator.allocate(entries, np.float64) if weighted else None
    put = Entries(allocator.allocate(entries, kind.type), allocator.allocate(entries, kind.type), weight)
    starts = np.array([piece.first for piece in pieces], np.int64)
    after = [piece.begin for piece in pieces]
    for part in _slices(parts, most):
        at = np.searchsorted(starts, part.target - first, side="right") - 1
        by, cuts = order.group(at.astype(np.int16), len(pieces))
        for k, (begin, end) in enumerate(zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True)):
            if end > begin:
                own, to = part.at(by[begin:end]), slice(after[k], after[k] + end - begin)
                put.source[to], put.target[to] = own.source, own.target
                if put.weight is not None and own.weight is not None:
                    put.weight[to] = own.weight
                after[k] += end - begin
    return put
