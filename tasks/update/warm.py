"""Compiles the kernels of updates, or loads them from the cache, before a stage is timed."""

from __future__ import annotations

import numpy as np

from ...kernels.cpu.update import among
from ...kernels.graph import Topology
from ..device import MemorySpace
from .dynamic import DynamicRows
from .order import order_of
from .updating import update_order

CLIQUE = 6
"""Vertices of the clique that is updated."""


def warm_updates() -> None:
    """Call the kernels of an update and of orders: one edge of a clique comes, and another goes."""
    low, high = (end.astype(np.int32) for end in np.triu_indices(CLIQUE, 1))
    before, added = Topology(low[1:], high[1:], CLIQUE), Topology(low[:1], high[:1], CLIQUE)
    order = order_of(before, np.full(before.edges, CLIQUE - 3, np.int32))  # λ without one edge
    among(np.arange(2), np.arange(1))
    # Arrays of a state are read-only, another type to the compiler: the order, and edges without new vertices.
    for frozen in ((), (order.lam, order.time, order.count, order.remainder), (before.low, before.high)):
        for array in frozen:
            array.flags.writeable = False
        update_order(before, order, np.arange(before.edges) == 0, added)


def warm_dynamic_rows(space: MemorySpace = MemorySpace.HOST) -> None:
    """Call the kernels of rows that take batches."""
    low, high = (space.place(end.astype(np.int32)) for end in np.triu_indices(CLIQUE, 1))
    rows = DynamicRows(CLIQUE, space=space)
    rows.insert(low, high)
    rows.delete(low[:1], high[:1])
    rows.supports_of(low[1:], high[1:])
