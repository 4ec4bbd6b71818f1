"""Rows of in-edges, which vertex programs gather over."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .graph import IntArray, LongArray
from .held import Held

ALONG = {"": 0, "add": 1, "multiply": 2}
"""What an edge does to a value that passes: nothing, add its weight, multiply by its weight."""


@dataclass(frozen=True)
class InRows(Held):
    """A CSR: row i has the sources of the edges into vertex i. `len()` counts the entries."""

    offsets: LongArray
    """[rows + 1]"""

    source: IntArray
    """[entries] positions in a table of sources; they ascend within a row, and may repeat."""

    weight: NDArray[np.float64] | None = None
    """[entries] weights of the edges; None where edges have none."""

    def __len__(self) -> int:
        return len(self.source)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.offsets) - 1
