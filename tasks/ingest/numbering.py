"""Blocks → buckets: number the vertices densely and send each edge, once, to the bucket of its smaller end.

A bucket is a range of the id space. Its vertices have the dense numbers starts[b] … starts[b + 1] - 1 in id order, so
dense numbers ascend with ids over all buckets. After this step ids are needed only for the output.

`ids_of` and `numbers_of` look up the ids of dense numbers, and the dense numbers of ids.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ... import kernels
from ...kernels.graph import MAX_LOCAL_EDGES
from ...kernels.runtime.sizes import SizedArrays
from ..device import MemorySpace
from ..errors import InternalError, OutOfRoom
from ..ids import id_types, identity, order
from ..ids.identity import Ids
from ..ids.order import Ints
from ..inputs.formats.form import Repeats
from ..messages import Bundle, Payload, bundle
from .blocks import BlockEdges, LocalEdges
from .directions import distinct_edges
from .weights import Combined, combine_rows


@dataclass(frozen=True)
class BucketIds(SizedArrays):
    """The vertices of one bucket."""

    bucket: int

    ids: Ids
    """[vertices] ascending, distinct."""

    asked: Mapping[int, NDArray[np.int32]]
    """Block → positions in `ids` of the ids that it sent, in its order. The block is sent the numbers of these ids."""

    in_both: int = 0
    """Number of ids in both columns, if blocks recorded columns."""

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class Pairs(Payload):
    """Edges that a block sends to the bucket of their low end. `len()` is the number of edges."""

    low: Ints
    """[edges] dense number of the smaller end."""

    high: Ints
    """[edges] dense number of the larger end. Edges are sorted by (low, high), distinct unless they have weights."""

    ways: NDArray[np.uint8] | None = None
    """[edges] direction bits (see `tasks.ingest.directions`); None for an undirected graph."""

    weight: NDArray[np.float64] | None = None
    """[edges] None if edges have no weights."""

    def __len__(self) -> int:
        return len(self.low)


@dataclass(frozen=True)
class BucketEdges(SizedArrays):
    """The distinct edges whose smaller end lies in one bucket, sorted by (low, high): the rows that the bucket
    publishes.
    """

    bucket: int

    starts: NDArray[np.int64]
    """[buckets + 1] first dense number of each bucket, then the number of vertices of the graph."""

    low: NDArray[np.int32]
    """[edges] smaller end, as a position in this bucket's vertices."""

    high: NDArray[np.int32]
    """[edges] larger end, as a position in `highs`."""

    highs: Ints
    """[distinct larger ends] dense numbers, ascending."""

    duplicates: int
    """Received edges beyond the first of each distinct edge."""

    ways: NDArray[np.uint8] | None = None
    """[edges] direction bits (see `tasks.ingest.directions`); None for an undirected graph."""

    weight: NDArray[np.float64] | None = None
    """[arcs] one weight for each direction bit of each edge, UP before DOWN; [edges] for an undirected graph; None if
    edges have no weights.
    """

    refused: tuple[int, ...] = ()
    """Dense numbers of the ends of the first edge whose rows have no common weight, and the number of these rows."""

    @property
    def first(self) -> int:
        """Dense number of this bucket's first vertex."""
        return int(self.starts[self.bucket])

    @property
    def vertices(self) -> int:
        """Number of vertices of this bucket."""
        return int(self.starts[self.bucket + 1]) - self.first

    @property
    def all_vertices(self) -> int:
        """Number of vertices of the graph."""
        return int(self.starts[-1])

    def __len__(self) -> int:
        return len(self.low)


@dataclass(frozen=True)
class SidedIds(SizedArrays):
    """Ids that a block sends to their bucket, with the columns that they are in. `len()` is the number of ids."""

    ids: Ids

    sides: NDArray[np.uint8]
    """[ids] 1, 2 or 3, as in BlockEdges."""

    def __len__(self) -> int:
        return len(self.ids)


def send_ids(block: BlockEdges, splitters: Ids) -> Bundle[Ids | SidedIds]:
    """Block → buckets: the ids in each bucket's range."""
    cuts = identity.split(block.ids, splitters)
    parts: dict[int, Ids | SidedIds] = {}
    for b in range(len(cuts) - 1):
        own = identity.part(block.ids, cuts[b], cuts[b + 1])
        parts[b] = own if block.sides is None else SidedIds(own, block.sides[cuts[b] : cuts[b + 1]])
    return bundle(block.number, parts)


def number_ids(
    bucket: int, kind: identity.Kind, space: MemorySpace, threads: int, parts: Mapping[int, Ids | SidedIds]
) -> BucketIds:
    """The distinct ids of one bucket, from the ids that each block sent.

    Positions of strings are placed in `space`, and so is an empty result. Up to `threads` threads merge strings: one
    bucket can have most of them, since buckets get about equally many edges.
    """
    if any(isinstance(part, SidedIds) for part in parts.values()):
        return _number_sided(bucket, space, threads, parts)
    if not parts:
        return BucketIds(bucket, identity.no_ids(kind, space), {})
    ids, positions = identity.merge(list(parts.values()), space, threads)
    return BucketIds(bucket, ids, dict(zip(parts, positions, strict=True)))


def _number_sided(bucket: int, space: MemorySpace, threads: int, parts: Mapping[int, SidedIds]) -> BucketIds:
    ids, positions = identity.merge([part.ids for part in parts.values()], space, threads)
    sides = np.zeros_like(positions[0], dtype=np.uint8, shape=(len(ids),))
    for position, part in zip(positions, parts.values(), strict=True):
        sides[position] |= part.sides
    return BucketIds(bucket, ids, dict(zip(parts, positions, strict=True)), int(np.count_nonzero(sides == 3)))


