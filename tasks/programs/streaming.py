"""Blocks whose entries do not fit the memory in which a program runs.

`place_block` and `place_entries` decide where the entries of a block lie: in memory, in pinned host memory that is
streamed past a GPU, or in mapped files. `StreamCost` predicts what a superstep that reads all entries costs on a GPU if
some of them are streamed there. `collect_block_in_pieces` builds a block piece by piece, with its entries in files,
where they do not fit memory while they are sorted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...kernels import chunked
from ...kernels import programs as gathers
from ...kernels.chunked import Chunk, cut_chunks
from ...kernels.chunked.streaming import BUFFERS, chunk_bytes, kept_bytes
from ...kernels.graph import InRows
from ...kernels.runtime.device import free_bytes
from ...kernels.runtime.sizes import NUMPY_ALLOCATOR, Allocator
from ..device import MemorySpace, move_arrays
from ..ids import order
from ..ids.order import Ints
from ..partition import RangePartitioner
from .block import Entries, GraphBlock, build_block
from .program import Program, View

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
) -> GraphBlock:
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
    return GraphBlock(group, vertices, view, number, rows, sources, groups == 1 and mutual, mutual, found)


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


def collect_block_in_pieces(
    group: int,
    vertices: int,
    home: RangePartitioner,
    directed: bool,
    view: View,
    weighted: bool,
    parts: Mapping[int, Entries],
    allocator: Allocator,
    most_bytes: int,
) -> GraphBlock:
    """The same block as of `collect_block`. Entries take about `most_bytes` in memory at once; see
    `build_block_in_pieces`.
    """
    ends = np.concatenate(([0], home.cuts, [vertices]))
    number = order.shifted(np.arange(ends[group], ends[group + 1]), 0, vertices)
    senders = [parts[b] for b in sorted(parts)]
    most = max(1, most_bytes // PIECE_BYTES)
    block = build_block_in_pieces(group, home.partitions, vertices, number, senders, directed, view, allocator, most)
    if weighted and block.rows.weight is None:
        return replace(block, rows=replace(block.rows, weight=np.zeros(0)))
    return block


LINK_RATE = 55e9
"""Bytes a second from pinned host memory to a GPU (PCIe 5, 16 lanes; measured on the host of an H200)."""
PINNING_SECONDS = 0.3 / 2**30
"""Seconds a byte of copying entries to new pinned memory, once for a block."""
ENTRY_SECONDS = 7.3e-12
"""Seconds an entry of a gather on an H200 over 2^22 vertices, whose values fit the L2 cache."""
ENTRY_SECONDS_MORE = 0.8e-12
"""Seconds that each doubling of the vertices adds to ENTRY_SECONDS. Measured: 8.5e-12 s at 2^24, 10.5e-12 s at 2^26.

docs/engineering/programs.md has the times.
"""
CACHED_VERTICES = 2**22
VERTEX_SECONDS = 1e-10
"""Seconds a vertex of the arrays' operations in a superstep of PageRank on an H200."""
STEP_SECONDS = 5e-4
"""Seconds of a superstep beside these: launches, and the transfer of sums."""


@dataclass(frozen=True)
class StreamCost:
    """Costs of one block on one GPU."""

    entries: int
    vertices: int
    """Own vertices."""
    entry_bytes: int
    """4, or 12 with weights."""
    topology_bytes: int
    """GPU memory for entries."""
    longest_row: int = 0
    """Entries of the longest row."""
    link_rate: float = LINK_RATE
    """Bytes a second over the link."""

    @property
    def whole_bytes(self) -> int:
        """Bytes of all entries."""
        return self.entry_bytes * self.entries

    @property
    def streamed(self) -> bool:
        """Whether entries are streamed."""
        return self.whole_bytes > self.topology_bytes

    @property
    def _chunk(self) -> int:
        """Bytes of the largest chunk."""
        return max(chunk_bytes(self.topology_bytes), self.entry_bytes * self.longest_row)

    @property
    def kept(self) -> int:
        """Bytes of the chunks that stay on the GPU."""
        return kept_bytes(self.whole_bytes, self._chunk, self.topology_bytes)

    @property
    def copied(self) -> int:
        """Bytes over the link in each superstep but the first, in which it is all."""
        return max(0, self.whole_bytes - self.kept - BUFFERS * self._chunk) if self.streamed else 0

    @property
    def step_seconds(self) -> float:
        """Seconds of a superstep of PageRank: copies run beside the gather, and not beside the rest."""
        doublings = max(0.0, math.log2(max(self.vertices, 1) / CACHED_VERTICES))
        gather = self.entries * (ENTRY_SECONDS + ENTRY_SECONDS_MORE * doublings)
        return max(self.copied / self.link_rate, gather) + VERTEX_SECONDS * self.vertices + STEP_SECONDS

    def seconds(self, supersteps: int) -> float:
        """Seconds of these many supersteps of PageRank, the first of which brings all entries."""
        first = (self.whole_bytes - self.copied) / self.link_rate
        return first + supersteps * self.step_seconds

    @property
    def pinning_seconds(self) -> float:
        """Seconds of copying the entries to pinned memory, before the first program of a block."""
        return PINNING_SECONDS * self.whole_bytes if self.streamed else 0.0


