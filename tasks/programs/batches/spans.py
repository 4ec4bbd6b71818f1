"""Bounds of eccentricities, diameter and radius from few searches.

Takes and Kosters, "Determining the diameter of small world networks", CIKM 2011. A search from s bounds the
eccentricity of every vertex v that it reaches by edges that lead both ways: max(d, ecc(s) - d) ≤ ecc(v) ≤ ecc(s) + d
with d = d(s, v). Further searches start where the bounds of the diameter or of the radius can still move.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ..block import GraphBlock
from ..mirrors import Mirrors
from ..program import Array
from ..words import NO_WORDS, pack, unpack
from .levels import BatchReach
from .program import UNBOUNDED, Span
from .side import SourceFrontier

OFFERS = 32
"""Further sources for the diameter, and as many for the radius, that are searched from at once."""


class Spans:
    """Bounds for the vertices of one block."""

    def __init__(self, block: GraphBlock, mirrors: Mirrors) -> None:
        self.block, self.mirrors = block, mirrors
        self.degree = np.diff(block.rows.offsets)
        alone = self.degree == 0
        self.least = np.zeros(len(self.degree), np.int32)
        self.most = np.where(alone, np.int32(0), UNBOUNDED)
        self.size = alone.astype(np.int64)
        """[own] number of vertices in the component; 0 if no search has reached the vertex."""
        self.searches = 0

    def add(self, reach: BatchReach, levels: list[SourceFrontier]) -> None:
        """Take the bounds from searches on edges that lead both ways. `levels` are those of the own vertices."""
        for d, level in enumerate(levels):
            for eccentricity, here in _by_value(reach.eccentricity, level):
                rows = level.rows[here]
                self.least[rows] = np.maximum(self.least[rows], max(d, eccentricity - d))
                self.most[rows] = np.minimum(self.most[rows], eccentricity + d)
            for size, here in _by_value(reach.size, level):
                self.size[level.rows[here]] = size

    def span(self) -> tuple[Span, NDArray[np.int64]]:
        """The bounds, and the further sources that can narrow them, none if they meet. All groups get the same.

        Takes two exchanges.
        """
        largest = self._common(int(self.size.max(initial=0)), int((self.size == 0).sum()))
        size, unknown = int(largest[:, 0].max()), int(largest[:, 1].sum())
        here = self.size == size
        least, most = self.least[here], self.most[here]
        bounds = self._common(
            int(least.max(initial=0)),
            int(most.max(initial=0)),
            -int(least.min(initial=UNBOUNDED)),
            -int(most.min(initial=UNBOUNDED)),
        ).max(axis=0)
        diameter, radius = (int(bounds[0]), int(bounds[1])), (-int(bounds[2]), -int(bounds[3]))
        known = unknown <= size
        span = Span(size, _ends(diameter, known), _ends(radius, known), self.searches)
        wanted = [(here & (self.most > diameter[0]), self.most), (here & (self.least < radius[1]), -self.least)]
        if diameter[0] == diameter[1]:
            wanted[0] = np.zeros_like(here), self.most
        if radius[0] == radius[1]:
            wanted[1] = np.zeros_like(here), self.least
        if not known:  # another component may be larger
            wanted = [(self.size == 0, self.most)]
        chosen = np.unique(np.concatenate([self._offered(*of) for of in wanted]))
        self.searches += len(chosen)
        return span, chosen

    def _offered(self, rows: NDArray[np.bool_], key: NDArray[np.int32]) -> NDArray[np.int64]:
        """The vertices with the largest keys over all groups, of these the largest degrees, then the least numbers."""
        own = np.flatnonzero(rows)
        columns = [-key[own].astype(np.int64), -self.degree[own], self.block.number[own].astype(np.int64)]
        first = np.lexsort(columns[::-1])[:OFFERS]
        offers = [column[first] for column in columns]
        packets = self.mirrors.exchange(pack(*offers), [NO_WORDS] * self.mirrors.carrier.groups)
        received = [unpack(packet.common, [np.int64] * 3) for packet in packets]
        merged = [np.concatenate([part[i] for part in received]) for i in range(3)]
        return merged[2][np.lexsort(merged[::-1])[:OFFERS]]

    def _common(self, *values: int) -> NDArray[np.int64]:
        """[groups, values] the values of all groups."""
        words = np.array(values, np.int64).view(np.uint32)
        packets = self.mirrors.exchange(words, [NO_WORDS] * self.mirrors.carrier.groups)
        return np.array([packet.common.copy().view(np.int64) for packet in packets])


def _ends(bounds: tuple[int, int], known: bool) -> tuple[int, int | None]:
    """The bounds, for a largest component that is known; else there are none."""
    return (bounds[0], None if bounds[1] == UNBOUNDED else bounds[1]) if known else (0, None)


def _by_value(values: Array, level: SourceFrontier) -> Iterator[tuple[int, Array]]:
    """For each distinct value of the searches: which vertices of the level are reached by a search with it."""
    for value in np.unique(values).tolist():
        columns = np.zeros(64 * level.masks.shape[1], np.bool_)
        columns[: len(values)] = values == value
        words = np.packbits(columns, bitorder="little").view("<u8").astype(np.uint64)
        yield value, np.any(level.masks & words, axis=1)
