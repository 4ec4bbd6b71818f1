"""What every schedule of bounding has in common: what it works with, where it stands, what it ends with."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..tasks.bound import band
from ..tasks.subgraph import PartitionCounts
from .engine import Engine, Future
from .manifest import BoundingRecord
from .rounds import Round
from .settings import BoundingSettings
from .telemetry import Events

__all__ = ["Bounded", "Schedule", "Search"]


@dataclass(frozen=True)
class Bounded:
    """Where a schedule ended."""

    intervals: list[Future]
    """[partitions] Intervals of the owned edges."""
    record: BoundingRecord
    converged: bool


@dataclass(frozen=True)
class Search:
    """What a schedule works with."""

    engine: Engine
    events: Events
    subgraphs: list[Future]
    counts: Sequence[PartitionCounts]
    settings: BoundingSettings

    def highest(self) -> int:
        """A value that no λ exceeds, from the supports of all partitions."""
        histograms = self.engine.peek(self.subgraphs, band.support_histogram)
        total = np.zeros(max(map(len, histograms), default=0), np.int64)
        for histogram in histograms:
            total[: len(histogram)] += histogram
        return band.highest_lambda(total)


class Schedule(ABC):
    """A way to λ, followed exchange by exchange. Between two of them it can be kept: its `round`, and its `facts`."""

    name: ClassVar[str]
    """Of its tasks."""

    round: Round | None = None
    """Where the partitions are; None before anything was done."""

    exchanges = 0
    """Exchanges that it has made."""

    def __init__(self, search: Search) -> None:
        self.search = search

    @abstractmethod
    def start(self) -> None:
        """Begin."""

    @abstractmethod
    def resume(self, facts: Mapping[str, Any], round_: Round) -> None:
        """Go on from there instead; the exchanges until then are in the search's events."""

    @property
    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """What the driver knows, as JSON values."""

    @property
    def reached(self) -> dict[str, int]:
        """How far the search has come, as events tell it."""
        return {"exchange": self.exchanges}

    @property
    @abstractmethod
    def done(self) -> bool:
        """Whether λ is found."""

    @abstractmethod
    def exchange(self, seconds: float | None) -> None:
        """Make the next exchange; one that takes long is interrupted after so many seconds."""

    @abstractmethod
    def end(self) -> Bounded:
        """End here, with λ or with an interval for each edge."""
