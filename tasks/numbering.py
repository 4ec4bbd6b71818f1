"""Blocks → buckets: every vertex gets a dense number, every edge comes to the bucket of its smaller end, once.

A bucket is a range of the id space. Its vertices have the dense numbers starts[b] … starts[b + 1] - 1 in id order, so
dense numbers ascend with ids over all buckets, and from here on ids are needed only for the output.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .. import kernels
from ..kernels.graph import MAX_LOCAL_EDGES
from ..kernels.held import Held
from . import identity, order
from .blocks import BlockEdges, LocalEdges
from .errors import InternalError, OutOfRoom
from .identity import Ids, Put
from .messages import Bundle, bundle
from .order import Ints
from .ways import distinct_edges


@dataclass(frozen=True)
class BucketIds(Held):
    """The vertices of one bucket."""

    bucket: int

    ids: Ids
    """[vertices] ascending, distinct."""

    asked: Mapping[int, NDArray[np.int32]]
    """Block → positions in `ids` of the ids it sent, in its order."""

    in_both: int = 0
    """Ids that are in both columns, if blocks tell which column each is in."""

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class Pairs(Held):
    """Edges on their way to the bucket of their low end. `len()` counts them."""

    low: Ints
    """[edges] dense number of the smaller end."""

    high: Ints
    """[edges] dense number of the larger end; sorted by (low, high), distinct."""

    ways: NDArray[np.uint8] | None = None
    """[edges] where each leads, as in `tasks.ways`; None of an undirected graph."""

    def __len__(self) -> int:
        return len(self.low)


@dataclass(frozen=True)
class BucketEdges(Held):
    """The distinct edges whose smaller end lies in a bucket, sorted by (low, high): the rows this bucket publishes."""

    bucket: int

    starts: NDArray[np.int64]
    """[buckets + 1] first dense number of each bucket; the last one is the number of vertices in all."""

    low: NDArray[np.int32]
    """[edges] smaller end, as a position among this bucket's vertices."""

    high: NDArray[np.int32]
    """[edges] larger end, as a position in `highs`."""

    highs: Ints
    """[distinct larger ends] dense numbers, ascending."""

    duplicates: int
    """Edges that came from more than one block, counted once less than they came."""

    ways: NDArray[np.uint8] | None = None
    """[edges] where each leads, as in `tasks.ways`; None of an undirected graph."""

    @property
    def first(self) -> int:
        """Dense number of this bucket's first vertex."""
        return int(self.starts[self.bucket])

    @property
    def vertices(self) -> int:
        """Vertices of this bucket."""
        return int(self.starts[self.bucket + 1]) - self.first

    @property
    def all_vertices(self) -> int:
        """Vertices of the graph."""
        return int(self.starts[-1])

    def __len__(self) -> int:
        return len(self.low)


@dataclass(frozen=True)
class SidedIds(Held):
    """Ids on their way to their bucket, with the columns that they are in. `len()` counts them."""

    ids: Ids

    sides: NDArray[np.uint8]
    """[ids] as in BlockEdges."""

    def __len__(self) -> int:
        return len(self.ids)


def send_ids(block: BlockEdges, splitters: Ids) -> Bundle[Ids | SidedIds]:
    """Block → buckets: the ids that fall in each bucket's range."""
    cuts = identity.split(block.ids, splitters)
    parts: dict[int, Ids | SidedIds] = {}
    for b in range(len(cuts) - 1):
        own = identity.part(block.ids, cuts[b], cuts[b + 1])
        parts[b] = own if block.sides is None else SidedIds(own, block.sides[cuts[b] : cuts[b + 1]])
    return bundle(block.number, parts)


def number_ids(bucket: int, kind: identity.Kind, put: Put, parts: Mapping[int, Ids | SidedIds]) -> BucketIds:
    """The distinct ids of one bucket, from those each block sent; `put` as for `read_block`."""
    if any(isinstance(part, SidedIds) for part in parts.values()):
        return _number_sided(bucket, parts)
    if not parts:
        return BucketIds(bucket, identity.no_ids(kind, put), {})
    ids, positions = identity.merge(list(parts.values()))
    return BucketIds(bucket, ids, dict(zip(parts, positions, strict=True)))


