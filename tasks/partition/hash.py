"""Partition by hash: even, and blind to locality."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..mixing import mixed


@dataclass(frozen=True)
class HashPartitioner:
    """Spreads vertices by a 64-bit mix of the dense number."""

    partitions: int

    def __call__(self, vertices: NDArray[np.int64] | NDArray[np.int32]) -> NDArray[np.int16]:
        """The partition of each vertex, given by its dense number."""
        return (mixed(vertices.astype(np.uint64)) % np.uint64(self.partitions)).astype(np.int16)
