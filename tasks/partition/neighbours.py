"""Both directions of every edge, by bucket: what partitioners that follow the edges walk on, and how they tell each
other where their vertices are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels.held import Held
from .. import order
from ..errors import ClusterLost
from ..messages import Bundle, bundle
from ..numbering import BucketEdges, join_answers, split_by_bucket
from ..order import Ints

SLACK = 1.1
"""Partitions take at most so many times their equal share of the load."""


@dataclass(frozen=True)
class HalfEdges(Held):
    """Edges on their way to the bucket of their larger end. `len()` counts them."""

    low: Ints
    """[edges] dense number of the smaller end."""

    high: Ints
    """[edges] dense number of the larger end."""

    weight: NDArray[np.int32]
    """[edges]"""

    def __len__(self) -> int:
        return len(self.low)


@dataclass(frozen=True)
class Neighbours(Held):
    """The neighbours of one bucket's vertices, on the host."""

    bucket: int

    offsets: NDArray[np.int64]
    """[vertices + 1] where the neighbours of each start."""

    member: NDArray[np.int32]
    """[entries] position among this bucket's vertices, or after these, among `foreign`."""

    weight: NDArray[np.int32]
    """[entries] how much it costs to have the two apart."""

    load: NDArray[np.int64]
    """[vertices] what each takes of its partition's capacity."""

    first: int
    """Dense number of the first vertex."""

    foreign: Ints
    """[foreign vertices] dense numbers, ascending, of neighbours in other buckets."""

    asked: Mapping[int, NDArray[np.int32]]
    """Bucket → positions, ascending, of the vertices that have neighbours there."""

    @property
    def vertices(self) -> int:
        """Vertices of the bucket."""
        return len(self.load)


@dataclass(frozen=True)
class Parts(Held):
    """Where the vertices of one bucket are, and how a partitioner got there. `len()` counts them."""

    part: NDArray[np.int16]
    """[vertices] partitions in id order; -1 for none yet."""

    loads: NDArray[np.int64]
    """[partitions] what these take of each."""

    moved: int = 0
    """Vertices that changed in the last pass."""

    def __len__(self) -> int:
        return len(self.part)

    def digest(self) -> str:
        """Tells whether others are the same."""
        return blake2b(self.part.tobytes(), digest_size=16).hexdigest()

    def check(self, digest: str) -> None:
        """Raises ClusterLost if a task that was done again came to other Parts than those with this digest: edges would
        be sent to two owners.
        """
        if self.digest() != digest:
            raise ClusterLost(
                "a worker was lost, and another placed the vertices otherwise: have the same packages on all workers, "
                "and run again"
            )


def unit_weights(edges: BucketEdges) -> NDArray[np.int32]:
    """All edges of a bucket alike: int32 [edges]."""
    return np.broadcast_to(np.ones(1, np.int32), len(edges))


def send_half_edges(edges: BucketEdges, weight: NDArray[np.int32]) -> Bundle[HalfEdges]:
    """Bucket → buckets: the edges of weight > 0 whose larger end lies in another, to that."""
    low, code, highs = (kernels.to_host(values) for values in (edges.low, edges.high, edges.highs))
    buckets = len(edges.starts) - 1
    cuts = split_by_bucket(highs, edges.starts)
    target = np.repeat(np.arange(buckets, dtype=np.int16), np.diff(cuts))[code]
    target[weight == 0] = edges.bucket
    by_bucket, starts = order.group(target, buckets)
    parts = {}
    for b in range(buckets):
        if b != edges.bucket:
            rows = by_bucket[starts[b] : starts[b + 1]]
            parts[b] = HalfEdges(
                order.shifted(low[rows], edges.first, edges.all_vertices), highs[code[rows]], weight[rows]
            )
    return bundle(edges.bucket, parts)


def collect_neighbours(
    edges: BucketEdges, weight: NDArray[np.int32], load: NDArray[np.int64], parts: Mapping[int, HalfEdges]
) -> Neighbours:
    """The neighbours of one bucket's vertices; `weight` [edges] and `load` [vertices] as in Neighbours."""
    matters = np.flatnonzero(weight)
    low, code, highs = (kernels.to_host(values) for values in (edges.low, edges.high, edges.highs))
    low, high, weight = low[matters], highs[code[matters]], weight[matters]
    inner = np.flatnonzero((high >= edges.first) & (high < edges.first + edges.vertices))
    others = [parts[b] for b in sorted(parts)]
    here = order.shifted(low[inner], edges.first, edges.all_vertices)
    row = np.concatenate([low, (high[inner] - edges.first).astype(np.int32), *(_place(p, edges) for p in others)])
    number = np.concatenate([high, here, *(part.low for part in others)])
    pull = np.concatenate([weight, weight[inner], *(part.weight for part in others)])
    away = (number < edges.first) | (number >= edges.first + edges.vertices)
    foreign = order.distinct(number[away])
    member = np.empty(len(row), np.int32)
    member[~away] = number[~away] - edges.first
    member[away] = order.lookup(foreign, number[away]) + edges.vertices
    ascending = order.order_pairs(row, member, edges.vertices, edges.vertices + len(foreign))
    cuts = split_by_bucket(foreign, edges.starts)
    home = np.repeat(np.arange(len(cuts) - 1, dtype=np.int16), np.diff(cuts))
    asked = {
        b: order.distinct(row[away][home[member[away] - edges.vertices] == b])
        for b in np.flatnonzero(np.diff(cuts)).tolist()
    }
    offsets = order.offsets(np.bincount(row, minlength=edges.vertices))
    return Neighbours(
        edges.bucket, offsets, member[ascending], pull[ascending], kernels.to_host(load), edges.first, foreign, asked
    )


def _place(part: HalfEdges, edges: BucketEdges) -> NDArray[np.int32]:
    return (part.high - edges.first).astype(np.int32)


def answer_parts(neighbours: Neighbours, parts: Parts) -> Bundle[NDArray[np.int16]]:
    """Bucket → buckets: where the vertices are that have neighbours there."""
    return bundle(neighbours.bucket, {b: parts.part[asked] for b, asked in neighbours.asked.items()})


def all_labels(neighbours: Neighbours, parts: Parts, answers: Mapping[int, NDArray[np.int16]]) -> NDArray[np.int16]:
    """Where the vertices of a bucket and their neighbours elsewhere are: int16 [vertices and foreign vertices]."""
    foreign = join_answers(answers, len(neighbours.foreign), parts.part[:0])
    return np.concatenate([parts.part, foreign])


def loads_of(load: NDArray[np.int64], part: NDArray[np.int16], partitions: int) -> NDArray[np.int64]:
    """What vertices take of each partition, int64 [partitions]; those that are in none count nowhere."""
    placed = part >= 0
    return np.bincount(part[placed], load[placed], minlength=partitions).astype(np.int64)


def room_for(loads: NDArray[np.int64], total: int, buckets: int) -> tuple[int, NDArray[np.int64]]:
    """The capacity of a partition when all vertices take `total`, and what each of the buckets may add to each of them
    at once, beside what they have taken, `loads` [partitions]: int64 [partitions].
    """
    capacity = int(SLACK * total / len(loads)) + 1
    return capacity, np.maximum(capacity - loads, 0) // buckets
