"""Peeling: a single partition to λ, level by level.

At level k every edge with at most k triangles left leaves with λ = k and takes its triangles along. The
level-synchronous form of Wang and Cheng ("Truss decomposition in massive networks", PVLDB 2012) as in PKT (Kabir and
Madduri, HPEC 2017).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels.held import Held
from ..errors import InternalError
from ..messages import Bundle, bundle
from ..subgraph import Subgraph
from .intervals import Intervals, intervals


@dataclass(frozen=True)
class Peeled(Held):
    """How far peeling has come, between two levels; the state that a later run needs of a partition."""

    count: NDArray[np.int32]
    """[local edges] triangles left; negative for edges that left."""

    low: NDArray[np.int32]
    """[local edges] λ of those that left."""

    level: int
    """The next level."""

    levels: int
    """Levels at which edges left: the steps of this schedule."""

    left: int
    """Edges that are left."""

    @property
    def evaluations(self) -> int:
        """Edges that left: each is looked at once."""
        return len(self.low) - self.left

    @property
    def exchanges(self) -> int:
        """0: there is no other partition."""
        return 0

    def kept(self, subgraph: Subgraph, mail: Mapping[int, Any]) -> Peeled:
        """What is to be kept: all."""
        return self

    def resumed(self, subgraph: Subgraph) -> tuple[Peeled, Bundle[Any]]:
        """The state, and no mail."""
        return self, bundle(subgraph.partition, {})


def peel(
    subgraph: Subgraph,
    before: Peeled | None = None,
    seconds: float | None = None,
    progress: Callable[[int, int], None] | None = None,
    compact_rows: bool = False,
) -> Peeled:
    """Peel the only partition of a run, from the start or from where it was `before`.

    After `seconds` it stops after a level. `progress(level, edges left)` is called now and then. Raises InternalError
    for a subgraph with ghosts. `compact_rows` take less of a GPU's memory than others, and more time; from what one
    kind has come to, the other can go on.
    """
    if len(subgraph.ghost):
        raise InternalError(f"partition {subgraph.partition} has ghosts, so peeling it alone would be wrong")
    deadline = None if seconds is None else time.monotonic() + seconds
    start = kernels.compact_peeling if compact_rows else kernels.peeling
    if before is None:
        peeling = start(subgraph.topology, subgraph.support[subgraph.number])
    else:
        peeling = start(subgraph.topology, before.count, before.low, before.level, before.levels)
    while peeling.left:
        peeling.advance()
        if progress is not None:
            progress(peeling.level, peeling.left)
        if deadline is not None and time.monotonic() >= deadline:
            break
    return Peeled(peeling.count, peeling.low, peeling.level, peeling.levels, peeling.left)


def peel_intervals(subgraph: Subgraph, peeled: Peeled) -> Intervals:
    """The interval of each edge: one that is left has λ between the next level and its triangles left."""
    low, count = peeled.low, peeled.count
    if not peeled.left:
        return intervals(subgraph, low, low)
    standing = count >= 0
    return intervals(subgraph, np.where(standing, peeled.level, low), np.where(standing, count, low))
