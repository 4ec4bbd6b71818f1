"""The edges that a group of shards peels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...kernels.cpu.shards import Cut
from ...kernels.runtime.sizes import SizedArrays


@dataclass(frozen=True)
class ShardEdges(SizedArrays):
    """The edges with triangles that have an endpoint in a class of one group, sorted by (low, high), each once."""

    group: int
    groups: int
    cut: Cut

    low: NDArray[np.uint32]
    """[edges] rank of the low endpoint."""

    high: NDArray[np.uint32]
    """[edges] rank of the high endpoint."""

    support: NDArray[np.int32]
    """[edges] triangles of the edge in the whole graph."""

    edges: int
    """Number of edges with triangles in the whole graph."""
