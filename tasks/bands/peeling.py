"""Peeling of one band, and the state of peeling in bands between two tasks, which checkpoints store.

While a band is peeled, the edges of higher bands remain, and those of lower bands are gone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels.graph import IntArray, PeelingStart, Topology
from ...kernels.runtime.sizes import SizedArrays
from ..bound.intervals import Intervals, intervals
from ..device import MemorySpace, move_arrays, place_like
from ..errors import InternalError
from ..graph import Subgraph, WholeGraph
from .filtering import Bands


@dataclass(frozen=True)
class BandState(SizedArrays):
    """How far the peeling of a graph in bands has come."""

    bands: Bands
    low: IntArray
    """[edges] λ of the edges of finished bands, 0 for the others."""
    finished: tuple[int, ...]
    """The finished bands."""
    left: int
    """Edges of unfinished bands, and edges that are left to the filter."""

    @classmethod
    def of(cls, bands: Bands) -> BandState:
        """The state when the filter has finished or stopped. Bands of a single level are finished."""
        low = np.zeros_like(bands.band)
        single = [i for i, one in enumerate(bands.single) if one]
        if single:
            level = np.zeros(len(bands.stops) + 1, np.int32)
            level[single] = np.array(bands.stops)[single] - 1
            low = kernels.take(np.asarray(level, like=low), bands.numbered())
        state = cls(bands, low, tuple(single), 0)
        return replace(state, left=state._count_left())

    def _count_left(self) -> int:
        sizes = self.band_sizes()
        return len(self.low) - int(sizes[list(self.finished)].sum())

    def band_sizes(self) -> NDArray[np.int64]:
        """[bands] edges of each band."""
        return kernels.to_host(kernels.bincount(self.bands.numbered(), len(self.bands.stops) + 1))[:-1]

    def with_bands(self, found: Mapping[int, IntArray]) -> BandState:
        """The state with λ of the edges of more bands."""
        low = self.low.copy()
        for band, own in found.items():
            kernels.store(low, kernels.nonzero(self.bands.band == band), place_like(low, own))
        state = replace(self, low=low, finished=tuple(sorted({*self.finished, *found})))
        return replace(state, left=state._count_left())

    @property
    def unfinished(self) -> list[int]:
        """The bands to be peeled, those with most work first."""
        left = set(range(len(self.bands.stops))) - set(self.finished)
        return sorted(left, key=lambda band: -self.bands.work[band])

    # Properties that every state of peeling has

    @property
    def level(self) -> int:
        """The first level of which not all edges are known."""
        unfinished = self.unfinished
        return self.bands.first_level(min(unfinished)) if unfinished else self.bands.threshold

    @property
    def levels(self) -> int:
        """Bands that are finished: the steps of this method."""
        return len(self.finished)

    @property
    def evaluations(self) -> int:
        """Edges whose λ is known."""
        return len(self.low) - self.left

    @property
    def exchanges(self) -> int:
        """Exchanges of the filter: sums over all workers."""
        return self.bands.figures.exchanges

    def moved(self, space: MemorySpace) -> BandState:
        """The state with its arrays in this memory."""
        return replace(self, bands=move_arrays(self.bands, space), low=space.place(self.low))


def band_intervals(graph: Subgraph | WholeGraph, state: BandState) -> Intervals:
    """The interval of each edge. λ of an edge of an unfinished band is a level of the band, and at most the edge's
    triangles at the start of the band.

    λ of an edge that is left to the filter is between the last threshold and its triangles.
    """
    if not state.left:
        return _intervals(graph, state.low, state.low)
    bands = state.bands
    finished = np.zeros(len(bands.stops) + 1, np.bool_)
    finished[list(state.finished)] = True
    first = np.array([*(bands.first_level(i) for i in range(len(bands.stops))), bands.threshold], np.int32)
    last = np.array([*(stop - 1 for stop in bands.stops), np.iinfo(np.int32).max], np.int32)
    numbered = bands.numbered()
    known = np.asarray(finished, like=state.low)[numbered]
    low = np.where(known, state.low, np.asarray(first, like=state.low)[numbered])
    high = np.minimum(bands.start, np.asarray(last, like=state.low)[numbered])
    return _intervals(graph, low, np.where(known, state.low, high))


def _intervals(graph: Subgraph | WholeGraph, low: IntArray, high: IntArray) -> Intervals:
    if isinstance(graph, Subgraph):
        return intervals(graph, low, high)
    ends = []
    for values in (low,) if low is high else (low, high):
        ends.append(np.zeros_like(graph.support))
        kernels.store(ends[-1], kernels.nonzero(graph.support), values)
    return Intervals(ends[0], ends[-1])


def peel_band(
    topology: Topology, bands: Bands, band: int, progress: Callable[[int, int], None] | None = None
) -> IntArray:
    """λ of the edges of one band, int32, by their numbers. Calls `progress(level, edges of the band left)`.

    Raises InternalError if an edge has fewer triangles than the first level of the band, or remains at its end.
    """
    first, stop = bands.first_level(band), bands.stops[band]
    own = bands.band == band
    size = kernels.total(own)
    least = int(kernels.take(bands.start, kernels.nonzero(own)).min()) if size else first
    if least < first:
        raise InternalError(f"band {band} begins at level {first}, and an edge of it has {least} triangles")
    if bands.single[band]:
        return np.full_like(bands.start, stop - 1, shape=(size,))
    kept = kernels.nonzero(bands.band >= band)
    part = Topology(kernels.take(topology.low, kept), kernels.take(topology.high, kept), topology.vertices)
    higher = kernels.take(bands.band, kept) > band
    peeling = kernels.peeling(part, kernels.take(bands.start, kept), PeelingStart(level=first), higher)
    while peeling.left:
        peeling.advance()
        if progress is not None:
            progress(peeling.level, peeling.left)
    if peeling.level > stop:
        raise InternalError(f"band {band} ends at level {stop - 1}, and an edge of it has λ {peeling.level - 1}")
    return kernels.take(peeling.low, kernels.nonzero(~higher))
