"""The sources of searches: all vertices, or some that a seed selects, whatever the partitioning."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

CHUNK = 2**20
"""Vertices that are hashed at a time."""


def drawn_sources(vertices: int, count: int | None, seed: int) -> NDArray[np.int64]:
    """The dense numbers of `count` of the vertices 0 … vertices - 1, or of all, in a random order.

    A vertex gets a hash of its number and the seed (the finalizer of SplitMix64: Steele, Lea and Flood, OOPSLA 2014).
    The `count` smallest hashes are drawn, and give the order. So every first part of the result is a random sample
    without replacement too.
    """
    count = vertices if count is None else min(count, vertices)
    keys, numbers = np.empty(0, np.uint64), np.empty(0, np.int64)
    for first in range(0, vertices, CHUNK):
        number = np.arange(first, min(first + CHUNK, vertices))
        keys, numbers = np.append(keys, _hash(number.astype(np.uint64), seed)), np.append(numbers, number)
        if len(keys) > count:
            kept = np.argpartition(keys, count - 1)[:count] if count else slice(0)
            keys, numbers = keys[kept], numbers[kept]
    return numbers[np.lexsort((numbers, keys))]


def _hash(words: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
    """64-bit hashes; distinct for distinct words."""
    mixed = words * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed * 0xD1342543DE82EF95 % 2**64)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    hashed: NDArray[np.uint64] = mixed ^ (mixed >> np.uint64(31))
    return hashed
