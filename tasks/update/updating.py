"""λ and the order of peeling after a batch of insertions and deletions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels.cpu.update import ADDED, REMOVED, changed_triangles, descend, leave_out, level_ends, merge, replay
from ...kernels.graph import Topology
from ...kernels.runtime.sizes import SizedArrays
from .order import Order

MOST = 2**62
"""Triangles without a budget."""
MOST_TIME = 2**31 - 2
"""Times are renumbered without gaps before an update could exceed this."""


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
    most = MOST if most_triangles is None else most_triangles
    ends = level_ends(order.lam, order.time)
    if ends.max(initial=0) + edges.edges + added.edges > MOST_TIME:
        order = order.with_dense_times()
        ends = level_ends(order.lam, order.time)
    union = merge(edges, (order.lam, order.time, order.count, order.remainder), removed, added)
    rows = kernels.adjacency(union.edges)
    looked = 0
    if len(union.removed):
        triples, found = changed_triangles(union.edges, rows, union.mark, REMOVED, union.removed)
        looked = _within(most, found)
        looked = _within(most, looked + descend(union, rows, triples, ends, most - looked))
    falls = np.empty((0, 3), np.int32)
    if added.edges:
        triples, found = changed_triangles(union.edges, rows, union.mark, ADDED, union.added)
        looked = _within(most, looked + found)
        falls, found = replay(union, rows, triples, len(ends) - 1, most - looked)
        looked = _within(most, looked + found)
    after, values, origin, changed, change = leave_out(union, order.lam, falls)
    return Updated(after, Order(*values), origin, changed, change, looked)


def _within(most: int, looked: int) -> int:
    """The triangles looked at, if they are at most `most`. Raises OverBudget."""
    if looked > most:
        raise OverBudget(looked)
    return looked
