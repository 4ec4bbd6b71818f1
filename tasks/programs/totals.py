"""Exact sums over all vertices of a graph, which do not depend on the partitioning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from ...kernels.programs import exact_sums
from .program import Array

Part: TypeAlias = list[int | str]
"""The share of one group: the sum of integers; for floats the sum in units of 2^-1074 in hexadecimal digits, and the
number of values that are not finite.
"""


def parts_of(arrays: Sequence[Array]) -> list[Part]:
    """The shares of the values of one group in one or more sums."""
    whole = [one if one.dtype.kind in "bui" else one.astype(np.float64, copy=False) for one in arrays]
    sums = exact_sums(whole)
    return [
        [hex(total), not_finite] if one.dtype.kind == "f" else [total]
        for one, (total, not_finite) in zip(whole, sums, strict=True)
    ]


def exact_sum(values: Array) -> float:
    """The float64 nearest to the exact sum of float64 values."""
    return add_parts(parts_of([values]))


def add_parts(parts: Sequence[Part]) -> int | float:
    """The sum over all groups: int for integers; else the float64 nearest to the exact sum, NaN if a value is not
    finite.
    """
    if len(parts[0]) == 1:
        return sum(int(part[0]) for part in parts)
    if any(part[1] for part in parts):
        return float("nan")
    try:
        return sum(int(str(part[0]), 16) for part in parts) / (1 << 1074)
    except OverflowError:
        return float("inf")
