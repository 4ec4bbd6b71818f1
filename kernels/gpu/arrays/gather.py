"""Gather and scatter, by CuPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cupy


def take(values: Any, index: Any) -> Any:
    """`values[index]`."""
    return values[index]


def join(parts: Sequence[Any]) -> Any:
    """The parts one after the other."""
    return cupy.concatenate(parts)


def store(target: Any, index: Any, values: Any) -> None:
    """`target[index] = values`."""
    target[index] = values
