"""A hash of 64-bit words in Numba functions."""

from __future__ import annotations

import numpy as np

from ...runtime.cache import cached_njit


@cached_njit(inline="always")
def mixed(word):
    """The finalizer of splitmix64 (Steele, Lea and Flood, OOPSLA 2014), a permutation of uint64. `word` is a uint64."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))
