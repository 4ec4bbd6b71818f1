"""Gather and scatter, by CuPy."""

from __future__ import annotations

from typing import Any


def take(values: Any, index: Any) -> Any:
    """`values[index]`."""
    return values[index]


def store(target: Any, index: Any, values: Any) -> None:
    """`target[index] = values`."""
    target[index] = values
