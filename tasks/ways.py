"""Directions of edges: an edge is kept once, with the ways that it leads.

A way is one bit of a small number: UP leads from the smaller end to the larger one, DOWN back.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from . import order
from .order import Ints

UP = 1
DOWN = 2


def distinct_edges(
    low: Ints, high: Ints, ways: NDArray[np.uint8], lows: int, highs: int
) -> tuple[Ints, Ints, NDArray[np.uint8]]:
    """The distinct pairs, sorted by (low, high), each with all ways that it came with; bounds as for `distinct_pairs`.

    Sorts an entry for each way of each pair.
    """
    up, down = (ways & UP) > 0, (ways & DOWN) > 0
    wide = high.astype(np.int64) * 2  # the way is its last bit
    both = np.concatenate([low[up], low[down]]), np.concatenate([wide[up], wide[down] + 1])
    ends, wide = order.distinct_pairs(*both, lows, 2 * highs)
    one = (wide >> 1).astype(high.dtype)
    first = order.heads(ends) | order.heads(one)
    found = ((wide & 1) + UP).astype(np.uint8)[first]
    found[(np.cumsum(first) - 1)[~first]] = UP | DOWN
    return ends[first], one[first], found
