"""Banding: one partition's part in one exchange of the filters that halve every band.

An edge's band is an interval [lo, hi) that contains its λ. Bands are disjoint, so `lo` identifies a band. In the filter
of a band with threshold t, an edge is removed when fewer than t of its triangles have both other edges in higher bands,
or in its own band and not removed. The filter has converged when no partition removes an edge that another partition
holds: then the remaining edges have λ ≥ t, and the removed edges λ < t. BiTriDN (Wang, Zhang, Tan and Tung, PVLDB 2010)
raises the lower end earlier, which is unsound.

Triangles are not counted again for the next filters. The remaining edges go on, in the upper half, with the triangles
that they have left. The removed edges go on, in the lower half, with those that they had at the start of the filter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels.graph import Adjacency
from ...kernels.runtime.sizes import SizedArrays
from ..graph.subgraph import Subgraph
from ..ids import order
from ..messages import Bundle, bundle
from .intervals import Intervals, intervals

COMPACT_AT = 0.7
"""Rows are compacted when less than this share of their edges is in the lowest open band or above it."""

EdgeNumbers: TypeAlias = NDArray[np.int32]
"""A message of banding: the numbers, at their owner, of edges that were removed."""


@dataclass(frozen=True)
class Order:
    """Commit the outcome of a band's filter and start the next filters. All partitions get the same orders."""

    band: int
    """Lower end of the band."""

    commit: int
    """The threshold t of the converged filter: remaining edges move to band t. 0 if there is none, at the start."""

    lower: int
    """Threshold of the next filter in the band (its lower half, after a commit); 0 if the band has one value left."""

    upper: int
    """Threshold of the next filter in the upper half; 0 if there is none."""


@dataclass(frozen=True)
class Bands(SizedArrays):
    """State of a partition between two exchanges."""

    band: NDArray[np.int32]
    """[local edges] lower end of the edge's band."""

    count: NDArray[np.int32]
    """[local edges] remaining triangles in the running filter; GONE for removed edges, UNCOUNTED for ghosts at the
    start.
    """

    start: NDArray[np.int32]
    """[local edges] triangles at the start of the filter."""

    threshold: NDArray[np.int32]
    """[highest band + 1] threshold of each band's filter; 0 if none runs."""

    rows: Adjacency
    """Rows of the edges in open bands or above them."""

    def kept(self, subgraph: Subgraph, mail: Mapping[int, EdgeNumbers]) -> KeptBands:
        """The part to store in a checkpoint, with the messages that are not delivered yet."""
        return KeptBands(self.band, self.count, self.start, self.threshold, mail)


@dataclass(frozen=True)
class KeptBands(SizedArrays):
    """A partition's state in a checkpoint, with its undelivered messages."""

    band: NDArray[np.int32]
    """[local edges] as in Bands; so are `count`, `start` and `threshold`."""

    count: NDArray[np.int32]
    """[local edges]"""

    start: NDArray[np.int32]
    """[local edges]"""

    threshold: NDArray[np.int32]
    """[highest band + 1]"""

    mail: Mapping[int, EdgeNumbers]
    """Receiver → undelivered message."""

    def resumed(self, subgraph: Subgraph) -> tuple[Bands, Bundle[EdgeNumbers]]:
        """The state and the messages after a restart. Rows are rebuilt."""
        bands = Bands(self.band, self.count, self.start, self.threshold, kernels.adjacency(subgraph.topology))
        return bands, bundle(subgraph.partition, self.mail)


@dataclass(frozen=True)
class BandReport:
    """Counts of one partition's exchange, for the driver."""

    fallen: Mapping[int, int]
    """Band → owned edges that were removed in this exchange."""

    mailed: Mapping[int, int]
    """Band → how many of these edges another partition holds as ghosts."""

    evaluations: int
    """Edges removed here, ghosts included. The triangles of each are read once."""

    messages: int
    """Number of edge numbers sent."""


def start_bands(subgraph: Subgraph, highest: int) -> Bands:
    """The initial state: all edges in band 0, none removed. `highest` bounds every λ of the run."""
    count = subgraph.first_counts()
    table = np.zeros(highest + 2, np.int32)
    return Bands(np.zeros_like(count), count, count, table, kernels.adjacency(subgraph.topology))


def support_histogram(subgraph: Subgraph) -> NDArray[np.int64]:
    """[highest support + 1] number of owned edges by support; edges without triangles are not counted."""
    support = subgraph.support[subgraph.number]
    return kernels.to_host(kernels.bincount(support, int(support.max()) + 1 if len(support) else 0))


