"""Banding: one partition's exchange of the filters that halve every band.

An edge's band is an interval [lo, hi) that holds its λ; bands are disjoint, so `lo` names one. In the filter of a band
with threshold t an edge falls when fewer than t of its triangles have their other edges in higher bands or standing in
its own. When no partition lets anything fall that another must hear of, the filter is silent: those that stand have λ
≥ t, the fallen λ < t. The source's BiTriDN (Wang, Zhang, Tan and Tung, PVLDB 2010) raises the lower end earlier, which
is unsound.

Nothing is counted twice. What an edge has left when its filter falls silent is what it starts with in the upper half,
and what it had at the start of this filter is what it starts with in the lower half.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels.graph import Adjacency
from ...kernels.held import Held
from .. import order
from ..messages import Bundle, bundle
from ..subgraph import Subgraph
from .intervals import Intervals, intervals

COMPACT_AT = 0.7
"""Rows are compacted when less than this share of their edges lies in an open band or above one."""

EdgeNumbers: TypeAlias = NDArray[np.int32]
"""Numbers, at their owner, of edges that fell: all that a message of banding holds."""


@dataclass(frozen=True)
class Order:
    """Write the outcome of a band's filter and start the next ones; the same for every partition."""

    band: int
    """Lower end of the band."""

    commit: int
    """The threshold t whose filter is silent: edges that stand move to band t. 0 for none, at the start."""

    lower: int
    """Threshold of the next filter in the band (or its lower half, after a commit); 0 for none, when it is settled."""

    upper: int
    """Threshold of the next filter in the upper half; 0 for none."""


@dataclass(frozen=True)
class Bands(Held):
    """State of a partition between two exchanges."""

    band: NDArray[np.int32]
    """[local edges] lower end of the edge's band."""

    count: NDArray[np.int32]
    """[local edges] triangles left in the running filter, GONE if fallen; ghosts start with UNCOUNTED."""

    start: NDArray[np.int32]
    """[local edges] triangles at the start of the filter."""

    threshold: NDArray[np.int32]
    """[highest band + 1] threshold of each band's filter, 0 for none."""

    rows: Adjacency
    """Of the edges that still matter."""

    def kept(self, subgraph: Subgraph, mail: Mapping[int, EdgeNumbers]) -> KeptBands:
        """What is to be kept of it and of the mail under way."""
        return KeptBands(self.band, self.count, self.start, self.threshold, mail)


@dataclass(frozen=True)
class KeptBands(Held):
    """What a later run needs of a partition's state and of the mail it has under way."""

    band: NDArray[np.int32]
    """[local edges] as in Bands, like the three that follow."""

    count: NDArray[np.int32]
    """[local edges]"""

    start: NDArray[np.int32]
    """[local edges]"""

    threshold: NDArray[np.int32]
    """[highest band + 1]"""

    mail: Mapping[int, EdgeNumbers]
    """Receiver → what it has not been told yet."""

    def resumed(self, subgraph: Subgraph) -> tuple[Bands, Bundle[EdgeNumbers]]:
        """The state and the mail that they were; rows are built anew."""
        bands = Bands(self.band, self.count, self.start, self.threshold, kernels.adjacency(subgraph.topology))
        return bands, bundle(subgraph.partition, self.mail)


@dataclass(frozen=True)
class BandReport:
    """What the driver learns of one partition's exchange."""

    fallen: Mapping[int, int]
    """Band → owned edges that fell in this exchange."""

    mailed: Mapping[int, int]
    """Band → those of them that another partition must hear of."""

    evaluations: int
    """Edges that fell here, ghosts included: each time its triangles were looked at."""

    messages: int
    """Edge numbers sent."""


def start_bands(subgraph: Subgraph, highest: int) -> Bands:
    """All edges in one band from 0, nothing fallen; no λ of the run exceeds `highest`."""
    count = subgraph.first_counts()
    table = np.zeros(highest + 2, np.int32)
    return Bands(np.zeros_like(count), count, count, table, kernels.adjacency(subgraph.topology))


def support_histogram(subgraph: Subgraph) -> NDArray[np.int64]:
    """[highest support + 1] owned edges with each support, those without triangles left out."""
    return kernels.to_host(np.bincount(subgraph.support[subgraph.number]))


