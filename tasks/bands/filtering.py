"""The coarse filter: assigns each edge to a band of levels, by removing edges below ascending thresholds.

For a threshold t the filter removes all edges with fewer than t triangles. This destroys triangles of other edges, so
it repeats the pass until every remaining edge has at least t triangles. The edges that are removed between two
thresholds s < t are a band: their λ is at least s and below t. In a pass each worker removes its share of the edges,
which lowers the counts of triangles of other edges. The workers then add up the amounts.

The t-truss is unique, so λ is exact whatever the thresholds are; they decide how evenly bands are divided. The filter
does not know λ. It chooses each threshold by the counts of the remaining edges (`next_threshold`), and undoes a step to
a threshold (a *jump*) that removes too much. docs/engineering/bands.md has the measurements.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from ... import kernels
from ...kernels.filters import EDGE_WORK, Filtering, Frontier, Removed, Survey
from ...kernels.graph import IntArray, LongArray, Topology
from ...kernels.runtime.sizes import SizedArrays
from ..errors import ClusterLost, InternalError
from .sums import WorkerSums

BANDS_PER_WORKER, BANDS_PER_GPU = 2, 1
"""Bands for each worker that the filter aims at. A GPU gets one: building the rows of a second band takes longer than
an uneven division of the work costs.
"""
STEP, LEAST_STEP = 2, 16
"""A jump raises the threshold by at most 1 / STEP of it, or by LEAST_STEP if that is more: a farther jump may set off a
long cascade of removals.
"""
OVERSHOT = 3
"""A jump of several levels is undone if it takes more than OVERSHOT times the work aimed at, or if one of its passes
takes more than OVERSHOT times the work of its first pass, as then each pass sets off a larger one.
"""
SMALL = 1 / 250
"""A pass with less than this share of a worker's work is small: each worker makes all of it, without an exchange."""
SINGLE = 1 / 8
"""A band of a single level is not merged with the band before if it has more than this share of the aimed work."""
LAST_STOP = 2**31 - 1
"""The end of the last band."""


@dataclass(frozen=True)
class FilterFigures:
    """What a filter has done, the same on all workers except `bytes`."""

    passes: int = 0
    exchanges: int = 0
    """Passes whose lowered counts were added up over the workers."""
    taken_back: int = 0
    """Passes of jumps that were undone."""
    removed: int = 0
    """Triangles destroyed in all passes, including those that were undone."""
    bytes: int = 0
    """Bytes that this worker has received."""


@dataclass(frozen=True)
class Bands(SizedArrays):
    """The bands of a graph: all of them after the filter, or the bands so far. The same on all workers."""

    band: IntArray
    """[edges] the band of each edge; -1 for edges that are left to the filter."""
    start: IntArray
    """[edges] the triangles of each edge when its band began; for edges that are left to the filter, at the last
    threshold.
    """
    stops: tuple[int, ...] = ()
    """[bands] the first level above each band."""
    work: tuple[int, ...] = ()
    """[bands] the work of removing each band: its triangles, and EDGE_WORK for each edge."""
    single: tuple[bool, ...] = ()
    """[bands] whether all edges of the band have the level before its stop."""
    total: int = 0
    """Triangles of the graph."""
    filtered: bool = False
    """Whether each edge has its band."""
    figures: FilterFigures = field(default_factory=FilterFigures)

    @property
    def threshold(self) -> int:
        """The last threshold."""
        return self.stops[-1] if self.stops else 0

    def numbered(self) -> IntArray:
        """[edges] the band of each edge; the number of bands for edges that are left to the filter."""
        return np.where(self.band < 0, np.int32(len(self.stops)), self.band)

    def first_level(self, band: int) -> int:
        """The first level of a band."""
        return self.stops[band - 1] if band else 0


