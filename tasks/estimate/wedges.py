"""Estimate triangles and clustering from a sample of wedges.

A wedge is a path of two edges. It is closed if a third edge joins its ends.

Seshadhri, Pinar and Kolda, "Triadic measures on graphs: the power of wedge sampling", SDM 2013. A wedge is drawn by its
number: wedges are numbered by their centres in the order of dense numbers. So the sample depends on the seed only, not
on the blocks that the graph is cut into. A block draws the wedges with centres in it, and asks the block of one end
whether the other end is a neighbour.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from ...kernels.runtime.sizes import SizedArrays
from ..ids import order
from ..ids.order import Ints
from ..messages import Bundle, bundle
from ..partition import RangePartitioner
from ..programs.block import GraphBlock

Z = 1.959963984540054
"""Standard deviations of a normal distribution that 95 % of it is within."""


@dataclass(frozen=True)
class WedgeCounts:
    """What the driver needs of one block to number the wedges of all blocks."""

    vertices: int
    centres: int
    """Vertices with at least two neighbours."""
    entries: int
    """Neighbours of all vertices."""
    wedges: int


@dataclass(frozen=True)
class Draws:
    """The sample that all blocks draw: the same numbers in each."""

    seed: int
    samples: int
    wedges: int
    """Wedges of the graph."""
    centres: int
    """Vertices of the graph with at least two neighbours."""

    @property
    def has_all(self) -> bool:
        """Whether the sample is every wedge once."""
        return self.wedges <= self.samples

    @property
    def wedge(self) -> NDArray[np.int64]:
        """[samples] numbers of wedges, each as probable; or all numbers."""
        if self.has_all:
            return np.arange(self.wedges)
        return np.random.default_rng([self.seed, 0]).integers(0, self.wedges, self.samples)

    @property
    def centre(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """[samples] numbers of centres, each as probable, and which of its wedges, as a share of them below 1."""
        drawn = np.random.default_rng([self.seed, 1])
        samples = self.samples if self.centres else 0
        return drawn.integers(0, max(self.centres, 1), samples), drawn.random(samples)


@dataclass(frozen=True)
class WedgeEnds(SizedArrays):
    """The ends of drawn wedges, for the block of the first ends. `len()` is the number of wedges."""

    one: Ints
    """[wedges] dense numbers."""
    other: Ints
    """[wedges] dense numbers."""
    by_centre: NDArray[np.bool_]
    """[wedges] whether the centre was drawn first, for the mean of the clustering coefficients."""

    def __len__(self) -> int:
        return len(self.one)


@dataclass(frozen=True)
class Interval:
    """An estimate, and an interval that contains the true value with a probability of 95 %."""

    likely: float
    low: float
    high: float

    def times(self, factor: float) -> Interval:
        """The estimate of a multiple."""
        return Interval(self.likely * factor, self.low * factor, self.high * factor)


def count_wedges(block: GraphBlock) -> WedgeCounts:
    """The numbers of one block, whose view is "either"."""
    degree = np.diff(block.rows.offsets)
    wedges = int((degree * (degree - 1) // 2).sum())
    return WedgeCounts(len(degree), int(np.count_nonzero(degree > 1)), int(degree.sum()), wedges)


def draw_wedges(block: GraphBlock, home: RangePartitioner, draws: Draws, before: WedgeCounts) -> Bundle[WedgeEnds]:
    """Block → blocks: the drawn wedges with centres in this block, to the blocks of their first ends.

    `before` has the sums of `count_wedges` over all blocks before this one.
    """
    degree = np.diff(block.rows.offsets)
    ends = np.cumsum(degree * (degree - 1) // 2)
    wedge = draws.wedge - before.wedges
    wedge = wedge[(wedge >= 0) & (wedge < (ends[-1] if len(ends) else 0))]
    row = np.searchsorted(ends, wedge, side="right")
    first = wedge - np.concatenate(([0], ends))[row]

    centres = np.flatnonzero(degree > 1)
    centre, share = draws.centre
    here = (centre >= before.centres) & (centre < before.centres + len(centres))
    of_row = centres[centre[here] - before.centres]
    of_wedges = degree[of_row] * (degree[of_row] - 1) // 2
    which = np.minimum((share[here] * of_wedges).astype(np.int64), of_wedges - 1)

    rows = np.concatenate([row, of_row])
    low, high = _pair(np.concatenate([first, which]))
    start = block.rows.offsets[rows]
    one, other = (block.sources[block.rows.source[start + at]] for at in (low, high))
    by_centre = np.arange(len(rows)) >= len(row)
    by_home, cuts = order.group(home(one), home.partitions)
    parts = [by_home[cuts[g] : cuts[g + 1]] for g in range(home.partitions)]
    return bundle(block.group, {g: WedgeEnds(one[at], other[at], by_centre[at]) for g, at in enumerate(parts)})


def _pair(number: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The two positions of each pair, (0, 1), (0, 2), (1, 2), (0, 3) and so on, by its number."""
    high = ((1 + np.sqrt(1 + 8.0 * number)) / 2).astype(np.int64)
    high -= high * (high - 1) // 2 > number  # the root may be rounded to either side
    high += (high + 1) * high // 2 <= number
    return number - high * (high - 1) // 2, high