def bucket_starts(sizes: Sequence[int]) -> NDArray[np.int64]:
    """`BucketEdges.starts` [buckets + 1], from the number of vertices of each bucket."""
    return order.offsets(np.array(sizes, np.int64))


def answer_numbers(ids: BucketIds, starts: NDArray[np.int64]) -> Bundle[Ints]:
    """Bucket → blocks: the dense numbers of the ids that each block sent."""
    first, vertices = int(starts[ids.bucket]), int(starts[-1])
    return bundle(ids.bucket, {block: order.shifted(asked, first, vertices) for block, asked in ids.asked.items()})


def without_requests(ids: BucketIds) -> BucketIds:
    """The vertices of a bucket without `asked`, after all blocks have been answered."""
    return replace(ids, asked={})


def send_pairs(block: LocalEdges, starts: NDArray[np.int64], answers: Mapping[int, Ints]) -> Bundle[Pairs]:
    """Block → buckets: the edges as dense numbers, each to the bucket of its low end."""
    numbers = join_answers(answers, block.vertices, order.shifted(block.low[:0], 0, int(starts[-1])))
    low, high = numbers[block.low], numbers[block.high]
    cuts = split_by_bucket(low, starts)
    return bundle(
        block.number,
        {
            b: Pairs(
                low[own],
                high[own],
                None if block.ways is None else block.ways[own],
                None if block.weight is None else block.weight[own],
            )
            for b, own in enumerate(map(slice, cuts[:-1], cuts[1:]))
        },
    )


def merge_pairs(
    bucket: int,
    starts: NDArray[np.int64],
    space: MemorySpace,
    repeats: Repeats | None,
    parts: Mapping[int, Pairs],
) -> BucketEdges:
    """The distinct edges of one bucket, from the edges that each block sent. An empty result is placed in `space`.

    `repeats` is the rule for the weights of repeated rows; None for edges without weights. Raises OutOfRoom for more
    than 2^31 - 2 edges, whose row numbers would overflow int32.
    """
    first, vertices = int(starts[bucket]), int(starts[bucket + 1] - starts[bucket])
    none = order.shifted(space.place(np.zeros(0, np.int32)), 0, int(starts[-1]))
    low = np.concatenate([part.low for part in parts.values()] or [none])
    high = np.concatenate([part.high for part in parts.values()] or [none])
    sent = len(low)
    low -= first
    ways = [part.ways for part in parts.values() if part.ways is not None]
    found: NDArray[np.uint8] | None = None
    weight: NDArray[np.float64] | None = None
    refused: tuple[int, ...] = ()
    if repeats is not None:
        weights = [part.weight for part in parts.values() if part.weight is not None]
        all_ways = np.concatenate(ways) if ways else None
        combined = combine_rows(low, high, all_ways, np.concatenate([np.zeros(0), *weights]), vertices, repeats)
        low, high, found, weight = combined.low, combined.high, combined.ways, combined.weight
        refused = _with_numbers(combined, first)
    elif ways:
        low, high, found = distinct_edges(low, high, np.concatenate(ways), vertices, int(starts[-1]))
    else:
        low, high = order.distinct_pairs(low, high, vertices, int(starts[-1]))
    check_edges(bucket, len(low))
    highs, (code,) = order.encode(high)
    low = low.astype(np.int32, copy=False)
    return BucketEdges(bucket, starts, low, code, highs, sent - len(low), found, weight, refused)


def check_edges(bucket: int, edges: int) -> None:
    """Raise OutOfRoom for more than 2^31 - 2 edges of a bucket, whose row numbers would overflow int32."""
    if edges > MAX_LOCAL_EDGES:
        raise OutOfRoom(
            f"bucket {bucket} has {edges:,} edges, over the {MAX_LOCAL_EDGES:,} allowed; raise partitioning.count"
        )


def _with_numbers(found: Combined, first: int) -> tuple[int, ...]:
    """`BucketEdges.refused` of the rows of a bucket whose first vertex has the dense number `first`."""
    if not found.refused:
        return ()
    at, rows = found.refused
    return int(found.low[at]) + first, int(found.high[at]), rows


def split_by_bucket(numbers: Ints, starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Cut ascending dense numbers by bucket: positions [buckets + 1], on the host."""
    return kernels.to_host(np.searchsorted(numbers, np.asarray(starts, like=numbers)))


def join_answers(answers: Mapping[int, Ints], asked: int, none: Ints) -> Ints:
    """Concatenate the answers of all buckets for an ascending list of `asked` vertices, in the order of the list.

    `none` is an empty array of the answers' type. Raises InternalError if an answer is missing.
    """
    parts = [answers[b] for b in sorted(answers)]
    if sum(map(len, parts)) != asked:
        raise InternalError(f"asked about {asked} vertices, got {sum(map(len, parts))} answers")
    if len(parts) == 1:
        return parts[0]
    return np.concatenate([none, *parts])


def ids_of(numbers: Sequence[int], starts: NDArray[np.int64], id_type: pa.DataType, own: BucketIds) -> dict[int, Any]:
    """Dense number → id, for a message, of the vertices among `numbers` that are in a bucket."""
    first, last = int(starts[own.bucket]), int(starts[own.bucket + 1])
    here = [number for number in numbers if first <= number < last]
    return dict(zip(here, id_types.shown_ids(own.ids, [number - first for number in here], id_type), strict=True))


def numbers_of(wanted: Ids, starts: NDArray[np.int64], own: BucketIds) -> NDArray[np.int64]:
    """The dense number of each of the `wanted` ids that is in a bucket, and -1 for others."""
    position = id_types.positions_of(wanted, own.ids)
    return np.where(position >= 0, position + starts[own.bucket], -1)
