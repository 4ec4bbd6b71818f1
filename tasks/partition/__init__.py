"""Maps from vertex to partition, for the blocks of vertex programs.

All partitioners have the signature of `Partitioner`; start there. May import `ids.splitmix64`. The cuts of a
RangePartitioner are chosen in `tasks/ingest/range_cuts.py`.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .hash import HashPartitioner
from .range import RangePartitioner

__all__ = ["HashPartitioner", "Partitioner", "RangePartitioner"]


class Partitioner(Protocol):
    """Maps vertices to partitions 0 … partitions - 1. Picklable, and gives the same answer in every process."""

    @property
    def partitions(self) -> int:
        """The number of partitions, at most 32,767."""
        ...

    def __call__(self, vertices: NDArray[np.int64] | NDArray[np.int32]) -> NDArray[np.int16]:
        """The partition of each vertex, by its dense number."""
        ...
