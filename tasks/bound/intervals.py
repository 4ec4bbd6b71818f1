"""The certified interval of λ of each edge: the result of every bounding method."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels.runtime.sizes import SizedArrays
from ..graph import Subgraph


@dataclass(frozen=True)
class Intervals(SizedArrays):
    """λ of each owned edge of a partition is in [low, high]. Both are one array if every λ is known."""

    low: NDArray[np.int32]
    """[owned edges] lower ends."""

    high: NDArray[np.int32]
    """[owned edges] upper ends."""

    @property
    def unsettled(self) -> int:
        """Number of edges whose interval has more than one value."""
        return 0 if self.low is self.high else int(np.count_nonzero(self.low != self.high))


def intervals(subgraph: Subgraph, low: NDArray[np.int32], high: NDArray[np.int32]) -> Intervals:
    """Expand intervals [local edges] to all edges. Edges without triangles have [0, 0]."""
    full = _zeros(subgraph.support)
    kernels.store(full, subgraph.number, low)
    if low is high or np.array_equal(low, high):
        return Intervals(full, full)
    above = _zeros(subgraph.support)
    kernels.store(above, subgraph.number, high)
    return Intervals(full, above)


def _zeros(like: NDArray[np.int32]) -> NDArray[np.int32]:
    """Zeros. The system clears their memory when threads write to it; `zeros_like` writes all of it in one thread."""
    return np.zeros(len(like), np.int32) if kernels.on_host(like) else np.zeros_like(like)
