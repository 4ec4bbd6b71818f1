"""Fixpoint rounds on the GPU; the kernels are in fixpoint.cu."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from ..graph import Topology
from .rows import HashedRows
from .runtime import source

_BLOCK = 256
_WARPS = _BLOCK // 32


class Fixpoint:
    """Scratch memory for one subgraph's fixpoint rounds."""

    def __init__(self, topology: Topology, rows: HashedRows, owned: Any, highest: int) -> None:
        self._topology, self._rows, self._owned, self._highest = topology, rows, owned, highest
        self._blocks = source.grid(topology.edges, _WARPS)
        self._tally = cupy.empty(self._blocks * _WARPS * (highest + 1), np.int32)

    def unsettle(self, bound: Any, lowered: Any) -> Any:
        """The owned edges to evaluate again after the bounds of the ghosts `lowered` went down, ascending."""
        return self._run("fixpoint:unsettle", lowered, bound, self._owned)

    def evaluate(self, bound: Any, active: Any, by_one: bool) -> Any:
        """Lower the bounds of `active` once, in place. Returns the edges to evaluate again, ascending."""
        extra = (self._owned, np.bool_(by_one), self._tally, np.int32(self._highest))
        return self._run("fixpoint:evaluate", active, bound, *extra)

    def _run(self, name: str, edges: Any, bound: Any, *extra: Any) -> Any:
        rows = self._rows
        again = cupy.zeros(self._topology.edges, np.bool_)
        source.kernel(name)(
            (self._blocks,),
            (_BLOCK,),
            (
                edges,
                np.int32(len(edges)),
                self._topology.low,
                self._topology.high,
                rows.offsets,
                rows.length,
                rows.buckets,
                rows.pairs,
                rows.table,
                bound,
                *extra,
                again,
            ),
        )
        return cupy.flatnonzero(again).astype(np.int32)
