"""The state of a group's peeling at a stop or at its end."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...kernels.runtime.sizes import SizedArrays


@dataclass(frozen=True)
class Figures(SizedArrays):
    """Counters of a group's peeling, over all its parts if it was stopped and resumed."""

    exchanges: int = 0
    """Exchanges between all groups."""
    rounds: int = 0
    """Exchanges that announced edges to remove."""
    levels: int = 0
    """Levels at which edges were removed."""
    entries: tuple[int, ...] = ()
    """[shards] row entries read."""
    triangles: tuple[int, ...] = ()
    """[shards] triangles removed."""
    alarms: int = 0
    reports: int = 0
    grants: int = 0
    messages: int = 0
    """Alarms, reports and grants sent by this group's shards."""
    edges: int = 0
    """Edges whose removal this group's shards announced."""
    bytes: int = 0
    """Bytes given to the carrier; a packet to all groups counts once for each other group."""


@dataclass(frozen=True)
class ShardState(SizedArrays):
    """State of a group at the start of a level, with no message under way."""

    group: int
    groups: int
    level: int
    """Lower bound of λ of every remaining edge."""
    last: int
    """Last level of the window."""
    left: int
    """Remaining edges of the whole graph."""
    count: NDArray[np.int32]
    """[halves] counts; see `kernels.cpu.shards.half_counts`. `build_rows` numbers halves the same way each time."""
    role: NDArray[np.uint8]
    """[halves] roles of halves."""
    low: NDArray[np.int32]
    """[owned edges, in the order of `ShardEdges`] lower bound of λ. The group owns the edges whose high endpoint is of
    one of its classes.
    """
    high: NDArray[np.int32]
    """[owned edges] upper bound of λ; equal to `low` if λ is known."""
    received: int
    """Messages received; the sum over all groups equals that of `figures.messages`."""
    fingerprint: int
    """Sum of the hashes of removed edges and their levels; the sum over all groups is 0."""
    figures: Figures

    @property
    def levels(self) -> int:
        """Levels at which edges were removed."""
        return self.figures.levels

    @property
    def evaluations(self) -> int:
        """Edges announced by this group; the sum over all groups is the number of removed edges."""
        return self.figures.edges

    @property
    def exchanges(self) -> int:
        """Exchanges between all groups."""
        return self.figures.exchanges

    @property
    def finished(self) -> bool:
        """Whether λ of every edge is known."""
        return self.left == 0
