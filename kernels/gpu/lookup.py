"""Where values stand in a sorted array."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np


def lookup(keys: Any, wanted: Any) -> Any:
    """Index of each wanted value in the ascending, distinct `keys`; -1 where it is not there."""
    if not len(keys) or not len(wanted):
        return cupy.full(len(wanted), -1, np.int32)
    place = cupy.minimum(cupy.searchsorted(keys, wanted), len(keys) - 1)
    return cupy.where(keys[place] == wanted, place, -1).astype(np.int32)
