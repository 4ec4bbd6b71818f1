"""The certified interval of λ of each owned edge, as every schedule ends with it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...kernels.held import Held
from ..subgraph import Subgraph


@dataclass(frozen=True)
class Intervals(Held):
    """λ of each owned edge of a partition lies in [low, high]; the same array twice where all are settled."""

    low: NDArray[np.int32]
    """[owned edges] lower ends."""

    high: NDArray[np.int32]
    """[owned edges] upper ends."""

    @property
    def unsettled(self) -> int:
        """Edges whose interval holds more than one value."""
        return 0 if self.low is self.high else int(np.count_nonzero(self.low != self.high))


def intervals(subgraph: Subgraph, low: NDArray[np.int32], high: NDArray[np.int32]) -> Intervals:
    """From the interval of each owned local edge to that of each owned edge: without triangles it is [0, 0]."""
    full = np.zeros_like(subgraph.support)
    full[subgraph.number] = low
    if low is high or np.array_equal(low, high):
        return Intervals(full, full)
    above = np.zeros_like(subgraph.support)
    above[subgraph.number] = high
    return Intervals(full, above)
