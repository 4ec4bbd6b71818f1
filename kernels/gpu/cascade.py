"""Cascades in many bands on the device: all rounds in one launch; cascade.cu is the kernel."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from ..graph import Topology
from .launch import Rounds
from .rows import HashedRows


class Cascade:
    """Scratch of one subgraph's cascades, reused from call to call."""

    def __init__(self, topology: Topology, rows: HashedRows) -> None:
        self._rounds = Rounds(topology)

    def run(self, rows: HashedRows, count: Any, frontier: Any, threshold: Any, band: Any) -> tuple[Any, int]:
        """Let `frontier` fall and all that follows; `count` is changed in place.

        Gives the fallen, a view that the next call overwrites, and the rounds.
        """
        first = len(frontier)
        if not first:
            return self._rounds.queue[:0], 0
        self._rounds.queue[:first] = frontier
        self._rounds.state[:] = cupy.asarray(np.array([first] + 19 * [0], np.uint32))
        self._rounds.launch("cascade", rows, count, cupy.asarray(threshold), band)
        fallen, rounds = self._rounds.state[:2].get().tolist()
        return self._rounds.queue[:fallen], rounds
