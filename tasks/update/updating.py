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
"""Work without a budget."""
REPLAYED = 10
"""Work for a triangle that a replay looks at; any other one is a work of 1. One thread takes 80 to 250 ns for the
former and 9 to 23 ns for the latter (cnr-2000, uk-2007-05_100000, actor-collaboration).
"""
MOST_TIME = 2**31 - 2
"""Times are renumbered without gaps before an update could exceed this."""


class OverBudget(Exception):
    """An update would take more work than allowed. The full computation takes over."""

    def __init__(self, triangles: int, work: int) -> None:
        super().__init__(f"stopped after {triangles:,} triangles")
        self.triangles = triangles
        """Triangles looked at before the update stopped."""
        self.work = work
        """Its work until then."""


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

    work: int
    """The same, and each triangle that the replay looked at REPLAYED times."""


def update_order(
    edges: Topology, order: Order, removed: NDArray[np.bool_], added: Topology, most_work: int | None = None
) -> Updated:
    """Remove the edges whose `removed` [edges] is true, and add others.

    `edges` and `added` are simple edges, low < high, sorted by (low, high); vertices are int32 numbers in any numbering
    that both share. No added edge may be among `edges`, even if it is removed. The number of vertices of `added` may be
    larger. Raises OverBudget if the work would be more than `most_work`.
    """
    most = MOST if most_work is None else most_work
    ends = level_ends(order.lam, order.time)
    if ends.max(initial=0) + edges.edges + added.edges > MOST_TIME:
        order = order.with_dense_times()
        ends = level_ends(order.lam, order.time)
    union = merge(edges, (order.lam, order.time, order.count, order.remainder), removed, added)
    rows = kernels.adjacency(union.edges)
    looked, replayed = 0, 0
    if len(union.removed):
        triples, found = changed_triangles(union.edges, rows, union.mark, REMOVED, union.removed)
        looked = _within(most, found)
        looked = _within(most, looked + descend(union, rows, triples, ends, most - looked))
    falls = np.empty((0, 3), np.int32)
    if added.edges:
        triples, found = changed_triangles(union.edges, rows, union.mark, ADDED, union.added)
        looked = _within(most, looked + found)
        falls, replayed = replay(union, rows, triples, len(ends) - 1, (most - looked) // REPLAYED)
        _within(most, looked, replayed)
    after, values, origin, changed, change = leave_out(union, order.lam, falls)
    return Updated(after, Order(*values), origin, changed, change, looked + replayed, looked + REPLAYED * replayed)


def _within(most: int, looked: int, replayed: int = 0) -> int:
    """The triangles looked at before the replay, if the work is at most `most`. Raises OverBudget."""
    work = looked + REPLAYED * replayed
    if work > most:
        raise OverBudget(looked + replayed, work)
    return looked
