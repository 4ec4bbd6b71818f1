"""The order of a peeling: which edges fell before which others, and the counts that an update needs.

An edge is *later* than another if its (λ, time) is larger. The order is valid when each edge has at most λ triangles
whose two other edges are later. With the counts of `Order` this certifies λ: each edge of λ ≥ k is in at least k
triangles of such edges; and in any set of edges, the first edge in the order is in at most as many triangles of the set
as its λ.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels.graph import KEY_BITS, Topology
from ...kernels.runtime.sizes import SizedArrays

COMPACT_AFTER = 0.15
"""Rows are compacted when this share of their edges has fallen."""


@dataclass(frozen=True)
class Order(SizedArrays):
    """λ and the order of peeling. All arrays are int32 [edges], in the order of the edges: sorted by (low, high)."""

    lam: NDArray[np.int32]
    """λ."""

    time: NDArray[np.int32]
    """The place in the order among the edges of the same λ: ≥ 0, distinct, with gaps."""

    count: NDArray[np.int32]
    """Triangles whose two other edges have at least the edge's λ; at least λ."""

    remainder: NDArray[np.int32]
    """Triangles whose two other edges are later; at most λ."""

    def keys(self) -> NDArray[np.int64]:
        """λ and time in one number, int64 [edges], which ascends with the order."""
        return (self.lam.astype(np.int64) << KEY_BITS) | self.time

    def with_dense_times(self) -> Order:
        """The same order, with times from 0 without gaps in each level."""
        return replace(self, time=places(np.argsort(self.keys()), self.lam))


def order_of(edges: Topology, lam: NDArray[np.int32]) -> Order:
    """An order of peeling of edges whose λ is known, int32 [edges].

    Each level is peeled by itself, many levels at the same time: an edge falls when at most λ of its triangles are left
    in which no other edge has a lower level. Takes about as long as a peeling and a count of all triangles. Vertices
    may be numbered in any way. Raises ValueError if `lam` is not that of the edges.
    """
    from ...kernels.cpu.update import order_counts  # loads Numba

    ranked, number = _by_degree(edges)
    level = lam[number]
    count, _ = order_counts(ranked, level.astype(np.int64) << KEY_BITS)
    fallen, remainder = _fallen(ranked, level, count)
    if (count < level).any() or len(fallen) < edges.edges:
        raise ValueError("the given λ is not that of the edges")
    time = places(fallen, level)
    return Order(lam, *(_back(values, number) for values in (time, count, remainder)))


def find_violation(edges: Topology, order: Order) -> int | None:
    """The first edge whose entry in the order is wrong; None if the order is valid, which proves λ.

    Counts all triangles once.
    """
    from ...kernels.cpu.update import order_counts

    keys = order.keys()
    _, place, uses = np.unique(keys, return_index=True, return_counts=True)
    wrong = (order.lam < 0) | (order.time < 0)
    wrong[place[uses > 1]] = True
    ranked, number = _by_degree(edges)
    count, remainder = (_back(values, number) for values in order_counts(ranked, keys[number]))
    wrong |= (count < order.lam) | (remainder > order.lam)
    wrong |= (count != order.count) | (remainder != order.remainder)
    return int(np.argmax(wrong)) if wrong.any() else None


def _by_degree(edges: Topology) -> tuple[Topology, NDArray[np.signedinteger[Any]]]:
    """The edges with vertices in degree order, and the number of each in `edges`."""
    degree = np.bincount(np.concatenate([edges.low, edges.high]), minlength=edges.vertices)
    rank = np.empty(edges.vertices, np.int32)
    rank[np.argsort(degree, kind="stable")] = np.arange(edges.vertices, dtype=np.int32)
    ends = rank[edges.low], rank[edges.high]
    low, high = np.minimum(*ends), np.maximum(*ends)
    number = kernels.order_pairs(low, high, edges.vertices, edges.vertices)
    return Topology(low[number], high[number], edges.vertices), number


def _back(values: NDArray[np.int32], number: NDArray[np.signedinteger[Any]]) -> NDArray[np.int32]:
    found = np.empty_like(values)
    found[number] = values
    return found


def _fallen(
    edges: Topology, level: NDArray[np.int32], count: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """All edges that fall when each level is peeled, in the order of their fall, and [edges] the number of triangles of
    each edge whose other two edges fall later.
    """
    from ...kernels.cpu.peeling.cascade import Cascade

    left, rows = count.copy(), kernels.adjacency(edges)
    cascade = Cascade(edges, rows)
    remainder = cascade.firsts = np.zeros(edges.edges, np.int32)
    threshold = np.arange(1, int(level.max(initial=0)) + 2, dtype=np.int32)
    sizes = np.cumsum(np.bincount(level, minlength=1))
    fallen, first = [], 0
    while first < len(threshold):
        below = int(sizes[first - 1]) if first else 0
        stop = int(np.searchsorted(sizes, below + COMPACT_AFTER * (edges.edges - below), "right")) + 1
        weak = (level >= first) & (level < stop) & (count <= level)
        fallen.append(cascade.run(rows, left, np.flatnonzero(weak).astype(np.int32), threshold, level)[0])
        first = stop
        if first < len(threshold):
            rows = kernels.compact(rows, level >= first)
    return np.concatenate(fallen), remainder


def places(fallen: NDArray[Any], lam: NDArray[np.int32]) -> NDArray[np.int32]:
    """The place of each edge among those of its λ, int32 [edges], for all edges in the order in which they fell."""
    levels = kernels.take(lam, fallen)
    if (levels[1:] < levels[:-1]).any():
        ascending = np.argsort(levels, kind="stable")
        fallen, levels = fallen[ascending], levels[ascending]
    starts = np.searchsorted(levels, np.arange(levels[-1] + 2 if len(levels) else 1, dtype=np.int32)).astype(np.int32)
    place = np.empty(len(lam), np.int32)
    of_fallen = np.arange(len(lam), dtype=np.int32) - np.repeat(starts[:-1], np.diff(starts))
    kernels.store(place, fallen, of_fallen)
    return place
