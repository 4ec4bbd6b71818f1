"""Cascades in many bands on the GPU. One launch runs all rounds of a cascade; the kernel is cascade.cu."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from ..graph import Topology
from .rows import HashedRows
from .runtime.launch import Rounds


class Cascade:
    """Scratch memory for one subgraph's cascades, for repeated use."""

    def __init__(self, topology: Topology, rows: HashedRows) -> None:
        self._rounds = Rounds(topology)

    def run(self, rows: HashedRows, count: Any, frontier: Any, threshold: Any, band: Any) -> tuple[Any, int]:
        """Remove `frontier` and all edges that lose their support by it; changes `count`.

        Returns the removed edges, a view that the next call overwrites, and the number of rounds.
        """
        first = len(frontier)
        if not first:
            return self._rounds.queue[:0], 0
        self._rounds.queue[:first] = frontier
        self._rounds.state[:] = cupy.asarray(np.array([first] + 19 * [0], np.uint32))
        self._rounds.launch("cascade", rows, count, cupy.asarray(threshold), band)
        removed, rounds = self._rounds.state[:2].get().tolist()
        return self._rounds.queue[:removed], rounds
