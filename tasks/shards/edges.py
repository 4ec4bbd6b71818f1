"""The edges that a group of shards peels, and those that it is sent."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...kernels.cpu.shards import Cut
from ...kernels.runtime.sizes import SizedArrays
from ..messages import Payload


@dataclass(frozen=True)
class SupportedEdges(Payload):
    """Edges with triangles, sent by a bucket to the group of an endpoint. `len()` is their number."""

    low: NDArray[np.uint32]
    """[edges] rank of the low endpoint; sorted by (low, high)."""

    high: NDArray[np.uint32]
    """[edges] rank of the high endpoint."""

    support: NDArray[np.int32]
    """[edges] triangles of the edge."""

    row: NDArray[np.int32]
    """[owned edges] row in the bucket's BucketEdges of each edge that the group owns."""

    def __len__(self) -> int:
        return len(self.low)


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
