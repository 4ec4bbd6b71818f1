"""The interface of all schedules of bounding: their context, their steps and their result."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...tasks.bound import band
from ...tasks.graph.subgraph import PartitionCounts
from ..cluster.engine import Engine, Future
from ..monitor.events import Events
from ..output.manifest import BoundingRecord
from ..settings.models import BoundingSettings
from .rounds import Round


@dataclass(frozen=True)
class BoundingResult:
    """The result of a schedule."""

    intervals: list[Future]
    """[partitions] Intervals of the owned edges."""
    record: BoundingRecord
    converged: bool
    peeled: Future | None = None
    """Outcome of the peeling of the only partition, if its order was to be recorded."""


@dataclass(frozen=True)
class BoundingContext:
    """The engine, graph and settings of a schedule."""

    engine: Engine
    events: Events
    subgraphs: list[Future]
    counts: Sequence[PartitionCounts]
    settings: BoundingSettings
    record_order: bool = False
    """Whether a peeling of the only partition records its order."""
    beside: Callable[[], None] = lambda: None
    """Starts tasks in the background; called each time that the tasks of an exchange have started. They come first: a
    busy worker takes long to start a task.
    """

    def highest(self) -> int:
        """An upper limit of λ, from the supports of all partitions."""
        histograms = self.engine.peek(self.subgraphs, band.support_histogram)
        total = np.zeros(max(map(len, histograms), default=0), np.int64)
        for histogram in histograms:
            total[: len(histogram)] += histogram
        return band.highest_lambda(total)


class Schedule(ABC):
    """Finds λ exchange by exchange. Between two exchanges a checkpoint can store it, as its `round` and its `facts`."""

    stop_seconds = 0.0
    """What it takes to stop between two exchanges and to start again."""

    name: ClassVar[str]
    """Name of its tasks."""

    round: Round | None = None
    """The states of the partitions; None before the first task."""

    exchanges = 0
    """Exchanges made so far."""

    def __init__(self, context: BoundingContext) -> None:
        self.context = context

    @abstractmethod
    def start(self) -> None:
        """Start from the graph."""

    @abstractmethod
    def resume(self, facts: Mapping[str, Any], round_: Round) -> None:
        """Resume from a checkpoint instead. The context's events hold the exchanges until then."""

    @property
    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """The driver's state for a checkpoint, as JSON values."""

    @property
    def reached(self) -> dict[str, int]:
        """The progress, as events report it."""
        return {"exchange": self.exchanges}

    @property
    @abstractmethod
    def done(self) -> bool:
        """Whether λ is known for all edges."""

    @abstractmethod
    def exchange(self, seconds: float | None) -> None:
        """Make the next exchange. Peeling stops after `seconds`, at the end of a level."""

    @abstractmethod
    def end(self) -> BoundingResult:
        """End, with λ or an interval for each edge."""
