"""What searches write to the vertices that they reach, in one pass of several threads each."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import prange
from numpy.typing import NDArray

from ...graph import IntArray
from ...runtime.cache import cached_njit
from ..arrays.places import places
from .chunks import even_chunks, threads_for


@cached_njit(parallel=True)
def _unreached(cuts, level, found):
    for chunk in prange(cuts.size - 1):
        for v in range(cuts[chunk], cuts[chunk + 1]):
            found[v] = level[v] < 0


@cached_njit(parallel=True)
def _set_levels(cuts, rows, got, step, level, parent):
    for chunk in prange(cuts.size - 1):
        for i in range(cuts[chunk], cuts[chunk + 1]):
            level[rows[i]] = step
            parent[rows[i]] = got[i]


@cached_njit(parallel=True)
def _lower(cuts, rows, got, value, lowered):
    for chunk in prange(cuts.size - 1):
        for i in range(cuts[chunk], cuts[chunk + 1]):
            lowered[i] = got[i] < value[rows[i]]
            if lowered[i]:
                value[rows[i]] = got[i]


def unreached(level: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Whether each level is below 0."""
    found = np.empty(len(level), np.bool_)
    with threads_for(len(level)):
        _unreached(even_chunks(len(level)), level, found)
    return found


def set_levels(
    rows: IntArray, got: NDArray[Any], step: int, level: NDArray[np.int32], parent: NDArray[np.int64]
) -> None:
    """Give distinct `rows` the level `step` and the parents `got` [rows]."""
    with threads_for(len(rows)):
        _set_levels(even_chunks(len(rows)), places(rows), got, np.int32(step), level, parent)


def lower(rows: IntArray, got: NDArray[Any], value: NDArray[Any]) -> NDArray[np.bool_]:
    """Lower the values of distinct `rows` to `got` [rows] where that is smaller; returns where."""
    lowered = np.empty(len(rows), np.bool_)
    with threads_for(len(rows)):
        _lower(even_chunks(len(rows)), places(rows), got, value, lowered)
    return lowered
