"""A hash of 64-bit integers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A 64-bit mix of each value, in its place (splitmix64; Steele, Lea and Flood, OOPSLA 2014)."""
    values += np.uint64(0x9E3779B97F4A7C15)
    values ^= values >> np.uint64(30)
    values *= np.uint64(0xBF58476D1CE4E5B9)
    values ^= values >> np.uint64(27)
    values *= np.uint64(0x94D049BB133111EB)
    values ^= values >> np.uint64(31)
    return values
