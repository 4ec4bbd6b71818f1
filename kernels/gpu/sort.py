"""Sorting, by CuPy's radix sort."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np


def sort_keys(keys: Any, bits: int) -> Any:
    """The keys, ascending; `bits` is of use on the CPU only."""
    return cupy.sort(keys)


def order_pairs(low: Any, high: Any, lows: int, highs: int) -> Any:
    """The permutation that sorts pairs by (low, high); pairs that are equal stay in their order."""
    return cupy.argsort((low.astype(np.int64) << np.int64(32)) | high)
