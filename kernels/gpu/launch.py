"""What the two kernels over cascade.cuh share: how they are launched, and their scratch."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from ..graph import Topology
from . import source
from .rows import HashedRows

WARPS = 16
"""Of a block; as in cascade.cuh."""
_SHARED = WARPS * (8 * (24 + 24 + 4 + 4) + 192 * 12 + 192 * 12)
"""Bytes of a block: Work of cascade.cuh for each of its warps."""
_HEAVY = 2**20
"""Parts of heavy edges that a round has room for; as in cascade.cuh."""


class Rounds:
    """Launches a kernel over one subgraph's edges, in as many blocks as run at once."""

    def __init__(self, topology: Topology) -> None:
        self._low: Any = topology.low
        self._high: Any = topology.high
        self.queue = cupy.empty(topology.edges, np.int32)
        self.state = cupy.zeros(20, np.uint32)
        self._heavy = cupy.empty((_HEAVY, 2), np.int32)

    def launch(self, name: str, rows: HashedRows, *own: Any, size: tuple[Any, ...] = ()) -> None:
        """Run the kernel on the present state; `size` goes before the graph's arrays, `own` after them."""
        kernel = source.kernel(name, cooperative=True)
        block = 32 * WARPS
        graph = (self._low, self._high, rows.offsets, rows.length, rows.buckets, rows.pairs, rows.table, rows.filters)
        barrier = cupy.zeros(3, np.uint32)
        arguments = (self.queue, self.state, barrier, self._heavy, *size, *graph, *own)
        blocks = source.resident(kernel, block, _SHARED)
        kernel((blocks,), (block,), arguments, shared_mem=_SHARED)
