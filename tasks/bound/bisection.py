"""Bands that are halved: a filter at the middle of a band divides its edges between the lower and the upper half.

An edge's *band* is a range of levels that contains its λ. The filter at a threshold removes the edges of a band with
fewer triangles than the threshold, in passes, until every remaining edge has as many: a remaining edge has λ of at
least the threshold, and a removed edge has less. The filter keeps the edges of higher bands, and leaves out those of
lower bands.

This is the bisection of BiTriDN (Wang, Zhang, Tan and Tung, PVLDB 2010), made sound: BiTriDN raises the lower end of an
edge before the filter has ended, while its neighbours may still be removed. Triangles are not counted again: in their
new bands the remaining edges start with the triangles that they have left, and the removed edges with those that they
had before the filter.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels.graph import UNCOUNTED, IntArray, LongArray, Topology
from ..bands.sums import WorkerSums
from ..graph import Subgraph
from .intervals import Intervals, intervals
from .iterations import Clock, Iterated, Iteration, Progress, any_passed, record


@dataclass(frozen=True)
class Halves(Iterated):
    """The bands between two iterations. A band is named by its first level."""

    first: IntArray
    """[edges] first level of the edge's band."""
    start: IntArray
    """[edges] triangles of each edge among those of its band and of higher ones."""
    stop: IntArray
    """[levels] first level above the band that begins at each level."""

    def open_bands(self) -> tuple[IntArray, LongArray]:
        """The bands of more than one level that have edges, ascending, and the number of edges of each."""
        sizes = np.bincount(self.first, minlength=len(self.stop))
        bands = np.flatnonzero((sizes > 0) & (self.stop - np.arange(len(self.stop)) > 1)).astype(np.int32)
        return bands, sizes[bands]

    @property
    def level(self) -> int:
        """The lowest level of edges whose λ is not known."""
        return int(self.open_bands()[0].min(initial=len(self.stop)))

    @property
    def left(self) -> int:
        """Edges whose λ is not known."""
        return int(self.open_bands()[1].sum())


def highest_lambda(support: IntArray) -> int:
    """An upper bound of every λ: the largest k such that (k + 1)(k + 2) / 2 edges have at least k triangles.

    A subgraph whose edges all have k triangles has a vertex of degree k + 1, and k + 2 vertices of that degree.
    """
    counts: NDArray[np.int64] = kernels.to_host(
        kernels.bincount(support, int(support.max()) + 1 if len(support) else 1)
    )
    at_least, k = np.cumsum(counts[::-1])[::-1], np.arange(len(counts))
    return int(np.flatnonzero(at_least >= (k + 1) * (k + 2) // 2).max(initial=0))


def start_halves(support: IntArray) -> Halves:
    """One band of all edges, whose triangles are `support` [edges]."""
    stop = np.arange(1, highest_lambda(support) + 2, dtype=np.int32)
    stop[0] = len(stop)
    return Halves(record([]), np.zeros_like(support), support, stop)


def halve_bands(
    topology: Topology,
    before: Halves,
    sums: WorkerSums | None = None,
    most: int | None = None,
    seconds: float | None = None,
    progress: Progress | None = None,
) -> Halves:
    """Halve the band with most edges, until each has one level: `most` times at most, and until `seconds` have passed.

    In each pass of a filter every worker removes its share of the edges; `sums` adds up over all workers, None for one
    alone. Raises as `WorkerSums.add`.
    """
    deadline = None if seconds is None else time.monotonic() + seconds
    halves = replace(before, first=before.first.copy(), start=before.start.copy(), stop=before.stop.copy())
    done: list[Iteration] = []
    bands, sizes = halves.open_bands()
    while len(bands) and (most is None or len(done) < most):
        if progress is not None:
            progress(int(bands[0]), int(sizes.sum()))
        clock = Clock(sums)
        evaluated = _halve(topology, halves, int(bands[np.argmax(sizes)]), sums)
        bands, sizes = halves.open_bands()
        done.append(clock.ended(evaluated, len(bands), int(sizes.sum())))
        if any_passed(sums, deadline):
            break
    return replace(halves, iterations=record(done, before.iterations))


def _halve(topology: Topology, halves: Halves, band: int, sums: WorkerSums | None) -> int:
    """Divide the edges of a band. Changes the arrays of `halves`. Returns the number of removed edges."""
    stop = int(halves.stop[band])
    middle = (band + stop) // 2
    kept = kernels.nonzero(halves.first >= band)
    part = Topology(kernels.take(topology.low, kept), kernels.take(topology.high, kept), topology.vertices)
    own = kernels.take(halves.first, kept) == band
    # An edge of a higher band is never removed, however many of its triangles are destroyed.
    search = kernels.filtering(part, np.where(own, kernels.take(halves.start, kept), np.int32(UNCOUNTED)))
    frontier = search.find(middle)
    while frontier.edges:
        if sums is None:
            _, frontier = search.remove_alone(0)
        else:
            search.remove_share(sums.rank, sums.workers)
            sums.add(search)
            frontier = search.end_pass()
    remains = np.flatnonzero(own & (search.count >= 0))
    kernels.store(halves.first, kernels.take(kept, remains), np.full(len(remains), middle, np.int32))
    kernels.store(halves.start, kernels.take(kept, remains), kernels.take(search.count, remains))
    halves.stop[band], halves.stop[middle] = middle, stop
    return part.edges - search.left


def bisection_intervals(subgraph: Subgraph, halves: Halves) -> Intervals:
    """The interval of each edge: its band, and at most its triangles there."""
    last = kernels.take(halves.stop, halves.first) - np.int32(1)
    return intervals(subgraph, halves.first, np.minimum(last, halves.start))
