"""Sums of float64 without rounding, which do not depend on order or partitioning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import get_num_threads, prange
from numpy.typing import NDArray

from ...runtime.cache import cached_njit
from .chunks import threads_for

LIMBS = 66
"""32-bit digits that represent any float64 in units of 2^-1074."""
MAX_VALUES = 2**29
"""The most values added to one accumulator, whose digits are int64."""


@cached_njit(parallel=True)
def _accumulate(words, cuts, digits):
    low = np.int64(0xFFFFFFFF)
    for chunk in prange(cuts.size - 1):
        own = np.zeros(LIMBS + 1, np.int64)
        for i in range(cuts[chunk], cuts[chunk + 1]):
            word = words[i]
            exponent = (word >> 52) & 0x7FF
            mantissa = word & 0xFFFFFFFFFFFFF
            if exponent == 0x7FF:
                own[LIMBS] += 1
                continue
            if exponent:
                mantissa |= np.int64(1) << 52
                exponent -= 1
            limb, shift = exponent >> 5, exponent & 31
            lower = (mantissa & low) << shift
            upper = (mantissa >> 32) << shift
            # 32 bits shifted by at most 31 take 63 bits, so the sign bit stays 0.
            if word < 0:
                own[limb] -= lower & low
                own[limb + 1] -= (lower >> 32) + (upper & low)
                own[limb + 2] -= upper >> 32
            else:
                own[limb] += lower & low
                own[limb + 1] += (lower >> 32) + (upper & low)
                own[limb + 2] += upper >> 32
        for limb in range(LIMBS - 1):  # so that sums of chunks do not overflow
            own[limb + 1] += own[limb] >> 32
            own[limb] &= low
        digits[chunk] = own


def exact_sums(arrays: Sequence[NDArray[Any]]) -> list[tuple[int, int]]:
    """The sum of each array, and the number of its values that are not finite."""
    return [_exact_sum(one) if one.dtype.kind == "f" else (_whole_sum(one), 0) for one in arrays]


def _whole_sum(values: NDArray[Any]) -> int:
    return int(np.count_nonzero(values) if values.dtype == np.bool_ else values.sum(dtype=np.int64))


def _exact_sum(values: NDArray[np.float64]) -> tuple[int, int]:
    """The sum in units of 2^-1074, and the number of values that are not finite."""
    words = np.ascontiguousarray(values).view(np.int64)
    runs = max(get_num_threads(), -(-len(words) // MAX_VALUES))
    cuts = np.arange(runs + 1) * len(words) // runs
    digits = np.empty((runs, LIMBS + 1), np.int64)
    with threads_for(len(words)):
        _accumulate(words, cuts, digits)
    *sums, not_finite = digits.sum(axis=0).tolist()
    total = 0
    for one in reversed(sums):
        total = (total << 32) + one
    return total, not_finite
