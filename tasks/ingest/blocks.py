"""Read one block of rows and clean it: count and drop self-loops and repeated edges, orient edges by id.

Strings are read part by part, and each part is coded as positions in its distinct strings, in bounded memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ... import kernels
from ...kernels.runtime.sizes import SizedArrays
from ..device import MemorySpace
from ..ids import identity, order
from ..ids.identity import Ids
from ..inputs.sources import InputBlock, Source
from .directions import DOWN, UP, distinct_edges
from .left_out import LeftOut
from .reading import IdRows, read_parts, read_rows
from .weights import Weight

PART_BYTES = 2**26
"""Bytes of text that are buffered before they are coded."""
GPU_PART_BYTES = 2**28
"""The same if a GPU codes them. They are buffered in its memory."""


class StringCodes:
    """The distinct strings of the two id columns of a block, and the columns as positions in them, in `space`. Mutable.

    Takes about three bytes of memory for each byte of PART_BYTES, and three for each byte of the distinct strings. With
    a GPU, takes as much of its memory for GPU_PART_BYTES, and 60 bytes for each string.
    """

    def __init__(self, space: MemorySpace = MemorySpace.HOST) -> None:
        self._space = space
        self._part_bytes = PART_BYTES if space is MemorySpace.HOST else GPU_PART_BYTES
        self._parts: list[IdRows] = []
        self._buffered_bytes = 0
        self._runs: list[pa.LargeStringArray] = []
        self._codes: list[tuple[NDArray[np.int32], NDArray[np.int32]]] = []
        self.left_out = LeftOut()
        """Rows that were left out of the parts added so far."""
        self._weights: list[Weight] = []

    def add(self, part: IdRows) -> None:
        """Append rows."""
        self.left_out += part.left_out
        if part.weight is not None:
            self._weights.append(part.weight)
        if self._space is MemorySpace.DEVICE:
            source, target = identity.place_strings(part.source), identity.place_strings(part.target)
            part = replace(part, source=source, target=target)
        self._parts.append(part)
        self._buffered_bytes += part.source.nbytes + part.target.nbytes
        if self._buffered_bytes >= self._part_bytes:
            self._code()

    def _code(self) -> None:
        columns = [part.source for part in self._parts] + [part.target for part in self._parts]
        half = len(self._parts)
        self._parts, self._buffered_bytes = [], 0
        ids, codes = identity.encode_all(columns, self._space)
        del columns
        if not len(ids):
            return
        self._runs.append(ids)
        self._codes.append((np.concatenate(codes[:half]), np.concatenate(codes[half:])))
        if sum(run.nbytes for run in self._runs[1:]) > self._runs[0].nbytes:
            self._merge()

    def _merge(self) -> None:
        ids, positions = identity.merge(self._runs, self._space)
        columns = (
            np.concatenate([position[code[end]] for position, code in zip(positions, self._codes, strict=True)])
            for end in range(2)
        )
        self._runs, self._codes = [ids], [(next(columns), next(columns))]

    @property
    def weight(self) -> Weight | None:
        """[rows] the weights of all parts; None if they have none."""
        return np.concatenate(self._weights) if self._weights else None

    def end(self) -> tuple[pa.LargeStringArray, NDArray[np.int32], NDArray[np.int32]]:
        """The distinct strings, ascending, and each column as positions in them (int32 [rows])."""
        if self._parts:
            self._code()
        if not self._runs:
            empty = self._space.place(np.zeros(0, np.int32))
            return identity.no_ids("string"), empty, empty
        if len(self._runs) > 1:
            self._merge()
        return self._runs[0], *self._codes[0]


SAMPLES = 256
"""Ids sampled per bucket. The driver holds all samples. The largest bucket is about a tenth larger than the mean."""


@dataclass(frozen=True)
class BlockEdges(SizedArrays):
    """The distinct edges of one block, as positions in the block's own ids. `len()` is the number of edges."""

    number: int
    """Number of the block."""

    ids: Ids
    """[ids] the ids of all rows, dropped self-loops included; ascending, distinct."""

    low: NDArray[np.int32]
    """[edges] position of the smaller end in `ids`."""

    high: NDArray[np.int32]
    """[edges] position of the larger end in `ids`. Edges are sorted by (low, high)."""

    rows: int
    """Rows read: edges + self_loops + duplicates + left_out.rows."""

    self_loops: int
    duplicates: int

    left_out: LeftOut
    """Rows with a null id, and rows that do not meet the condition."""

    sides: NDArray[np.uint8] | None = None
    """[ids] 1 for an id in the source column, 2 in the target column, 3 in both; None unless requested."""

    ways: NDArray[np.uint8] | None = None
    """[edges] direction bits (see `tasks.ingest.directions`); None for an undirected graph."""

    weight: Weight | None = None
    """[edges] None if edges have no weights. With weights a block has all rows except self-loops: repeated rows are
    combined in buckets, where all rows of an edge meet.
    """

    def __len__(self) -> int:
        return len(self.low)


