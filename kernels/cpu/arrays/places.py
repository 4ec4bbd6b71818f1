"""Indices as unsigned integers, by which Numba's code reads arrays faster."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_UNSIGNED = {4: np.uint32, 8: np.uint64}


def places(index: NDArray[Any]) -> NDArray[Any]:
    """The same int32 or int64 as unsigned integers of their size, without a copy; none may be negative.

    Numba's code compares an index with 0 before it reads, since negative ones count from the end; with unsigned ones it
    does not, and gathers from caches take half the time. Numbers of the two kinds must not meet in arithmetic within a
    kernel: their result would be a float.
    """
    return index.view(_UNSIGNED[index.dtype.itemsize])
