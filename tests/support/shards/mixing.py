"""Hashes of 64-bit words, by their definition."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def mixed(words: NDArray[Any]) -> NDArray[np.uint64]:
    """The finalizer of splitmix64 of each word."""
    found = words.astype(np.uint64)
    found = (found ^ found >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    found = (found ^ found >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return found ^ found >> np.uint64(31)
