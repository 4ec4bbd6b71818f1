"""λ of the new graph: from the changes, or from nothing where that is less work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ...kernels.graph import Topology
from ...kernels.runtime.threads import kernel_threads
from ...tasks.update.merging import Change
from ...tasks.update.order import Order
from ...tasks.update.updating import OverBudget, update_order
from ...tasks.update.whole import order_from_nothing
from ..monitor.events import Events
from ..results.result import Result
from .reading import edge_column

BUDGET = 0.2
"""Share of the triangles of the earlier result that an update may look at before it gives up."""
MOST_CHANGED = 0.2
"""Share of the edges that may be changed for an update to be tried."""

Way = Literal["changes", "whole"]


@dataclass(frozen=True)
class Decision:
    """How λ is found, and why."""

    way: Way
    reason: str
    most_triangles: int | None = None
    """Triangles that an update may look at; None for no limit."""


@dataclass(frozen=True)
class FoundLambda:
    """The edges of the new graph, in the numbering of the change, with their values."""

    edges: Topology
    support: NDArray[np.int32]
    order: Order
    touched: NDArray[np.bool_]
    """[edges] true for added edges, and where support or λ differ from those of the earlier result."""
    changed: int | None
    """Edges of both graphs whose λ differs."""
    triangles: int
    decision: Decision


def decide(change: Change, base: Result, support: NDArray[np.int32], always: bool) -> Decision:
    """Whether to find λ from the changes. `support` [edges of the earlier result] are their triangles.

    An update looks at least at the triangles of all changed edges. Those of removed edges are known. Added edges are
    expected to have as many each as the removed ones, or as the mean edge if none is removed.
    """
    if always:
        return Decision("changes", "nightly.incremental is always")
    edges, triangles = max(len(support), 1), base.manifest.counts.triangles or 0
    share = change.size / edges
    if share > MOST_CHANGED:
        return Decision("whole", f"{share:.0%} of the edges changed, over {MOST_CHANGED:.0%}")
    most = int(BUDGET * triangles)
    lost = int(support[change.removed].sum(dtype=np.int64))
    mean = lost / change.lost if change.lost else 3 * triangles / edges
    least = round(lost + mean * change.added.edges)
    if least > most:
        return Decision("whole", f"the changed edges are in about {least:,} triangles, over the budget of {most:,}")
    return Decision(
        "changes", f"{share:.2%} of the edges changed, in about {least:,} triangles; the budget is {most:,}", most
    )


def find_lambda(
    events: Events, base: Result, change: Change, order: Order | None, decision: Decision, threads: int
) -> FoundLambda:
    """λ and the order of the new graph. `order` is that of the earlier result; None if it is not known."""
    before = edge_column(base, "support")
    spent = 0
    if decision.way == "changes" and order is not None:
        try:
            with events.stage("update", 0), kernel_threads(threads):
                made = update_order(change.before, order, change.removed, change.added, decision.most_triangles)
        except OverBudget as over:
            spent = over.triangles
            decision = Decision("whole", f"the update looked at {spent:,} triangles and was given up: over its budget")
            events.emit("update_given_up", triangles=spent, most=decision.most_triangles)
        else:
            known = made.origin >= 0
            support = made.support_change.copy()
            support[known] += before[made.origin[known]]
            touched = made.changed | (made.support_change != 0)
            changed = int(np.count_nonzero(made.changed & known))
            return FoundLambda(made.edges, support, made.order, touched, changed, made.triangles, decision)
    with events.stage("bound", 0), kernel_threads(threads):
        edges, origin = change.after()
        support, found = order_from_nothing(edges)
        known = origin >= 0
        touched = ~known
        rows = origin[known]
        touched[known] = (before[rows] != support[known]) | (edge_column(base, "lambda")[rows] != found.lam[known])
    return FoundLambda(edges, support, found, touched, None, spent, decision)
