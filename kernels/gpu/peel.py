"""Peeling on the device: many levels in one launch, then compaction; peel.cu is the kernel."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from ..graph import GONE, Topology
from .launch import Rounds
from .rows import compact

COMPACT_AT = 0.7
"""Rows are compacted when this share of their edges is left. Measured from 0.6 to 0.9: 0.6 to 0.8 are alike."""
MOST_ROUNDS = 1000
"""Rounds of one launch: a tenth of a second or so, after which limits are looked at and progress is told."""


class Peeling:
    """The state of one subgraph's peeling; see `kernels.peeling`."""

    def __init__(self, topology: Topology, support: Any) -> None:
        self.count = support.copy()
        self.low = cupy.zeros(topology.edges, np.int32)
        self.left = topology.edges
        self.level = 0
        self.levels = 0
        self._rows: Any = topology.adjacency
        self._in_rows = topology.edges
        self._rounds = Rounds(topology)
        self._noted = cupy.empty(topology.edges, np.int32)

    def advance(self) -> None:
        """Let levels fall until rows are worth compacting, and compact them."""
        stop_at = int(COMPACT_AT * self._in_rows)
        edges = len(self.count)
        self._rounds.launch(
            "peel",
            self._rows,
            self.count,
            self._noted,
            self.low,
            np.uint32(stop_at),
            np.uint32(MOST_ROUNDS),
            size=(np.int32(edges),),
        )
        fallen, _, _, self.level, self.levels = self._rounds.state[:5].get().tolist()
        self.left = edges - fallen
        if 0 < self.left <= stop_at:
            self._rows = compact(self._rows, self.count > GONE)
            self._in_rows = self.left
