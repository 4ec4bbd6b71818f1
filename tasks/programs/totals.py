"""Sums over all vertices of a graph, exact, and so the same for every cut of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from ...kernels.programs import exact_sum
from .program import Array

Part: TypeAlias = list[int | str]
"""What one group adds: of integers their sum; of other numbers that in units of 2^-1074, in hexadecimal digits, and how
many are no finite numbers.
"""


def part_of(values: Array) -> Part:
    """What the values of one group add to a sum."""
    if values.dtype.kind in "bui":
        return [int(values.sum(dtype=np.int64))]
    total, strange = exact_sum(values.astype(np.float64, copy=False))
    return [hex(total), strange]


def add_parts(parts: Sequence[Part]) -> int | float:
    """The sum over all groups: int of integers, else the float64 next to the exact sum; NaN if a value was none."""
    if len(parts[0]) == 1:
        return sum(int(part[0]) for part in parts)
    if any(part[1] for part in parts):
        return float("nan")
    try:
        return sum(int(str(part[0]), 16) for part in parts) / (1 << 1074)
    except OverflowError:
        return float("inf")
