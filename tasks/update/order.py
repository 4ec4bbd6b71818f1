"""The order of a peeling: which edges fell before which others, and the counts that an update needs.

An edge is *later* than another if its (λ, time) is larger. The order is valid when each edge has at most λ triangles
whose two other edges are later. With the counts of `Order` this certifies λ: the edges of λ ≥ k are in at least k
triangles of such edges, and of any set of edges the first one is in at most λ triangles of the set.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels.cpu.update import KEY_BITS, first_counts, level_counts
from ...kernels.graph import Topology
from ...kernels.runtime.sizes import SizedArrays


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
        return replace(self, time=_places(np.argsort(self.keys()), self.lam))


def order_of(edges: Topology, lam: NDArray[np.int32]) -> Order:
    """An order of peeling of edges whose λ is known, int32 [edges].

    Each level is peeled by itself, all levels at the same time: an edge falls when at most λ of its triangles are left
    in which no other edge has a lower level. Reads each edge's triangles three times. Vertices may be numbered in any
    way. `lam` must be exact: the cascade would not end with every edge otherwise; raises ValueError then.
    """
    rows = kernels.adjacency(edges)
    count = level_counts(edges, rows, lam)
    left, first = count.copy(), np.flatnonzero(count <= lam).astype(np.int32)
    threshold = np.arange(1, int(lam.max(initial=0)) + 2, dtype=np.int32)
    fallen, _ = kernels.cascade(edges, rows).run(rows, left, first, threshold, lam)
    if len(fallen) != edges.edges or (count < lam).any():
        raise ValueError("the given λ is not that of the edges")
    order = Order(lam, _places(fallen, lam), count, count)
    return Order(lam, order.time, count, first_counts(edges, rows, order.keys()))


def find_violation(edges: Topology, order: Order) -> int | None:
    """The first edge whose entry in the order is wrong; None if the order is valid, which proves λ.

    Counts all triangles twice.
    """
    keys = order.keys()
    _, place, uses = np.unique(keys, return_index=True, return_inverse=False, return_counts=True)
    wrong = (order.lam < 0) | (order.time < 0)
    wrong[place[uses > 1]] = True
    if wrong.any():
        return int(np.argmax(wrong))
    rows = kernels.adjacency(edges)
    count, remainder = level_counts(edges, rows, order.lam), first_counts(edges, rows, keys)
    wrong |= (count < order.lam) | (remainder > order.lam)
    wrong |= (count != order.count) | (remainder != order.remainder)
    return int(np.argmax(wrong)) if wrong.any() else None


def _places(fallen: NDArray[Any], lam: NDArray[np.int32]) -> NDArray[np.int32]:
    """The place of each edge among those of its λ, for all edges in the order in which they fell."""
    by_level = fallen[np.argsort(lam[fallen], kind="stable")]
    sizes = np.bincount(lam[by_level]) if len(lam) else np.zeros(0, np.int64)
    place = np.empty(len(lam), np.int32)
    place[by_level] = np.arange(len(lam)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return place
