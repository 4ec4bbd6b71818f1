"""Where the peeling of one group's shards stands: the result at its end, or what goes on from there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...kernels.held import Held
from ..messages import Bundle, bundle
from .edges import ShardEdges


@dataclass(frozen=True)
class Figures(Held):
    """How a group's peeling went, stops included."""

    exchanges: int = 0
    """Meetings of all groups."""
    rounds: int = 0
    """Exchanges that brought edges that leave."""
    levels: int = 0
    """Levels at which edges left."""
    entries: tuple[int, ...] = ()
    """[shards] entries of rows read."""
    triangles: tuple[int, ...] = ()
    """[shards] triangles removed."""
    alarms: int = 0
    reports: int = 0
    grants: int = 0
    messages: int = 0
    """Alarms, reports and grants that this group's shards sent."""
    edges: int = 0
    """Edges that this group's shards told all others to remove."""
    bytes: int = 0
    """What this group gave its carrier: what goes to all groups counts once for each of the others."""


@dataclass(frozen=True)
class ShardState(Held):
    """State of one group at the start of a level, while nothing is on its way."""

    group: int
    groups: int
    level: int
    """Every edge that is left has at least this λ."""
    last: int
    """Last level of the window."""
    left: int
    """Edges of the whole graph that are left."""
    count: NDArray[np.int32]
    """[halves] counts; see `kernels.cpu.shards.halves`. Halves are numbered by `build_rows`, the same each time."""
    role: NDArray[np.uint8]
    """[halves] roles."""
    low: NDArray[np.int32]
    """[owned edges, in the order of `ShardEdges`] the least that λ can be. Owned are the edges whose high endpoint is
    of a class of the group.
    """
    high: NDArray[np.int32]
    """[owned edges] the most that λ can be; the same as `low` where λ is known."""
    received: int
    """Messages taken in; with `figures.messages` a running sum that must be the same over all groups."""
    fingerprint: int
    """Sum of the hashes of edges that left and of their levels; over all groups it is 0."""
    figures: Figures

    def kept(self, edges: ShardEdges, mail: Mapping[int, Any]) -> ShardState:
        """What a checkpoint keeps: all."""
        return self

    def resumed(self, edges: ShardEdges) -> tuple[ShardState, Bundle[Any]]:
        """The state, and no mail."""
        return self, bundle(self.group, {})

    @property
    def levels(self) -> int:
        """Levels at which edges left."""
        return self.figures.levels

    @property
    def evaluations(self) -> int:
        """Edges that this group's shards removed first: over all groups, those that left."""
        return self.figures.edges

    @property
    def exchanges(self) -> int:
        """Meetings of all groups."""
        return self.figures.exchanges

    @property
    def finished(self) -> bool:
        """Whether λ of every edge is known."""
        return self.left == 0
