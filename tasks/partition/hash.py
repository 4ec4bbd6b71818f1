"""Partition by hash: even, and blind to locality."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class HashPartitioner:
    """Spreads vertices by a 64-bit mix of the dense number (splitmix64; Steele, Lea and Flood, OOPSLA 2014)."""

    partitions: int

    def __call__(self, vertices: NDArray[np.int64] | NDArray[np.int32]) -> NDArray[np.int16]:
        """The partition of each vertex, given by its dense number."""
        mixed = vertices.astype(np.uint64)
        mixed += np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(30)
        mixed *= np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(27)
        mixed *= np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(31)
        return (mixed % np.uint64(self.partitions)).astype(np.int16)
