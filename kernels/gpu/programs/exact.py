"""Sums of float64 without rounding, which do not depend on order or partitioning; the kernels are in exact.cu."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from ..runtime import source
from ..runtime.constants import EXACT_LIMBS
from .classes import BLOCK

MAX_VALUES = 2**29
"""The most values added to one set of digits, which are int64."""


def exact_sum(values: Any) -> tuple[int, int]:
    """The sum in units of 2^-1074, and the number of values that are not finite."""
    total, not_finite = 0, 0
    words = cupy.ascontiguousarray(values).view(np.int64)
    for first in range(0, len(words), MAX_VALUES):
        digits = _digits(words[first : first + MAX_VALUES])
        not_finite += digits.pop()
        total += sum(digit << 32 * limb for limb, digit in enumerate(digits))
    return total, not_finite


def _digits(words: Any) -> list[int]:
    highest, digits = cupy.zeros(1, np.int32), cupy.zeros(EXACT_LIMBS + 1, np.uint64)
    shape, count = ((source.grid(len(words), BLOCK),), (BLOCK,)), np.int64(len(words))
    source.kernel("programs/exact:highest_digit")(*shape, (words, count, highest))
    source.kernel("programs/exact:add_digits")(*shape, (words, count, highest, digits))
    found: list[int] = digits.view(np.int64).get().tolist()
    return found
