"""What a schedule of bounding ends with."""

from __future__ import annotations

from dataclasses import dataclass

from .engine import Future
from .manifest import BoundingRecord

__all__ = ["Bounded"]


@dataclass(frozen=True)
class Bounded:
    """Where a schedule ended."""

    intervals: list[Future]
    """[partitions] Intervals of the owned edges."""
    record: BoundingRecord
    converged: bool
