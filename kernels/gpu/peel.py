"""Peeling on the device: many levels in one launch, then the edges that are left are numbered anew; peel.cu."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from ..graph import GONE, Topology
from .launch import Rounds
from .rows import adjacency, trim

SHRINK_AT = 0.5
"""Edges are numbered anew when this share of them is left."""
TRIM_AT = 0.8
"""The fallen are taken out of the rows when this share is left of the edges that were there the last time."""
MOST_ROUNDS = 1000
"""Rounds of one launch: a tenth of a second or so, after which limits are looked at and progress is told."""


class Peeling:
    """The state of one subgraph's peeling; see `kernels.peeling`.

    Edges that are left get numbers of their own as they become few: their counts then lie close together.
    """

    def __init__(self, topology: Topology, count: Any, low: Any = None, level: int = 0, levels: int = 0) -> None:
        self.left = topology.edges
        self.level, self.levels = level, levels
        self._in_rows = 0
        self._fell_at: Any = None
        self._origin: Any = None  # number at the start of each edge there is now; None for the same
        if low is None:
            self._low = cupy.zeros(topology.edges, np.int32)
            self._start(topology, count.copy())
        else:
            self._low, self._topology, self._count = low.copy(), topology, count
            self._shrink()
            self.left = len(self._count)

    @property
    def low(self) -> Any:
        """λ of the fallen edges."""
        if self._origin is not None:
            fell = cupy.flatnonzero(self._count == GONE)
            self._low[self._origin[fell]] = self._fell_at[fell]
        return self._low

    @property
    def count(self) -> Any:
        """Triangles that the edges have left; negative for fallen ones."""
        if self._origin is None:
            return self._count
        count = cupy.full_like(self._low, GONE)
        count[self._origin] = self._count
        return count

    def advance(self) -> None:
        """Let levels fall until it is worth to take the fallen edges out of what is read, and do so."""
        stop_at = max(int(SHRINK_AT * len(self._count)), int(TRIM_AT * self._in_rows))
        limits = (np.uint32(stop_at), np.uint32(MOST_ROUNDS))
        size = (np.int32(len(self._count)),)
        self._rounds.launch("peel", self._rows, self._count, self._noted, self._fell_at, *limits, size=size)
        fallen, _, _, self.level, self.levels = self._rounds.state[:5].get().tolist()
        self.left = len(self._count) - fallen
        if 0 < self.left <= int(SHRINK_AT * len(self._count)):
            self._shrink()
        elif self.left:
            trim(self._rows, self._count)
            self._in_rows = self.left

    def _start(self, topology: Topology, count: Any) -> None:
        self._topology, self._count = topology, count
        self._in_rows = len(count)
        self._rows: Any = adjacency(topology)
        self._fell_at = self._low if self._origin is None else cupy.zeros_like(count)
        self._noted: Any = cupy.empty_like(count)
        self._rounds: Any = Rounds(topology)
        self._rounds.state[3], self._rounds.state[4] = self.level, self.levels

    def _shrink(self) -> None:
        _ = self.low  # what has fallen is written down before the numbers change
        self._rows = self._rounds = self._noted = None  # room for those of the edges that are left
        stay = cupy.flatnonzero(self._count != GONE).astype(np.int32)
        self._origin = stay if self._origin is None else self._origin[stay]
        topology = Topology(self._topology.low[stay], self._topology.high[stay], self._topology.vertices)
        self._start(topology, self._count[stay])
