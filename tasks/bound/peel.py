"""Peeling: a single partition to λ, level by level.

At level k every edge with at most k triangles left leaves with λ = k and takes its triangles along. The
level-synchronous form of Wang and Cheng ("Truss decomposition in massive networks", PVLDB 2012) as in PKT (Kabir and
Madduri, HPEC 2017).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ... import kernels
from ..errors import InternalError
from ..subgraph import Subgraph
from .intervals import Intervals, intervals

COMPACT_AT = 0.85
"""Rows are compacted when this share of their edges is left. Measured from 0.7 to 0.9: flat."""


@dataclass(frozen=True)
class Peeled:
    """What peeling found."""

    intervals: Intervals
    levels: int
    """Levels at which edges left: the steps of this schedule."""
    evaluations: int
    """Edges that left: each is looked at once."""


def peel(
    subgraph: Subgraph, max_seconds: float | None = None, progress: Callable[[int, int], None] | None = None
) -> Peeled:
    """Peel the only partition of a run; `progress(level, edges left)` is called after each level.

    After `max_seconds` it stops between two levels: an edge that is left has λ between the next level and its
    triangles left. Raises InternalError for a subgraph with ghosts.
    """
    if len(subgraph.ghost):
        raise InternalError(f"partition {subgraph.partition} has ghosts, so peeling it alone would be wrong")
    deadline = None if max_seconds is None else time.monotonic() + max_seconds
    topology = subgraph.topology
    rows = topology.adjacency
    count = subgraph.support[subgraph.number]
    low = np.zeros(topology.edges, np.int32)
    live, cascade = kernels.live(topology), kernels.cascade(topology)
    left = in_rows = topology.edges
    level = levels = 0
    while left and (deadline is None or time.monotonic() < deadline):
        frontier, least = kernels.below(live, count, level + 1)
        if not len(frontier):
            level = least
            continue
        fallen, _ = cascade.run(rows, count, frontier, np.array([level + 1], np.int32), None)
        low[fallen] = level
        left -= len(fallen)
        level += 1
        levels += 1
        if left < COMPACT_AT * in_rows:
            rows, in_rows = kernels.compact(rows, count >= 0), left
        if progress is not None:
            progress(level, left)
    unsettled = count >= 0
    high = np.where(unsettled, count, low)
    low[unsettled] = level
    return Peeled(intervals(subgraph, low, high), levels, topology.edges - left)
