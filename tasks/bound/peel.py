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
from numpy.typing import NDArray

from ... import kernels
from ...kernels.held import Held
from ..errors import InternalError
from ..subgraph import Subgraph
from .intervals import Intervals, intervals


@dataclass(frozen=True)
class Peeled(Held):
    """What peeling found."""

    intervals: Intervals
    levels: int
    """Levels at which edges left: the steps of this schedule."""
    evaluations: int
    """Edges that left: each is looked at once."""


def peel(
    subgraph: Subgraph, max_seconds: float | None = None, progress: Callable[[int, int], None] | None = None
) -> Peeled:
    """Peel the only partition of a run; `progress(level, edges left)` is called now and then.

    After `max_seconds` it stops after a level: an edge that is left has λ between the next level and its
    triangles left. Raises InternalError for a subgraph with ghosts.
    """
    if len(subgraph.ghost):
        raise InternalError(f"partition {subgraph.partition} has ghosts, so peeling it alone would be wrong")
    deadline = None if max_seconds is None else time.monotonic() + max_seconds
    topology = subgraph.topology
    peeling = kernels.peeling(topology, subgraph.support[subgraph.number])
    while peeling.left and (deadline is None or time.monotonic() < deadline):
        peeling.advance()
        if progress is not None:
            progress(peeling.level, peeling.left)
    low = peeling.low
    if not peeling.left:
        return Peeled(intervals(subgraph, low, low), peeling.levels, topology.edges)
    ends = remaining(low, peeling.count, peeling.level)
    return Peeled(intervals(subgraph, *ends), peeling.levels, topology.edges - peeling.left)


def remaining(
    low: NDArray[np.int32], count: NDArray[np.int32], level: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Both ends of λ where peeling stopped before `level`: edges that are left have a `count` of triangles."""
    unsettled = count >= 0
    return np.where(unsettled, level, low), np.where(unsettled, count, low)
