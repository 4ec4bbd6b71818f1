"""Iterations of the methods for study: the record of each one, the shares of the workers, and when they end.

Every worker holds a copy of the graph and the same bounds. An iteration evaluates edges; the share of one worker is its
*partition*. Each worker sends the others the values that it lowered, and by how much: these are the *cut-edge
messages*.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...kernels.graph import IntArray, LongArray
from ...kernels.runtime.sizes import SizedArrays
from ..bands.sums import WorkerSums

_now = time.perf_counter
Progress = Callable[[int, int], None]
"""Gets the lowest level of the edges whose λ is not known, and their number."""


class Iteration(NamedTuple):
    """One iteration, the same on all workers except `bytes` and `microseconds`."""

    evaluations: int
    """Edges that were evaluated."""
    messages: int
    """Lowered values that workers told each other."""
    bytes: int
    """Bytes that this worker has received."""
    open_bands: int
    """Bands of more than one level after it."""
    unsettled: int
    """Edges whose λ is not known after it."""
    microseconds: int


@dataclass(frozen=True)
class Iterated(SizedArrays):
    """The state of a search between two iterations, the same on all workers."""

    iterations: LongArray
    """[iterations, fields of Iteration] what was done so far."""

    @property
    def levels(self) -> int:
        """Iterations so far: the steps of these methods."""
        return len(self.iterations)

    @property
    def exchanges(self) -> int:
        """Iterations so far."""
        return len(self.iterations)

    @property
    def evaluations(self) -> int:
        """Edges that were evaluated, in all iterations."""
        return int(self.iterations[:, 0].sum())


class Clock:
    """Measures one iteration from its start."""

    def __init__(self, sums: WorkerSums | None) -> None:
        self._sums, self._started = sums, _now()
        self._before = self._told()

    def _told(self) -> tuple[int, int]:
        return (0, 0) if self._sums is None else (self._sums.messages, self._sums.bytes)

    def ended(self, evaluations: int, open_bands: int, unsettled: int) -> Iteration:
        """What the iteration did."""
        messages, received = (now - before for now, before in zip(self._told(), self._before, strict=True))
        passed = int(1e6 * (_now() - self._started))
        return Iteration(evaluations, messages, received, open_bands, unsettled, passed)


def record(iterations: Sequence[Iteration], before: LongArray | None = None) -> LongArray:
    """int64 [iterations, fields of Iteration], after those `before`."""
    rows = np.array(iterations, np.int64).reshape(-1, len(Iteration._fields))
    return rows if before is None else np.concatenate([before, rows])


def share_of(edges: IntArray, sums: WorkerSums) -> IntArray:
    """The share of this worker, about as many edges as every other has."""
    return np.array_split(edges, sums.workers)[sums.rank]


def any_passed(sums: WorkerSums | None, deadline: float | None) -> bool:
    """Whether the deadline has passed on some worker: all workers get the same answer."""
    passed = deadline is not None and time.monotonic() >= deadline
    if sums is None or deadline is None:
        return passed
    return any(own[0] for own in sums.facts([int(passed)]))
