"""Directions of edges. An edge is stored once, with a uint8 of two direction bits.

UP: the edge leads from its smaller end to its larger end. DOWN: it leads from the larger end to the smaller one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..ids import order
from ..ids.order import Ints

UP = 1
DOWN = 2


def distinct_edges(
    low: Ints, high: Ints, ways: NDArray[np.uint8], lows: int, highs: int
) -> tuple[Ints, Ints, NDArray[np.uint8]]:
    """The distinct pairs, sorted by (low, high), each with the union of its direction bits.

    `lows` and `highs` bound the values as in `order.distinct_pairs`. Sorts one entry for each direction of each pair.
    """
    up, down = (ways & UP) > 0, (ways & DOWN) > 0
    wide = high.astype(np.int64) * 2  # the last bit is the direction
    both = np.concatenate([low[up], low[down]]), np.concatenate([wide[up], wide[down] + 1])
    ends, wide = order.distinct_pairs(*both, lows, 2 * highs)
    one = (wide >> 1).astype(high.dtype)
    first = order.heads(ends) | order.heads(one)
    found = ((wide & 1) + UP).astype(np.uint8)[first]
    found[(np.cumsum(first) - 1)[~first]] = UP | DOWN
    return ends[first], one[first], found


def arcs(
    low: Ints, high: Ints, ways: NDArray[np.uint8], weight: NDArray[np.float64] | None
) -> tuple[Ints, Ints, NDArray[np.float64] | None]:
    """Sources, targets and weights of edges in each of their directions: first those that lead up, then those down.

    `weight` has one value for each direction bit of each edge, UP before DOWN; None if edges have no weights.
    """
    up, down = (ways & UP) > 0, (ways & DOWN) > 0
    if weight is not None:
        after = np.cumsum(up.astype(np.int64) + down)  # where the weights of each edge end
        weight = np.concatenate([weight[(after - 1 - down)[up]], weight[(after - 1)[down]]])
    return np.concatenate([low[up], high[down]]), np.concatenate([high[up], low[down]]), weight