VERTEX_BYTES = 128
"""GPU memory of an own vertex: its row, numbers and degrees, and the state and scratch arrays of a program."""
FILL = 0.9
"""Share of the free GPU memory that blocks may take."""
TRANSPOSING_BYTES = 24
"""Scratch of an entry without a weight while rows are transposed on the GPU."""
BUILD_BYTES = 56
"""GPU memory of an edge, with that of its rows, while rows of both directions are built on the GPU."""
WEIGHTED_BUILD_BYTES = 104
"""The same with weights."""
LINKS_BYTES = 40
"""Scratch of an entry while links are counted on the GPU."""


def entry_bytes(rows: InRows) -> int:
    """Bytes of an entry."""
    return 4 if rows.weight is None else 12


def topology_bytes(program: Program, block: GraphBlock) -> int:
    """GPU memory of the entries of a block while the program runs, with the scratch of its preparation."""
    entry = entry_bytes(block.rows)
    if program.combine == "links":
        entry += LINKS_BYTES
    elif not block.symmetric and (program.senders == "changed" or program.weighs):
        entry += entry + TRANSPOSING_BYTES
    return entry * len(block)


def share_of_room(blocks: Sequence[GraphBlock], space: MemorySpace, most_bytes: int | None = None) -> int | None:
    """The GPU memory for the entries of each of several blocks in one process: of `most_bytes`, or of what is free."""
    if space is MemorySpace.HOST:
        return None
    if most_bytes is None:
        own = sum(len(block.number) for block in blocks)
        most_bytes = max(0, int(FILL * free_bytes()) - VERTEX_BYTES * own)
    return most_bytes // len(blocks)


def place_entries(
    parts: Mapping[int, Entries], vertices: int, weighted: bool, on_gpu: bool, most_bytes: int | None
) -> dict[int, Entries]:
    """Move mirrored entries to the memory in which their block is built.

    It is built on the GPU, if there is one, provided that all arrays fit there during the building and the entries of
    the finished block take at most `most_bytes`. All other entries stay in host memory.
    """
    edges = sum(len(part) for part in parts.values())
    space = MemorySpace.HOST
    if on_gpu and all(part.mirrored for part in parts.values()):
        built = (WEIGHTED_BUILD_BYTES if weighted else BUILD_BYTES) * edges + VERTEX_BYTES * vertices
        kept = 2 * edges * (12 if weighted else 4)
        if built <= FILL * free_bytes() and (most_bytes is None or kept <= most_bytes):
            space = MemorySpace.DEVICE
    return {sender: move_arrays(part, space) for sender, part in parts.items()}


def place_block(
    program: Program,
    block: GraphBlock,
    space: MemorySpace,
    most_bytes: int | None = None,
    allocator: Allocator | None = None,
) -> GraphBlock:
    """The block with its arrays in `space`. On a GPU entries take at most about `most_bytes`, or all free memory.

    Entries that take more stay in pinned host memory and are streamed. A program that counts links then runs on the
    CPU, since it holds arrays of edges. Entries in mapped files stay there, and are read in sequence; the `allocator`
    then gives the memory of rows by source.
    """
    if isinstance(block.rows, chunked.ChunkedRows):
        return block
    if block.on_device:  # built there, with room for the entries alone
        links = program.combine == "links" and LINKS_BYTES * len(block) > FILL * free_bytes()
        return block.placed(MemorySpace.HOST) if links or space is MemorySpace.HOST else block
    if space is MemorySpace.HOST:
        if not chunked.is_mapped(block.rows):
            return block
        return replace(block, rows=chunked.rows_in_files(block.rows, allocator=allocator or NUMPY_ALLOCATOR))
    room = share_of_room([block], space, most_bytes) or 0
    if topology_bytes(program, block) <= room:
        return block.placed(space)
    if program.combine == "links":
        return place_block(program, block, MemorySpace.HOST, None, allocator)
    return replace(move_arrays(block, space), rows=gathers.stream_rows(block.rows, room))
