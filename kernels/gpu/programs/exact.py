"""Sums without rounding, which do not depend on order or partitioning; the kernels are in exact.cu."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cupy
import numpy as np

from ..runtime import source
from ..runtime.constants import EXACT_LIMBS
from .classes import BLOCK

MAX_VALUES = 2**29
"""The most values added to one set of digits, which are int64."""


def exact_sums(arrays: Sequence[Any]) -> list[tuple[int, int]]:
    """The sum of each array, and the number of its values that are not finite."""
    parts = [(of, part) for of, values in enumerate(arrays) for part in _parts(values)]
    highest, digits = cupy.zeros(len(parts), np.int32), cupy.zeros((len(parts), EXACT_LIMBS + 1), np.uint64)
    for at, (_, part) in enumerate(parts):
        if part.dtype != np.float64:
            digits[at, :1].view(np.int64)[:] = part.sum(dtype=np.int64)
            continue
        shape, words = ((source.grid(len(part), BLOCK),), (BLOCK,)), (part, np.int64(len(part)), highest[at : at + 1])
        source.kernel("programs/exact:sample_highest")(*shape, words)
        source.kernel("programs/exact:add_digits")(*shape, (*words, digits[at]))
    found = [(0, 0)] * len(arrays)
    for (of, _), (*own, not_finite) in zip(parts, digits.view(np.int64).get().tolist(), strict=True):
        total = sum(digit << 32 * limb for limb, digit in enumerate(own))
        found[of] = found[of][0] + total, found[of][1] + not_finite
    return found


def _parts(values: Any) -> list[Any]:
    """The values in parts for a set of digits each; integers in one part."""
    if values.dtype != np.float64 or not len(values):
        return [values]
    whole = cupy.ascontiguousarray(values)
    return [whole[first : first + MAX_VALUES] for first in range(0, len(whole), MAX_VALUES)]
