"""What a group of shards peels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...kernels.cpu.shards import Cut
from ...kernels.held import Held


@dataclass(frozen=True)
class ShardEdges(Held):
    """The edges with triangles that have an end in a class of one group, sorted by (low, high), each once."""

    group: int
    groups: int
    cut: Cut

    low: NDArray[np.uint32]
    """[edges] rank of the low end."""

    high: NDArray[np.uint32]
    """[edges] rank of the high end."""

    support: NDArray[np.int32]
    """[edges] triangles of the edge in the whole graph."""

    edges: int
    """Edges with triangles of the whole graph."""