def count_closed(block: GraphBlock, parts: Mapping[int, WedgeEnds]) -> tuple[int, int]:
    """Of the received wedges, the number of closed ones drawn as wedges, and of closed ones drawn by centre."""
    closed = [0, 0]
    for part in parts.values():
        found = _has_entries(block, part.one, part.other)
        closed[0] += int(np.count_nonzero(found & ~part.by_centre))
        closed[1] += int(np.count_nonzero(found & part.by_centre))
    return closed[0], closed[1]


def _has_entries(block: GraphBlock, target: Ints, source: Ints) -> NDArray[np.bool_]:
    """Whether each target, an own vertex, has the source in its row: a binary search in all rows at a time."""
    row = np.searchsorted(block.number, target)
    position = np.searchsorted(block.sources, source)
    position[position == len(block.sources)] = 0
    known = block.sources[position] == source
    low, high = block.rows.offsets[row].copy(), block.rows.offsets[row + 1].copy()
    last = high
    while np.any(low < high):
        middle = (low + high) // 2
        less = block.rows.source[np.minimum(middle, len(block.rows) - 1)] < position
        low, high = np.where(less & (low < high), middle + 1, low), np.where(less, high, np.minimum(middle, high))
    inside = known & (low < last)
    found: NDArray[np.bool_] = inside.copy()
    found[inside] = block.rows.source[low[inside]] == position[inside]
    return found


def share_of(closed: int, samples: int, exact: bool = False) -> Interval:
    """The share of closed wedges from a sample of independent ones, with Wilson's score interval.

    Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22, 1927. `exact`: the sample
    is all wedges.
    """
    if not samples:
        return Interval(0.0, 0.0, 0.0)
    share = closed / samples
    if exact:
        return Interval(share, share, share)
    centre = (share + Z * Z / (2 * samples)) / (1 + Z * Z / samples)
    half = Z / (1 + Z * Z / samples) * sqrt(share * (1 - share) / samples + Z * Z / (4 * samples * samples))
    return Interval(share, max(0.0, centre - half), min(1.0, centre + half))


def sums_before(counts: Sequence[WedgeCounts]) -> list[WedgeCounts]:
    """[blocks + 1] the sums over all blocks before each block, and over all."""
    sums = [WedgeCounts(0, 0, 0, 0)]
    for own in counts:
        last = sums[-1]
        sums.append(
            WedgeCounts(
                last.vertices + own.vertices,
                last.centres + own.centres,
                last.entries + own.entries,
                last.wedges + own.wedges,
            )
        )
    return sums
