"""Partition by ranges of dense numbers. Keeps the locality that ids carry."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class RangePartitioner:
    """Partition p has the vertices cuts[p - 1] ≤ dense number < cuts[p]. Without cuts there is one partition."""

    cuts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    """[partitions - 1] dense numbers, ascending."""

    @property
    def partitions(self) -> int:
        """The number of partitions."""
        return len(self.cuts) + 1

    def __call__(self, vertices: NDArray[np.int64] | NDArray[np.int32]) -> NDArray[np.int16]:
        """The partition of each vertex, by its dense number."""
        cuts = np.asarray(self.cuts, like=vertices)
        return np.searchsorted(cuts, vertices, side="right").astype(np.int16)
