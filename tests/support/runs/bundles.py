"""Bundles of numbers, and functions that take them. Worker processes import them from here."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from edgemill.tasks.messages import Bundle, bundle

Numbers = NDArray[np.int64]


def numbers_of(sender: int, receivers: int) -> Bundle[Numbers]:
    """To receiver r the multiples of r below 10, plus 100 for each sender before; to receiver 0 nothing."""
    return bundle(sender, {to: np.arange(0, 10 if to else 0, to or 1) + 100 * sender for to in range(receivers)})


def sums_of(receiver: int, parts: Mapping[int, Numbers]) -> Bundle[Numbers]:
    """The sum of what each sender sent, in the order of senders, to receiver 0."""
    return bundle(receiver, {0: np.array([part.sum() for part in parts.values()], np.int64)})


def joined(parts: Mapping[int, Numbers]) -> list[list[int]]:
    return [part.tolist() for part in parts.values()]
