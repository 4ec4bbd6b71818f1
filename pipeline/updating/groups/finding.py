"""The dense groups of the new graph: from those of the earlier result, or from nothing where that is less work."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ....kernels.cpu.nest import nest_with_forest
from ....kernels.runtime.threads import kernel_threads
from ....tasks import dense
from ....tasks.dense.one_bucket import dn_edges_among, tree_of, triangles_by_id
from ....tasks.dense.regrouping import ChangedEdges, Regrouped, regroup
from ....tasks.device import MemorySpace
from ....tasks.update.merging import NumberedGraph
from ...monitor.events import Events
from ...stages.exchange import exchange
from ...stages.extracting import Groups, record_of, sum_in_one_task
from ...stages.task_engine import TaskEngine
from ..search.finding_lambda import FoundLambda
from ..start import Start
from .earlier import EarlierTables

MOST_SEARCHED = 0.3
"""Share of the edges that a search from the earlier groups may take. Beyond it, groups are found from nothing.

Both take as long at 0.35 (cnr-2000, ego-Twitter). To learn the share takes a tenth of a search from nothing.
"""


def find_groups(
    engine: TaskEngine,
    events: Events,
    threads: int,
    start: Start,
    tables: EarlierTables | None,
    found: FoundLambda,
    graph: NumberedGraph,
) -> tuple[Groups, NDArray[np.int32]]:
    """The groups of `graph`, the new one, whose λ was `found`; and its forest, as in `State`.

    The event `grouped` tells how many edges were searched, and how many DN-graphs are those of before. Raises
    InputError for damage of the earlier result.
    """
    lam, starts = found.order.lam, np.array([0, len(graph.ids)], np.int64)
    with events.stage("extract", 0):
        with kernel_threads(threads):
            made = _from_earlier(start, tables, found) or _from_nothing(graph, lam)
            tree = tree_of(made.nested, made.edges, starts)
            highest = int(lam.max(initial=0))
            groups = dense.collect_groups(tree, highest, {})
            kept = dn_edges_among(graph.edges, lam, tree, groups, made.triangles < 0)
        sums = sum_in_one_task(engine, [kept], starts, highest, MemorySpace.HOST)
        (counted,) = exchange(engine, "triangles", sums, dense.collect_triangles, [(groups,)])
        known = triangles_by_id(groups, made.triangles)
        triangles = np.where(known < 0, counted, known)
    events.emit("grouped", searched=made.searched, kept=int(np.count_nonzero(made.triangles >= 0)))
    return Groups([groups], [triangles], highest, record_of(engine, [groups])), made.forest


def _from_nothing(graph: NumberedGraph, lam: NDArray[np.int32]) -> Regrouped:
    nested, is_forest = nest_with_forest(graph.edges.low, graph.edges.high, lam, len(graph.ids))
    edges = np.bincount(nested.edge, minlength=len(nested)).astype(np.int64)
    unknown = np.full(len(nested), -1, np.int64)
    return Regrouped(nested, edges, unknown, np.flatnonzero(is_forest).astype(np.int32), len(lam))


def _from_earlier(start: Start, tables: EarlierTables | None, found: FoundLambda) -> Regrouped | None:
    """The components in the numbering of the new graph; None if they are to be found from nothing."""
    change, since = start.change, found.since
    if since is None or tables is None or start.order is None or start.forest is None:
        return None
    edges = ChangedEdges(
        change.before,
        start.order.lam,
        start.forest,
        change.removed,
        found.edges,
        found.order.lam,
        since.origin,
        since.changed,
    )
    made = regroup(edges, tables.groups.result(), int(MOST_SEARCHED * found.edges.edges))
    if made is None or change.stays.all():
        return made
    number = np.cumsum(change.stays, dtype=np.int32) - np.int32(1)
    nested = made.nested
    return replace(made, nested=replace(nested, vertex=nested.vertex[change.stays], least=number[nested.least]))
