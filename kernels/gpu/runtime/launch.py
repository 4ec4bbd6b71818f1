"""How kernels over cascade.cuh are launched, and their scratch memory."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from ...graph import Topology
from ..rows import HashedRows
from . import source
from .constants import CASCADE_HEAVY_PARTS, CASCADE_WARPS, CASCADE_WORK_BYTES


class Rounds:
    """Launches a kernel over one subgraph's edges, with as many blocks as run at once."""

    def __init__(self, topology: Topology) -> None:
        self._low: Any = topology.low
        self._high: Any = topology.high
        self.queue = cupy.empty(topology.edges, np.int32)
        self.state = cupy.zeros(20, np.uint32)
        self._heavy = cupy.empty((CASCADE_HEAVY_PARTS, 2), np.int32)

    def launch(self, name: str, rows: HashedRows, *own: Any, size: tuple[Any, ...] = ()) -> None:
        """Run the kernel on the present state. `size` precedes the graph's arrays in its arguments, `own` follows."""
        kernel = source.kernel(name, cooperative=True)
        block, shared = 32 * CASCADE_WARPS, CASCADE_WARPS * CASCADE_WORK_BYTES
        graph = (self._low, self._high, rows.offsets, rows.length, rows.buckets, rows.pairs, rows.table, rows.filters)
        barrier = cupy.zeros(3, np.uint32)
        arguments = (self.queue, self.state, barrier, self._heavy, *size, *graph, *own)
        blocks = source.resident(kernel, block, shared)
        kernel((blocks,), (block,), arguments, shared_mem=shared)
