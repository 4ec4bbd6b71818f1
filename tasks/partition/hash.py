"""Partition by hash: balanced, and without locality."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..ids.splitmix64 import splitmix64


@dataclass(frozen=True)
class HashPartitioner:
    """Spreads vertices over partitions by a 64-bit hash of the dense number."""

    partitions: int

    def __call__(self, vertices: NDArray[np.int64] | NDArray[np.int32]) -> NDArray[np.int16]:
        """The partition of each vertex, by its dense number."""
        return (splitmix64(vertices.astype(np.uint64)) % np.uint64(self.partitions)).astype(np.int16)
