"""The order of pairs, by CuPy's radix sort, and positions by group."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np


def order_pairs(low: Any, high: Any, lows: int, highs: int) -> Any:
    """The permutation that sorts pairs by (low, high). Equal pairs keep their order."""
    return cupy.argsort((low.astype(np.int64) << np.int64(32)) | high)


def positions_by_group(group: Any, groups: int) -> list[Any]:
    """[groups] the positions of each group's elements in `group`, ascending."""
    return [cupy.flatnonzero(group == g).astype(np.int32) for g in range(groups)]
