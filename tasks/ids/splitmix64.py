"""A hash of 64-bit integers (splitmix64; Steele, Lea and Flood, OOPSLA 2014)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

GOLDEN_GAMMA = 0x9E3779B97F4A7C15
"""2^64 divided by the golden ratio, odd."""


def splitmix64(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A 64-bit hash of each value, written over the input."""
    values += np.uint64(GOLDEN_GAMMA)
    return mix64(values)


def mix64(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finalizer of splitmix64, a permutation of 64-bit integers, written over the input."""
    values ^= values >> np.uint64(30)
    values *= np.uint64(0xBF58476D1CE4E5B9)
    values ^= values >> np.uint64(27)
    values *= np.uint64(0x94D049BB133111EB)
    values ^= values >> np.uint64(31)
    return values
