"""Hashes of 64-bit words, and weighted sums of lowered counts, by their definitions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def mixed(words: NDArray[Any]) -> NDArray[np.uint64]:
    """The finalizer of splitmix64 of each word."""
    found = words.astype(np.uint64)
    found = (found ^ found >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    found = (found ^ found >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return found ^ found >> np.uint64(31)


def weighted_sum(amounts: Mapping[int, int]) -> int:
    """The amount of each edge times the hash of its number with bit 0 set, added up modulo 2^64."""
    weights = mixed(np.array(list(amounts), np.int64)) | np.uint64(1)
    return int((weights * np.array(list(amounts.values()), np.int64).astype(np.uint64)).sum(dtype=np.uint64))