def _number_sided(bucket: int, parts: Mapping[int, SidedIds]) -> BucketIds:
    ids, positions = identity.merge([part.ids for part in parts.values()])
    sides = np.zeros_like(positions[0], dtype=np.uint8, shape=len(ids))
    for place, part in zip(positions, parts.values(), strict=True):
        sides[place] |= part.sides
    return BucketIds(bucket, ids, dict(zip(parts, positions, strict=True)), int(np.count_nonzero(sides == 3)))


def bucket_starts(sizes: Sequence[int]) -> NDArray[np.int64]:
    """First dense number of each bucket and, last, the number of vertices: [buckets + 1], from the vertices of each."""
    return order.offsets(np.array(sizes, np.int64))


def answer_numbers(ids: BucketIds, starts: NDArray[np.int64]) -> Bundle[Ints]:
    """Bucket → blocks: the dense numbers of the ids each block sent."""
    first, vertices = int(starts[ids.bucket]), int(starts[-1])
    return bundle(ids.bucket, {block: order.shifted(asked, first, vertices) for block, asked in ids.asked.items()})


def without_questions(ids: BucketIds) -> BucketIds:
    """The vertices of a bucket, when all blocks have their answers."""
    return replace(ids, asked={})


def send_pairs(block: LocalEdges, starts: NDArray[np.int64], answers: Mapping[int, Ints]) -> Bundle[Pairs]:
    """Block → buckets: its edges in dense numbers, each to the bucket of its low end."""
    numbers = join_answers(answers, block.vertices, order.shifted(block.low[:0], 0, int(starts[-1])))
    low, high = numbers[block.low], numbers[block.high]
    cuts = split_by_bucket(low, starts)
    return bundle(
        block.number,
        {
            b: Pairs(low[own], high[own], None if block.ways is None else block.ways[own])
            for b, own in enumerate(map(slice, cuts[:-1], cuts[1:]))
        },
    )


def merge_pairs(bucket: int, starts: NDArray[np.int64], put: Put, parts: Mapping[int, Pairs]) -> BucketEdges:
    """The distinct edges of one bucket, from those each block sent; `put` as for `read_block`.

    Raises OutOfRoom for more than 2^31 - 2 of them: rows of more would wrap.
    """
    first, vertices = int(starts[bucket]), int(starts[bucket + 1] - starts[bucket])
    none = order.shifted(put(np.zeros(0, np.int32)), 0, int(starts[-1]))
    low = np.concatenate([part.low for part in parts.values()] or [none])
    high = np.concatenate([part.high for part in parts.values()] or [none])
    sent = len(low)
    low -= first
    ways = [part.ways for part in parts.values() if part.ways is not None]
    found = None
    if ways:
        low, high, found = distinct_edges(low, high, np.concatenate(ways), vertices, int(starts[-1]))
    else:
        low, high = order.distinct_pairs(low, high, vertices, int(starts[-1]), merge=True)
    if len(low) > MAX_LOCAL_EDGES:
        raise OutOfRoom(
            f"bucket {bucket} has {len(low):,} edges, over the {MAX_LOCAL_EDGES:,} allowed; raise partitioning.count"
        )
    highs, (code,) = order.encode(high)
    return BucketEdges(bucket, starts, low.astype(np.int32, copy=False), code, highs, sent - len(low), found)


def split_by_bucket(numbers: Ints, starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where ascending dense numbers part into buckets: [buckets + 1] positions, on the host."""
    return kernels.to_host(np.searchsorted(numbers, np.asarray(starts, like=numbers)))


def join_answers(answers: Mapping[int, Ints], asked: int, none: Ints) -> Ints:
    """The answers of all buckets to one ascending list of questions, in its order (buckets are ranges, in order);
    `none` if nothing was asked.
    """
    parts = [answers[b] for b in sorted(answers)]
    if sum(map(len, parts)) != asked:
        raise InternalError(f"asked about {asked} vertices, got {sum(map(len, parts))} answers")
    if len(parts) == 1:
        return parts[0]
    return np.concatenate([none, *parts])
