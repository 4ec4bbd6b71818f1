"""λ and the order of peeling after a batch of insertions and deletions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...kernels.graph import Topology
from ...kernels.runtime.sizes import SizedArrays
from ..bound.in_memory import find_lambda, find_triangles
from .order import Order, order_of


class OverBudget(Exception):
    """An update would look at more triangles than allowed. The full computation takes over."""

    def __init__(self, triangles: int) -> None:
        super().__init__(f"stopped after {triangles:,} triangles")
        self.triangles = triangles
        """Triangles looked at before the update stopped."""


@dataclass(frozen=True)
class Updated(SizedArrays):
    """The outcome of an update. Arrays have one entry for each edge after it."""

    edges: Topology
    """The edges after the batch, sorted by (low, high)."""

    order: Order
    """λ and the order of peeling of these edges."""

    origin: NDArray[np.int32]
    """[edges] the edge's number before the batch; -1 for an added edge."""

    changed: NDArray[np.bool_]
    """[edges] true where λ changed, and for added edges."""

    support_change: NDArray[np.int32]
    """[edges] the number of triangles gained less those lost; all triangles of an added edge."""

    triangles: int
    """Triangles looked at."""


def update_order(
    edges: Topology, order: Order, removed: NDArray[np.bool_], added: Topology, most_triangles: int | None = None
) -> Updated:
    """Remove the edges whose `removed` [edges] is true, and add others.

    `edges` and `added` are simple edges, low < high, sorted by (low, high); vertices are int32 numbers in any numbering
    that both share. No added edge may be among `edges`, even if it is removed. The number of vertices of `added` may be
    larger. Raises OverBudget if more than `most_triangles` triangles would be looked at.
    """
    kept = np.flatnonzero(~removed).astype(np.int32)
    vertices = max(edges.vertices, added.vertices)
    low, high = (np.concatenate([a[kept], b]) for a, b in ((edges.low, added.low), (edges.high, added.high)))
    by_pair = np.lexsort((high, low))
    origin = np.concatenate([kept, np.full(added.edges, -1, np.int32)])[by_pair]
    after = Topology(low[by_pair], high[by_pair], vertices)
    support, lam = _recomputed(after)
    if most_triangles is not None and support.sum() // 3 > most_triangles:
        raise OverBudget(most_triangles)
    old, _ = _recomputed(edges)
    known = origin >= 0
    change = support - np.where(known, old[origin] if edges.edges else 0, 0)
    changed = ~known
    changed[known] = lam[known] != order.lam[origin[known]]
    return Updated(after, order_of(after, lam), origin, changed, change.astype(np.int32), int(support.sum()) // 3)


def _recomputed(edges: Topology) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Support and λ of all edges, computed from nothing."""
    owned, subgraph = find_triangles(edges.low, edges.high, edges.vertices)
    support, lam = np.empty(edges.edges, np.int32), np.empty(edges.edges, np.int32)
    support[owned.row], lam[owned.row] = subgraph.support, find_lambda(subgraph)
    return support, lam
