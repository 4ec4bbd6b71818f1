"""What values amount to at each of many places."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..graph import IntArray, LongArray


def positions(places: IntArray) -> NDArray[Any]:
    """The places, to index with."""
    return places.astype(np.intp)


def sums_at(place: NDArray[Any], values: IntArray, places: int) -> LongArray:
    """The sum of the values at each place."""
    total = np.zeros(places, np.int64)
    np.add.at(total, place, values.astype(np.int64))
    return total


def maxima_at(place: NDArray[Any], values: IntArray, places: int) -> IntArray:
    """The largest of the values at each place."""
    largest = np.zeros(places, np.int32)
    np.maximum.at(largest, place, values)
    return largest
