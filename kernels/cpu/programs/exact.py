"""Sums of floating-point numbers without rounding, so that no order and no cut changes them."""

from __future__ import annotations

import numpy as np
from numba import get_num_threads, njit, prange
from numpy.typing import NDArray

from .pieces import threads_for

LIMBS = 66
"""32-bit digits of a float64, whatever its exponent, in units of 2^-1074."""
MOST_VALUES = 2**29
"""Added to one accumulator: digits are summed in 64 bits."""


@njit(parallel=True, cache=True, nogil=True)
def _accumulate(words, cuts, digits):
    low = np.int64(0xFFFFFFFF)
    for piece in prange(cuts.size - 1):
        own = np.zeros(LIMBS + 1, np.int64)
        for i in range(cuts[piece], cuts[piece + 1]):
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
            # Shifted by 31 at most, 32 bits take 63: the sign stays free.
            if word < 0:
                own[limb] -= lower & low
                own[limb + 1] -= (lower >> 32) + (upper & low)
                own[limb + 2] -= upper >> 32
            else:
                own[limb] += lower & low
                own[limb + 1] += (lower >> 32) + (upper & low)
                own[limb + 2] += upper >> 32
        digits[piece] = own


def exact_sum(values: NDArray[np.float64]) -> tuple[int, int]:
    """The sum in units of 2^-1074, and how many values are no finite numbers."""
    words = np.ascontiguousarray(values).view(np.int64)
    runs = max(get_num_threads(), -(-len(words) // MOST_VALUES))
    cuts = np.linspace(0, len(words), runs + 1).astype(np.int64)
    digits = np.empty((runs, LIMBS + 1), np.int64)
    with threads_for(len(words)):
        _accumulate(words, cuts, digits)
    total = 0
    for limb in range(LIMBS - 1, -1, -1):
        total = (total << 32) + sum(digits[:, limb].tolist())
    return total, int(digits[:, LIMBS].sum())