class CoarseFilter:
    """The filter on one of several workers, which all make the same calls. Mutable."""

    def __init__(
        self, topology: Topology, count: IntArray, sums: WorkerSums, before: Bands | None = None, least_bands: int = 0
    ) -> None:
        """`count` [edges] are the triangles of each edge of the graph. The filter continues from `before`, if it is
        given.

        The filter aims at `least_bands` bands at least.
        """
        self._sums = sums
        if before is None:
            self._band = np.full_like(count, -1)
            self._start = count.copy()
            self._stops: list[int] = []
            self._work: list[int] = []
            self._single: list[bool] = []
            counts, figures = int(count.sum(dtype=np.int64)), FilterFigures()
            if counts % 3:
                raise InternalError(f"the triangles of all edges add up to {counts:,}, which is not divisible by three")
            self._total = counts // 3
        else:
            self._band, self._start = before.band.copy(), before.start.copy()
            self._stops, self._work = list(before.stops), list(before.work)
            self._single, self._total, figures = list(before.single), before.total, before.figures
        self._passes, self._taken_back, self._removed = figures.passes, figures.taken_back, figures.removed
        self._exchanges, self._bytes = figures.exchanges, figures.bytes
        self._number: IntArray | None = None
        if before is None:
            self._part: Filtering = kernels.filtering(topology, self._start.copy())
        else:
            self._number = kept = kernels.nonzero(self._band < 0)
            part = Topology(kernels.take(topology.low, kept), kernels.take(topology.high, kept), topology.vertices)
            self._part = kernels.filtering(part, kernels.take(self._start, kept))
        self._opened: IntArray | None = None
        """[edges of the part] counts at the start of the last band; None until this object has begun a band."""
        self._factor, self._too_far = 1.0, 0
        self._all = self._total + EDGE_WORK * topology.edges
        bands = BANDS_PER_WORKER if kernels.on_host(count) else BANDS_PER_GPU
        self._aim = self._all / max(bands * sums.workers, least_bands)
        self._seconds, self._rate = sums.seconds(), 0.0

    @property
    def bands(self) -> Bands:
        """The bands so far, at a threshold."""
        self._take_counts()
        figures = FilterFigures(
            self._passes,
            self._exchanges + self._sums.exchanges,
            self._taken_back,
            self._removed,
            self._bytes + self._sums.bytes,
        )
        single = tuple(self._single)
        return Bands(
            self._band, self._start, tuple(self._stops), tuple(self._work), single, self._total, figures=figures
        )

    def run(self, seconds: float | None = None, progress: Callable[[int, int], None] | None = None) -> Bands:
        """Filter until each edge has its band, or stop at the first threshold after `seconds`. If a worker is lost,
        return the bands of the last threshold before.

        Calls `progress(threshold, edges left)` after each threshold. Raises InternalError if the workers' counts
        differ, or if the counts did not fall by the triangles that were removed; and the errors of `Carrier.exchange`
        except ClusterLost.
        """
        try:
            return self._run(seconds, progress)
        except ClusterLost:
            return self.bands

    def _run(self, seconds: float | None, progress: Callable[[int, int], None] | None) -> Bands:
        deadline = None if seconds is None else time.monotonic() + seconds
        before = self._survey(self._stops[-1] if self._stops else 0)
        while self._part.left and self._left_work(before) > self._aim:
            before = self._next_band(before)
            if progress is not None:
                progress(self._stops[-1], self._part.left)
            if deadline is not None and max(self._agreed([int(time.monotonic() >= deadline)]))[0]:
                return self.bands
        if self._part.left:
            self._take_counts()
            self._band[self._band < 0] = len(self._stops)
            self._append(LAST_STOP, self._left_work(before), False)
        return replace(self.bands, filtered=True)

    def _next_band(self, before: Survey) -> Survey:
        """Make a jump to the next threshold. Returns the counts there."""
        part, threshold = self._part, self._stops[-1] if self._stops else 0
        start, left = part.count.copy(), part.left
        least = max(before.least, threshold) + 1
        while True:
            stop = next_threshold(before.listed, threshold, self._aim, self._factor)
            if threshold < self._too_far:
                stop = max(min(stop, (threshold + self._too_far) // 2), least)
            passes = self._passes
            try:
                done, removed, work = self._remove_below(stop, np.inf if stop <= least else OVERSHOT * self._aim)
                after = self._survey(stop) if done else before
            except ClusterLost:
                part.restore(start, left)
                raise
            listed = before.listed[min(stop, len(before.listed) - 1)]
            self._factor = max(work / max(int(listed), 1), 1 / 3)
            if done:
                break
            self._too_far = stop
            self._taken_back += self._passes - passes
            part.restore(start, left)
        missing = before.counts - after.counts
        if missing != 3 * removed:
            raise InternalError(
                f"the filter removed {removed:,} triangles below {stop}, and counts fell by {missing:,}"
            )
        gone = kernels.nonzero((start >= 0) & (part.count < 0))
        self._close(stop, work, stop <= least, gone, start)
        if part.wasteful:
            kept, self._part = part.smaller()
            self._number = self._numbers(kept)
            assert self._opened is not None
            self._opened = kernels.take(self._opened, kept)
        return after

    def _close(self, stop: int, work: int, single: bool, gone: IntArray, start: IntArray) -> None:
        """End a band at a threshold, or merge it with the band before if their work is at most the work aimed at."""
        single = single and work > SINGLE * self._aim
        grows = self._opened is not None and not self._single[-1] and not single
        if grows and self._work[-1] + work <= self._aim:
            self._stops[-1] = stop
            self._work[-1] += work
        else:
            self._append(stop, work, single)
            self._opened = start
        numbers = self._numbers(gone)
        kernels.store(self._band, numbers, np.full_like(gone, len(self._stops) - 1))
        assert self._opened is not None
        kernels.store(self._start, numbers, kernels.take(self._opened, gone))

    def _left_work(self, found: Survey) -> int:
        return found.counts // 3 + EDGE_WORK * self._part.left

    def _append(self, stop: int, work: int, single: bool) -> None:
        self._stops.append(stop)
        self._work.append(work)
        self._single.append(single)

    def _numbers(self, edges: IntArray) -> IntArray:
        """Numbers in the graph of edges of the part."""
        return edges if self._number is None else kernels.take(self._number, edges)

    def _take_counts(self) -> None:
        """Store the counts of the remaining edges. A filter that resumes from these does not extend the last band."""
        left = kernels.nonzero(self._part.count >= 0)
        kernels.store(self._start, self._numbers(left), kernels.take(self._part.count, left))

    def _remove_below(self, threshold: int, most: float) -> tuple[bool, int, int]:
        """Remove the edges below a threshold, in passes, until none is left below it.

        Returns whether the removal is complete, the triangles that were destroyed, and the work. Stops between two
        passes if the work exceeds `most` or, with a finite `most`, if a pass takes too much more work than the first
        one; see OVERSHOT.
        """
        removed, work, first = 0, 0, 0
        small = SMALL * self._all / self._sums.workers
        frontier = self._part.find(threshold)
        while frontier.edges:
            did, frontier = self._pass(frontier, small)
            removed, work, first = removed + did.triangles, work + did.work, first or did.work
            if work > most or (most < np.inf and did.work > OVERSHOT * first and did.work > small):
                return False, removed, work
        return True, removed, work

    def _pass(self, frontier: Frontier, small: float) -> tuple[Removed, Frontier]:
        """Make one pass, or several small ones. Returns what was removed, and the edges of the next pass."""
        part, workers = self._part, self._sums.workers
        alone = max(small, self._seconds * self._rate * workers / max(workers - 1, 1))
        if workers == 1 or frontier.work < alone:
            removed, following = part.remove_alone(int(alone))
        else:
            started = time.perf_counter()
            triangles = part.remove_share(self._sums.rank, workers)
            facts = self._sums.add(part, (triangles, int(1e6 * (time.perf_counter() - started)) + 1))
            triangles, microseconds = (sum(values) for values in zip(*facts, strict=True))
            removed, following = Removed(frontier.edges, triangles, 1), part.end_pass()
            self._rate = 1e6 * removed.work / microseconds
        self._passes += removed.passes
        self._removed += removed.triangles
        return removed, following

    def _survey(self, threshold: int) -> Survey:
        """The counts at a threshold, which the workers compare."""
        found = self._part.survey(threshold)
        if len({tuple(own) for own in self._agreed([found.digest, found.counts, self._part.left])}) > 1:
            raise InternalError(f"the workers' counts of triangles differ at level {threshold}")
        return found

    def _agreed(self, values: list[int]) -> list[list[int]]:
        return self._sums.facts(values) if self._sums.workers > 1 else [values]


def next_threshold(listed: LongArray, threshold: int, aim: float, factor: float) -> int:
    """The highest threshold for which removing the edges below it is expected to take at most the work `aim`.

    `listed` [t] is the work of the first pass for threshold t. In the jump before, all passes together took `factor`
    times the work of the first one, and the next jump is expected to do the same.
    """
    least = int(np.searchsorted(listed, 0, "right"))  # nothing is removed below the least count
    most = int(np.searchsorted(listed, aim / factor, "right")) - 1
    return max(min(most, max(least, threshold + 1) + max(threshold // STEP, LEAST_STEP)), least, threshold + 1)