def highest_lambda(histogram: NDArray[np.int64]) -> int:
    """The largest k such that (k + 1)(k + 2) / 2 edges have at least k triangles: no λ exceeds it.

    A subgraph whose edges all have k triangles has a vertex of degree k + 1, and k + 2 vertices of that degree.
    """
    at_least = np.cumsum(histogram[::-1])[::-1]
    k = np.arange(len(histogram))
    return int(np.flatnonzero(at_least >= (k + 1) * (k + 2) // 2).max(initial=0))


def band_exchange(
    subgraph: Subgraph,
    bands: Bands,
    batches: Sequence[Sequence[Order]],
    floor: int,
    parts: Mapping[int, EdgeNumbers],
) -> tuple[Bands, Bundle[EdgeNumbers], BandReport]:
    """Carry out orders, oldest batch first, take in what fell elsewhere, and let fall until nothing falls here.

    `floor` is the lowest open band: the edges below it matter to none.
    """
    bands, falling = carry_out(bands, batches)
    count = bands.count if batches else bands.count.copy()  # orders have made new arrays
    told = _ghosts(subgraph, parts)
    frontier = np.concatenate([falling, told[count[told] >= 0]])
    rows = _compacted(bands, floor) if batches else bands.rows
    cascade = kernels.cascade(subgraph.topology, rows)
    fallen, _ = cascade.run(rows, count, frontier, bands.threshold, bands.band)
    mail, fell, mailed = _mail(subgraph, fallen, bands.band)
    report = BandReport(fell, mailed, len(fallen), sum(mail.rows.values()))
    return replace(bands, count=count, rows=rows), mail, report


def carry_out(bands: Bands, batches: Sequence[Sequence[Order]]) -> tuple[Bands, NDArray[np.int32]]:
    """Carry out orders, oldest batch first; also the edges that start to fall by the newest."""
    falling = bands.count[:0]
    for batch in batches:
        threshold, touched, commit = _tables(bands.threshold, batch)
        band, count, start, falling = kernels.reband(bands.band, bands.count, bands.start, commit, touched, threshold)
        bands = replace(bands, band=band, count=count, start=start, threshold=threshold)
    return bands, falling


def _compacted(bands: Bands, floor: int) -> Adjacency:
    """The rows, without edges below `floor` once they are many."""
    matters = bands.band >= floor
    if int(np.count_nonzero(matters)) >= COMPACT_AT * len(bands.rows.edge) / 2:
        return bands.rows
    return kernels.compact(bands.rows, matters)


def band_intervals(
    subgraph: Subgraph, bands: Bands, batches: Sequence[Sequence[Order]], upper: Mapping[int, int]
) -> Intervals:
    """The interval of each owned edge after the last orders; `upper` gives the largest value in each open band."""
    bands, _ = carry_out(bands, batches)
    low = bands.band[subgraph.owned]
    top = np.arange(len(bands.threshold), dtype=np.int32)
    for lo, highest in upper.items():
        top[lo] = highest
    return intervals(subgraph, low, np.asarray(top, like=low)[low])


def _tables(
    threshold: NDArray[np.int32], batch: Sequence[Order]
) -> tuple[NDArray[np.int32], NDArray[np.bool_], NDArray[np.int32]]:
    threshold = threshold.copy()
    touched = np.zeros(len(threshold), np.bool_)
    commit = np.zeros(len(threshold), np.int32)
    for given in batch:
        touched[given.band] = True
        commit[given.band] = given.commit
        threshold[given.band] = given.lower
        if given.commit:
            threshold[given.commit] = given.upper
    return threshold, touched, commit


def _ghosts(subgraph: Subgraph, parts: Mapping[int, EdgeNumbers]) -> NDArray[np.int32]:
    """Local numbers of the ghosts that messages name."""
    found = [subgraph.ghost[:0]]
    for owner, numbers in parts.items():
        first, stop = subgraph.ghost_offsets[owner], subgraph.ghost_offsets[owner + 1]
        found.append(subgraph.ghost[first + np.searchsorted(subgraph.ghost_number[first:stop], numbers)])
    return np.concatenate(found)


def subscribers_of(subgraph: Subgraph, edges: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int16]]:
    """Of local edges, positions in `subgraph.owned` repeated for each subscriber, and those subscribers."""
    place = np.searchsorted(subgraph.owned, edges)
    place = (
        place[subgraph.owned[np.minimum(place, len(subgraph.owned) - 1)] == edges] if len(subgraph.owned) else place[:0]
    )
    first, stop = subgraph.subscriber_offsets[place], subgraph.subscriber_offsets[place + 1]
    starts = order.offsets(stop - first)
    of_edge = kernels.row_numbers(starts)
    entry = (first - starts[:-1])[of_edge] + np.arange(len(of_edge), like=starts)
    return place[of_edge], subgraph.subscriber[entry]


def _mail(
    subgraph: Subgraph, fallen: NDArray[np.int32], band: NDArray[np.int32]
) -> tuple[Bundle[EdgeNumbers], dict[int, int], dict[int, int]]:
    """What fell goes to subscribers; also how many owned edges fell, and how many of them were mailed, by band."""
    place, subscriber = subscribers_of(subgraph, fallen)
    parts = {q: np.sort(subgraph.number[place[subscriber == q]]) for q in np.unique(subscriber).tolist()}
    own = fallen[subgraph.is_owned[fallen]]
    told = subgraph.owned[np.unique(place)]
    return bundle(subgraph.partition, parts), _tally(band[own]), _tally(band[told])


def _tally(bands: NDArray[np.int32]) -> dict[int, int]:
    lows, counts = np.unique(bands, return_counts=True)
    return dict(zip(lows.tolist(), counts.tolist(), strict=True))
