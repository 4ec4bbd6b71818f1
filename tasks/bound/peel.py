"""Peeling: λ of a single partition, level by level.

At level k, each edge with at most k remaining triangles is removed with its triangles, and has λ = k. This is the
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
from ...kernels.runtime.sizes import SizedArrays
from ..errors import InternalError
from ..graph.subgraph import Subgraph
from ..messages import Bundle, bundle
from .intervals import Intervals, intervals


@dataclass(frozen=True)
class Peeled(SizedArrays):
    """The state of peeling between two levels. Checkpoints store it."""

    count: NDArray[np.int32]
    """[local edges] remaining triangles; negative for removed edges."""

    low: NDArray[np.int32]
    """[local edges] λ of removed edges."""

    level: int
    """The next level."""

    levels: int
    """Number of levels at which edges were removed: the steps of this method."""

    left: int
    """Number of remaining edges."""

    @property
    def evaluations(self) -> int:
        """Number of removed edges: each is evaluated once."""
        return len(self.low) - self.left

    @property
    def exchanges(self) -> int:
        """0: peeling has one partition."""
        return 0

    def kept(self, subgraph: Subgraph, mail: Mapping[int, Any]) -> Peeled:
        """The part to store in a checkpoint: all of it."""
        return self

    def resumed(self, subgraph: Subgraph) -> tuple[Peeled, Bundle[Any]]:
        """The state after a restart, and no messages."""
        return self, bundle(subgraph.partition, {})


def peel(
    subgraph: Subgraph,
    before: Peeled | None = None,
    seconds: float | None = None,
    progress: Callable[[int, int], None] | None = None,
    compact_rows: bool = False,
) -> Peeled:
    """Peel the only partition of a run, from the start or from the state `before`.

    Stops at the end of the level in which `seconds` have passed. Calls `progress(level, remaining edges)` after each
    advance. `compact_rows` take less GPU memory and more time than the default rows; a state from either can be
    continued with the other. Raises InternalError for a subgraph with ghosts.
    """
    if len(subgraph.ghost):
        raise InternalError(f"partition {subgraph.partition} has ghosts, so peeling it alone would be wrong")
    deadline = None if seconds is None else time.monotonic() + seconds
    start = kernels.peeling
    if compact_rows:
        from ...kernels.gpu.compact_rows import CompactPeeling as start  # on GPUs alone; imports CuPy
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
    """The interval of each edge. λ of a remaining edge is between the next level and its remaining triangles."""
    low, count = peeled.low, peeled.count
    if not peeled.left:
        return intervals(subgraph, low, low)
    remaining = count >= 0
    return intervals(subgraph, np.where(remaining, peeled.level, low), np.where(remaining, count, low))
