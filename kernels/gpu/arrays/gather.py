"""Gather, scatter and positions, by CuPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cupy
import numpy as np


def take(values: Any, index: Any) -> Any:
    """`values[index]`."""
    return values[index]


def nonzero(values: Any) -> Any:
    """The positions of the values that are not 0."""
    return cupy.flatnonzero(values).astype(cupy.int32)


def number_marked(marked: Any) -> Any:
    """The number of each marked value."""
    return cupy.cumsum(marked, dtype=np.int32) - np.int32(1)


def join(parts: Sequence[Any]) -> Any:
    """The parts one after the other."""
    return cupy.concatenate(parts)


def store(target: Any, index: Any, values: Any) -> None:
    """`target[index] = values`."""
    target[index] = values
