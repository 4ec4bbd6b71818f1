"""Indices of values in a sorted array."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np


def lookup(keys: Any, values: Any) -> Any:
    """The index of each value in the ascending `keys` without repeats; -1 for a value that `keys` does not contain."""
    if not len(keys) or not len(values):
        return cupy.full(len(values), -1, np.int32)
    index = cupy.minimum(cupy.searchsorted(keys, values), len(keys) - 1)
    return cupy.where(keys[index] == values, index, -1).astype(np.int32)
