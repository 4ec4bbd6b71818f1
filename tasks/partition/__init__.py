"""Vertex → partition. Every partitioner has one signature, and owns an edge where its low end in degree order is."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .hash import HashPartitioner
from .range import RangePartitioner

__all__ = ["HashPartitioner", "Partitioner", "RangePartitioner"]


class Partitioner(Protocol):
    """Maps vertices to partitions 0 … partitions - 1; picklable, and the same everywhere."""

    @property
    def partitions(self) -> int:
        """How many there are, at most 32,767."""
        ...

    def __call__(self, vertices: NDArray[np.int64] | NDArray[np.int32]) -> NDArray[np.int16]:
        """The partition of each vertex, given by its dense number."""
        ...
