"""Values of vertex programs after a change of the graph, from the values before it, with little or no computation.

Levels of a search need undirected edges; weights make no difference. A vertex may have a different position in each
graph. `Change.own` gives the position in the change of each vertex of the first graph; `new_positions` gives the
position in the second graph of each vertex of the change.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...kernels.graph import Topology
from ..programs import Entries
from ..programs.local_runs import run_in_one_block
from ..programs.shipped.components import Components
from .merging import Change

Numbers = NDArray[np.int64]


def new_positions(change: Change) -> Numbers:
    """[vertices of the change] the position of each in the second graph, -1 for one that is gone."""
    return np.where(change.stays, np.cumsum(change.stays) - 1, -1)


def ranks_to_start(change: Change, rank: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks, float64 [vertices of the second graph], from which PageRank may start: the ranks before the change, scaled
    to the sum 1.

    `rank` are the ranks of the first graph. New vertices start with the mean rank.
    """
    place = new_positions(change)[change.own]
    vertices = int(np.count_nonzero(change.stays))
    found = np.full(vertices, 1 / max(vertices, 1))
    found[place[place >= 0]] = rank[place >= 0]
    total = found.sum()
    return found / total if total > 0 else found


def components_after(change: Change, component: Numbers) -> Numbers | None:
    """The smallest vertex of the component of each vertex, int64 [vertices of the second graph]; None if an edge or a
    vertex was removed, which may split components.

    `component` [vertices of the first graph] is the smallest vertex of each vertex's component before the change, as a
    position in the first graph. Added edges join whole components, so it is enough to search a graph whose vertices are
    the components before and whose edges are the added ones.
    """
    if change.lost or change.gone:
        return None
    found = np.arange(len(change.ids))
    found[change.own] = change.own[component]
    added = change.added
    ends = Entries(found[added.low].astype(np.int32), found[added.high].astype(np.int32))
    joined = run_in_one_block(Components(), ends, len(found), False).state["component"]
    return joined[found]


def search_after(change: Change, level: NDArray[np.int32], parent: Numbers) -> tuple[NDArray[np.int32], Numbers] | None:
    """Levels and parents of a breadth-first search in the second graph; None if a level may differ.

    `level` (-1 for unreached) and `parent` (-1 without) [vertices of the first graph] are the levels and parents before
    the change, parents as positions in the first graph. Levels stay the same if no added edge spans more than one level
    and no removed edge led to a parent. If an added edge connects a vertex with a vertex of the previous level, the
    latter becomes its parent if it is smaller than the old parent.
    """
    place = new_positions(change)
    if (place[change.own] < 0)[level >= 0].any():
        return None
    at = np.full(len(change.ids), -1, np.int32)
    at[change.own] = level
    before = np.full(len(change.ids), -1, np.int64)
    before[change.own] = np.where(parent < 0, -1, change.own[parent])
    lost = Topology(change.before.low[change.removed], change.before.high[change.removed], 0)
    if (before[lost.low] == lost.high).any() or (before[lost.high] == lost.low).any():
        return None
    low, high = change.added.low, change.added.high
    step = at[high] - at[low]
    if (np.abs(step) > 1).any() or ((at[low] < 0) != (at[high] < 0)).any():
        return None
    for end, other in ((high[step == 1], low[step == 1]), (low[step == -1], high[step == -1])):
        np.minimum.at(before, end, other.astype(np.int64))
    found = np.where(before < 0, -1, place[before])
    return at[change.stays], found[change.stays]
