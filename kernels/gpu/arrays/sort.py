"""The order of pairs, by CuPy's radix sort, and positions by group."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import cupy
import numpy as np

from ...graph import MAX_LOCAL_EDGES
from .indexing import bincount

SORTED_AT_ONCE = 2**28
"""Pairs that one sort takes, or somewhat more. A sort takes about 50 bytes a pair."""


def order_pairs(low: Any, high: Any, lows: int, highs: int) -> Any:
    """The permutation that sorts pairs by (low, high). Equal pairs keep their order.

    The result is int64, but int32 for more than SORTED_AT_ONCE pairs, unless there are more than MAX_LOCAL_EDGES.
    """
    if len(low) <= SORTED_AT_ONCE or len(low) > MAX_LOCAL_EDGES:
        return _order(low, high)
    ends = cupy.cumsum(bincount(low, lows))
    bounds = cupy.searchsorted(ends, cupy.arange(SORTED_AT_ONCE, len(low), SORTED_AT_ONCE)) + 1
    cuts = [0, *bounds.tolist(), lows]
    by = cupy.empty(len(low), np.int32)
    stop = 0
    for first, after in pairwise(cuts):
        own = cupy.flatnonzero((low >= first) & (low < after)).astype(np.int32)
        start, stop = stop, stop + len(own)
        by[start:stop] = own[_order(low[own], high[own])]
    return by


def _order(low: Any, high: Any) -> Any:
    key = low.astype(np.int64)
    key <<= np.int64(32)
    key |= high
    return cupy.argsort(key)


def positions_by_group(group: Any, groups: int) -> list[Any]:
    """[groups] the positions of each group's elements in `group`, ascending."""
    return [cupy.flatnonzero(group == g).astype(np.int32) for g in range(groups)]
