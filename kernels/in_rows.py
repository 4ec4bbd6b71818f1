"""Rows of in-edges, over which vertex programs gather values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .graph import IntArray, LongArray
from .runtime.sizes import SizedArrays

ALONG = {"": 0, "add": 1, "multiply": 2}
"""How an edge changes a value: not at all, by adding its weight, by multiplying with its weight."""


@dataclass(frozen=True)
class InRows(SizedArrays):
    """A CSR: row i has the sources of the edges into vertex i. `len()` is the number of entries."""

    offsets: LongArray
    """[rows + 1]"""

    source: IntArray
    """[entries] positions in a table of sources, ascending within a row; may repeat."""

    weight: NDArray[np.float64] | None = None
    """[entries] weights of the edges; None for edges without weights."""

    lasting: object | None = None
    """An object that outlives these rows, with the same row lengths, such as their chunk; None for the rows themselves.
    Gathers keep with it what depends on row lengths alone.
    """

    def __len__(self) -> int:
        return len(self.source)

    @property
    def weights(self) -> NDArray[np.float64]:
        """The weights, or an empty array for edges without weights: what compiled code takes."""
        return np.zeros(0) if self.weight is None else self.weight

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.offsets) - 1