@dataclass(frozen=True)
class LocalEdges(SizedArrays):
    """The edges of a block after its ids have been sent to buckets. `len()` is the number of edges."""

    number: int
    """Number of the block."""

    vertices: int
    """Number of ids in the block."""

    low: NDArray[np.int32]
    """[edges] as in BlockEdges."""

    high: NDArray[np.int32]
    """[edges] as in BlockEdges."""

    ways: NDArray[np.uint8] | None = None
    """[edges] as in BlockEdges."""

    weight: Weight | None = None
    """[edges] as in BlockEdges."""

    def __len__(self) -> int:
        return len(self.low)


def without_ids(block: BlockEdges) -> LocalEdges:
    """A block without its ids, which take most of its memory. They are not needed while buckets number them."""
    return LocalEdges(block.number, len(block.ids), block.low, block.high, block.ways, block.weight)


def read_block(source: Source, block: InputBlock, space: MemorySpace = MemorySpace.HOST) -> BlockEdges:
    """Read and clean one block. All arrays except strings are placed in `space`. Raises InputError as
    `reading.read_rows` does.
    """
    with_sides = source.bipartite == "refuse"
    if source.kind == "string":
        found = _read_strings(source, block, space, with_sides)
    else:
        found = clean(block.number, read_rows(source, block), space, with_sides, source.directed)
    if space is MemorySpace.HOST:
        pa.default_memory_pool().release_unused()  # Arrow would keep the memory it used for reading
    return found


def clean(
    number: int, rows: IdRows, space: MemorySpace = MemorySpace.HOST, with_sides: bool = False, directed: bool = False
) -> BlockEdges:
    """Clean the rows of one block. Integer ids, and positions of strings, are placed in `space`.

    `with_sides` records the columns that each id is in, `directed` the directions of each edge.
    """
    ids, first, second = identity.encode(space.place(rows.source), space.place(rows.target), space)
    return _edges(number, ids, first, second, rows.left_out, with_sides, directed, rows.weight)


def _read_strings(source: Source, block: InputBlock, space: MemorySpace, with_sides: bool) -> BlockEdges:
    codes = StringCodes(space)
    for part in read_parts(source, block):
        codes.add(part)
    ids, first, second = codes.end()
    return _edges(block.number, ids, first, second, codes.left_out, with_sides, source.directed, codes.weight)


def _edges(
    number: int,
    ids: Ids,
    first: NDArray[np.int32],
    second: NDArray[np.int32],
    left_out: LeftOut,
    with_sides: bool,
    directed: bool,
    weight: Weight | None,
) -> BlockEdges:
    """The block of rows whose ends `first` and `second` [rows] are positions in `ids`."""
    sides = None
    if with_sides:
        sides = np.zeros_like(first, dtype=np.uint8, shape=(len(ids),))
        sides[first] |= 1
        sides[second] |= 2
    low, high = np.minimum(first, second), np.maximum(first, second)
    ways = np.where(first < second, np.uint8(UP), np.uint8(DOWN)) if directed else None
    proper = low != high
    edges = kernels.total(proper)
    self_loops = len(low) - edges
    if self_loops:
        low, high = low[proper], high[proper]
        ways = None if ways is None else ways[proper]
        weight = None if weight is None else weight[proper]
    if weight is not None:
        by = order.order_pairs(low, high, len(ids), len(ids))
        low, high, weight = low[by], high[by], weight[by]
        ways = None if ways is None else ways[by]
    elif ways is None:
        low, high = order.distinct_pairs(low, high, len(ids), len(ids))
    else:
        low, high, ways = distinct_edges(low, high, ways, len(ids), len(ids))
    rows = len(first) + left_out.rows
    return BlockEdges(number, ids, low, high, rows, self_loops, edges - len(low), left_out, sides, ways, weight)


def sample_interval(rows: int, buckets: int) -> int:
    """The `every` of `sample_ids` for an input of `rows` rows: SAMPLES ids per bucket, no ids for a single bucket."""
    return max(1, rows // (SAMPLES * buckets)) if buckets > 1 else rows + 1


def sample_ids(block: BlockEdges, every: int) -> Ids:
    """Sample one id for every `every` rows that buckets get from this block: the low ends of its edges, and its ids.

    Blocks sampled with the same `every` are weighted by their rows.
    """
    edges = identity.take(block.ids, block.low[every // 2 :: every])
    return identity.to_host(identity.concatenate([edges, identity.sample(block.ids, every)]))


def choose_splitters(samples: Sequence[Ids], buckets: int) -> Ids:
    """The buckets - 1 ids, ascending, that cut the id space into ranges of about equally many rows. Ranges may be
    empty.
    """
    return identity.quantiles(identity.concatenate(samples), buckets)
