"""λ of the new graph: from the changes, or from nothing where that is less work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....kernels.cpu.update import values_since
from ....kernels.graph import Topology
from ....kernels.runtime.threads import kernel_threads
from ....tasks.update.order import Order
from ....tasks.update.updating import OverBudget, update_order
from ....tasks.update.warm import warm_updates
from ....tasks.update.whole import order_from_nothing, supports_after
from ...monitor.events import Events
from ..reading import edge_column
from ..start import Start
from .deciding import Decision, supports_follow

MOST_LISTED = 6
"""Most entries of an update's lists for each edge of the graph, 72 bytes."""
LEAST_ROOM = 2**26
"""Entries that are allowed on any graph, 0.8 GB: the edges of small dense graphs are in many triangles each."""


@dataclass(frozen=True)
class Since:
    """The edges of the new graph and those of the earlier result."""

    origin: NDArray[np.int32]
    """[edges] row in the earlier result, -1 for an added edge."""
    changed: NDArray[np.bool_]
    """[edges] true for added edges, and where λ differs."""


@dataclass(frozen=True)
class FoundLambda:
    """The edges of the new graph, in the numbering of the change, with their values."""

    edges: Topology
    support: NDArray[np.int32]
    order: Order
    touched: NDArray[np.bool_]
    """[edges] true for added edges, and where support or λ differ from those of the earlier result."""
    since: Since | None
    """How the edges differ from those of the earlier result; None if λ was found from nothing."""
    changed: int | None
    """Edges of both graphs whose λ differs."""
    triangles: int
    decision: Decision


TYPES: Mapping[str, type[Any]] = {
    "Decision": Decision,
    "FoundLambda": FoundLambda,
    "Order": Order,
    "Since": Since,
    "Topology": Topology,
}
"""Name in files of a checkpoint → dataclass."""


def find_lambda(
    events: Events, start: Start, before: NDArray[np.int32], decision: Decision, threads: int
) -> FoundLambda:
    """λ and the order of the new graph. `before` [edges of the earlier result] are their supports."""
    change, spent = start.change, 0
    if decision.way == "changes" and start.order is not None:
        with events.stage("compile", 0):
            warm_updates(threads)
        try:
            with events.stage("update", 0), kernel_threads(threads):
                made = update_order(
                    *(change.before, start.order, change.removed, change.added, decision.most_work),
                    most_listed=max(MOST_LISTED * change.before.edges, LEAST_ROOM),
                    peels_rest=True,
                )
                support, touched, changed = values_since(before, made.origin, made.changed, made.support_change)
        except OverBudget as over:
            spent, most = over.triangles, decision.most_work
            events.emit("update_given_up", triangles=spent, work=over.work, expected=over.is_expected, most=most)
            when = "as its first changes told of" if over.is_expected else "after"
            why = f"the update was given up {when} a work of {over.work:,} triangles"
            why += f": its budget was {most:,}" if over.has_room else ", as its lists would take too much memory"
            decision = Decision("whole", why, expected=decision.expected)
        else:
            if made.peeled_from is not None:
                events.emit("rest_peeled", level=made.peeled_from, edges=made.peeled, of=made.edges.edges)
            since = Since(made.origin, made.changed)
            return FoundLambda(made.edges, support, made.order, touched, since, changed, made.triangles, decision)
    with events.stage("bound", 0), kernel_threads(threads):
        known = None
        if start.order is not None and supports_follow(change, start.base, before):
            edges, origin, known = supports_after(change.before, start.order, before, change.removed, change.added)
        else:
            edges, origin = change.after()
        support, found = order_from_nothing(edges, known)
        old = origin >= 0
        touched = ~old
        rows = origin[old]
        touched[old] = (before[rows] != support[old]) | (edge_column(start.base, "lambda")[rows] != found.lam[old])
    return FoundLambda(edges, support, found, touched, None, None, spent, decision)
