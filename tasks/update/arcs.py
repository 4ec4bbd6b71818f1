"""Directions and weights of edges, before and after a batch of rows.

λ needs neither, so the tables of a result do not have them. The state of the result keeps them for programs that an
update runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...kernels.runtime.sizes import SizedArrays
from ..ids import identity
from ..ids.identity import Ids
from ..ingest import directions
from ..ingest.numbering import BucketEdges
from .merging import BatchCounts, NumberedGraph, union


@dataclass(frozen=True)
class EdgeArcs(SizedArrays):
    """The directions and weights of the edges of a graph, in the order of its edges."""

    ways: NDArray[np.uint8] | None
    """[edges] direction bits (see `tasks.ingest.directions`); None for an undirected graph."""
    weight: NDArray[np.float64] | None
    """[arcs] one weight for each direction bit of each edge, UP before DOWN; [edges] for an undirected graph; None if
    edges have no weights.
    """

    @classmethod
    def of(cls, edges: Sequence[BucketEdges], directed: bool, weighted: bool) -> EdgeArcs:
        """The directions and weights of the edges of all buckets. Buckets without edges may lack the arrays."""
        ways = [np.zeros(0, np.uint8), *(own.ways for own in edges if own.ways is not None)]
        weight = [np.zeros(0), *(own.weight for own in edges if own.weight is not None)]
        return cls(np.concatenate(ways) if directed else None, np.concatenate(weight) if weighted else None)


@dataclass(frozen=True)
class EdgeRows(SizedArrays):
    """The rows that a graph could have been read from: one for each edge in each of its directions, in any order."""

    ids: Ids
    """[vertices] ascending; includes vertices that no row has."""
    source: NDArray[np.int64]
    """[rows] position in `ids`; that of the smaller id in an undirected graph"""
    target: NDArray[np.int64]
    """[rows] position in `ids`"""
    weight: NDArray[np.float64] | None
    """[rows] None if edges have no weights."""

    @classmethod
    def of(cls, graph: NumberedGraph, arcs: EdgeArcs) -> EdgeRows:
        """The rows of a graph."""
        low, high = (np.asarray(end).astype(np.int64) for end in (graph.edges.low, graph.edges.high))
        if arcs.ways is None:
            return cls(graph.ids, low, high, arcs.weight)
        return cls(graph.ids, *directions.arcs(low, high, arcs.ways, arcs.weight))

    @property
    def alone(self) -> NDArray[np.int64]:
        """The vertices that no row has."""
        is_alone = np.ones(len(self.ids), np.bool_)
        is_alone[self.source] = is_alone[self.target] = False
        return np.flatnonzero(is_alone)

    def keys(self, number: NDArray[np.int32], vertices: int) -> NDArray[np.int64]:
        """[rows] a number for each pair of ends, with new numbers of vertices."""
        keys: NDArray[np.int64] = number[self.source].astype(np.int64) * vertices + number[self.target]
        return keys


def rows_after(before: EdgeRows, inserted: EdgeRows, deleted: EdgeRows) -> tuple[EdgeRows, BatchCounts]:
    """The rows of a graph after a batch, and how the rows of the batch met it.

    Deletions are applied before insertions. An inserted row that the graph already has gets the weight of the batch.
    The new graph has all vertices of `inserted`; it lacks other vertices of `deleted` that no row has. Raises OutOfRoom
    as `apply_batch` does.
    """
    ids, numbers = union([before.ids, inserted.ids, deleted.ids])
    own, new, old = numbers
    first, plus, minus = (
        rows.keys(at, len(ids)) for rows, at in zip((before, inserted, deleted), numbers, strict=True)
    )
    is_deleted, replaced = _among(plus, minus), _among(first, np.concatenate([minus, plus]))
    met, stays = first[replaced], ~replaced
    is_known = _among(plus, met)
    key = np.concatenate([first[stays], plus])
    weight = None
    if before.weight is not None:
        new_weight = np.zeros(0) if inserted.weight is None else inserted.weight  # nothing is inserted
        weight = np.concatenate([before.weight[stays], new_weight])
    source, target = np.divmod(key, max(len(ids), 1))
    kept = np.zeros(len(ids), np.bool_)
    kept[own] = True
    kept[old] = False
    kept[new] = kept[source] = kept[target] = True
    number = np.cumsum(kept) - 1
    counts = BatchCounts(
        present=int(np.count_nonzero(is_known & ~is_deleted)),
        absent=int(np.count_nonzero(~_among(minus, met))),
        in_both=int(np.count_nonzero(is_deleted)),
    )
    return EdgeRows(identity.take(ids, np.flatnonzero(kept)), number[source], number[target], weight), counts


def _among(keys: NDArray[np.int64], some: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether each key is among `some`, bool [keys]. Sorts only `some`, which are few, while `numpy.isin` would hash
    all keys.
    """
    if not len(some):
        return np.zeros(len(keys), np.bool_)
    ordered = np.sort(some)
    found: NDArray[np.bool_] = ordered[np.minimum(np.searchsorted(ordered, keys), len(ordered) - 1)] == keys
    return found
