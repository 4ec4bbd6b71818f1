"""Fixpoint iterations on the GPU; the kernel is fixpoint.cu."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from ..graph import Topology
from .adjacency import HashedRows
from .runtime import source

_BLOCK = 256
_WARPS = _BLOCK // 32


class Fixpoint:
    """Scratch memory for the iterations of one graph."""

    def __init__(self, topology: Topology, rows: HashedRows, highest: int) -> None:
        self._topology, self._rows, self._highest = topology, rows, highest
        self._blocks = source.grid(topology.edges, _WARPS)
        self._tally = cupy.empty(self._blocks * _WARPS * (highest + 1), np.int32)

    def evaluate(self, bound: Any, active: Any, by_one: bool) -> Any:
        """Lower the bounds of `active` once, in place. Returns the edges to evaluate again, ascending."""
        rows = self._rows
        again = cupy.zeros(self._topology.edges, np.bool_)
        graph = self._topology.low, self._topology.high, rows.offsets, rows.length, rows.buckets, rows.pairs, rows.table
        extra = np.bool_(by_one), self._tally, np.int32(self._highest), again
        source.kernel("fixpoint")((self._blocks,), (_BLOCK,), (active, np.int32(len(active)), *graph, bound, *extra))
        return cupy.flatnonzero(again).astype(np.int32)