def highest_lambda(histogram: NDArray[np.int64]) -> int:
    """An upper bound of every λ: the largest k such that (k + 1)(k + 2) / 2 edges have at least k triangles.

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
    """Carry out orders, oldest batch first, apply removals of other partitions, and remove edges until none qualifies.

    `floor` is the lowest open band. Edges below it affect no filter.
    """
    bands, falling = carry_out(bands, batches)
    count = bands.count if batches else bands.count.copy()  # orders make new arrays
    ghosts = _ghosts(subgraph, parts)
    frontier = np.concatenate([falling, ghosts[count[ghosts] >= 0]])
    rows = _compacted(bands, floor) if batches else bands.rows
    cascade = kernels.cascade(subgraph.topology, rows)
    removed, _ = cascade.run(rows, count, frontier, bands.threshold, bands.band)
    messages, by_band, sent_by_band = _messages(subgraph, removed, bands.band)
    report = BandReport(by_band, sent_by_band, len(removed), sum(messages.rows.values()))
    return replace(bands, count=count, rows=rows), messages, report


def carry_out(bands: Bands, batches: Sequence[Sequence[Order]]) -> tuple[Bands, NDArray[np.int32]]:
    """Carry out orders, oldest batch first. Returns the new state and the edges below their new threshold."""
    falling = bands.count[:0]
    for batch in batches:
        threshold, touched, commit = _tables(bands.threshold, batch)
        band, count, start, falling = kernels.reband(bands.band, bands.count, bands.start, commit, touched, threshold)
        bands = replace(bands, band=band, count=count, start=start, threshold=threshold)
    return bands, falling


def _compacted(bands: Bands, floor: int) -> Adjacency:
    """The rows, compacted to edges from `floor` on if enough edges lie below it."""
    needed = bands.band >= floor
    if int(np.count_nonzero(needed)) >= COMPACT_AT * len(bands.rows.edge) / 2:
        return bands.rows
    return kernels.compact(bands.rows, needed)


def band_intervals(
    subgraph: Subgraph, bands: Bands, batches: Sequence[Sequence[Order]], upper: Mapping[int, int]
) -> Intervals:
    """The interval of each owned edge after the last orders. `upper` maps each open band to its largest value."""
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
    for step in batch:
        touched[step.band] = True
        commit[step.band] = step.commit
        threshold[step.band] = step.lower
        if step.commit:
            threshold[step.commit] = step.upper
    return threshold, touched, commit


def _ghosts(subgraph: Subgraph, parts: Mapping[int, EdgeNumbers]) -> NDArray[np.int32]:
    """Local numbers of the ghosts in messages."""
    found = [subgraph.ghost[:0]]
    for owner, numbers in parts.items():
        first, stop = subgraph.ghost_offsets[owner], subgraph.ghost_offsets[owner + 1]
        found.append(subgraph.ghost[first + np.searchsorted(subgraph.ghost_number[first:stop], numbers)])
    return np.concatenate(found)


def subscribers_of(subgraph: Subgraph, edges: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int16]]:
    """The subscriptions to local edges: positions of the edges in `subgraph.owned`, and the subscribers."""
    position = np.searchsorted(subgraph.owned, edges)
    if len(subgraph.owned):
        position = position[subgraph.owned[np.minimum(position, len(subgraph.owned) - 1)] == edges]
    else:
        position = position[:0]
    first, stop = subgraph.subscriber_offsets[position], subgraph.subscriber_offsets[position + 1]
    starts = order.offsets(stop - first)
    of_edge = kernels.row_numbers(starts)
    entry = (first - starts[:-1])[of_edge] + np.arange(len(of_edge), like=starts)
    return position[of_edge], subgraph.subscriber[entry]


def _messages(
    subgraph: Subgraph, removed: NDArray[np.int32], band: NDArray[np.int32]
) -> tuple[Bundle[EdgeNumbers], dict[int, int], dict[int, int]]:
    """Messages with removed edges to their subscribers; and the owned edges removed, and those of them sent, by
    band.
    """
    position, subscriber = subscribers_of(subgraph, removed)
    parts = {q: np.sort(subgraph.number[position[subscriber == q]]) for q in np.unique(subscriber).tolist()}
    own = removed[subgraph.is_owned[removed]]
    sent = subgraph.owned[np.unique(position)]
    return bundle(subgraph.partition, parts), _tally(band[own]), _tally(band[sent])


def _tally(bands: NDArray[np.int32]) -> dict[int, int]:
    lows, counts = np.unique(bands, return_counts=True)
    return dict(zip(lows.tolist(), counts.tolist(), strict=True))
