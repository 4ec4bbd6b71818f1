"""Breadth-first search from up to 512 sources at once: a vertex has a bit for each source that has reached it.

Then et al., "The more the merrier: efficient multi-source graph traversal", PVLDB 8(4), 2014.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ....kernels.cpu import searches
from ..block import NO_PATH, GraphBlock
from .side import ALL_BITS, Side, SourceFrontier, bits_of, first_frontier, unused_bits

AT_ONCE = 2**12
"""Vertices of a level whose bits are listed at once."""


@dataclass(frozen=True)
class BatchReach:
    """What the searches of one batch found, the same in all groups."""

    sources: NDArray[np.int64]
    """[sources] dense numbers."""
    eccentricity: NDArray[np.int32]
    """[sources] the largest distance from each."""
    size: NDArray[np.int64]
    """[sources] number of vertices that each reaches, itself included."""


class LevelSearch:
    """Searches in one block."""

    def __init__(self, block: GraphBlock, into: Side, kept: NDArray[np.int64] | None = None) -> None:
        self.block, self.into = block, into
        self.kept = None if kept is None else np.sort(kept)
        """[kept] sources whose distances are kept, ascending; None for none."""
        self.table = None if kept is None else np.full((block.rows.rows, len(kept)), NO_PATH)
        """[own, kept] these distances."""
        self.reached, self.distance, self.squares = (np.zeros(block.rows.rows, np.int64) for _ in range(3))
        self.pairs: list[int] = []
        self.pair_squares: list[float] = []
        self.levels = 0
        """Levels of all batches so far."""

    def run(self, sources: NDArray[np.int64], tally: bool, keep: bool) -> tuple[BatchReach, list[SourceFrontier]]:
        """Search from these sources. All groups must call this with the same arguments.

        With `tally` distances are added to the sums; with `keep` the levels with their own vertices are returned.
        """
        into, words, count = self.into, self.into.at.shape[1], len(sources)
        seen = np.where((into.lengths > 0)[:, None], unused_bits(count, words), ALL_BITS)
        frontier = first_frontier(self.block.number, sources, words)
        seen[frontier.rows] |= frontier.masks
        open_rows = (seen != ALL_BITS).any(axis=1)
        left = int(into.lengths[open_rows].sum())
        levels: list[SourceFrontier] = []
        size, last, level = np.zeros(count, np.int64), np.zeros(count, np.int32), 0
        while True:
            own = searches.column_counts(frontier.masks)[:count]
            packets = into.mirrors.exchange(own.view(np.uint32), into.packets(frontier))
            counts = np.array([packet.common.copy().view(np.int64) for packet in packets]).sum(axis=0)
            if not counts.any():
                self.levels += level
                return BatchReach(sources, last, size), levels
            size += counts
            last[counts > 0] = level
            if tally and level:
                self._tally(frontier, level, counts)
                self._keep(frontier, level, sources)
            if keep:
                levels.append(frontier)
            level += 1
            positions = into.take(packets, frontier)
            rows = into.reached(positions, seen, left)
            if rows is None:
                rows = np.flatnonzero(open_rows).astype(np.int32)
            into.entries += int(into.lengths[rows].sum())
            fresh = searches.search_level(into.rows, rows, into.at, seen)
            into.clear(positions)
            new = fresh.any(axis=1)
            frontier = SourceFrontier(rows[new], fresh[new])
            seen[frontier.rows] |= frontier.masks
            full = frontier.rows[(seen[frontier.rows] == ALL_BITS).all(axis=1)]
            open_rows[full] = False
            left -= int(into.lengths[full].sum())

    def _keep(self, frontier: SourceFrontier, level: int, sources: NDArray[np.int64]) -> None:
        if self.kept is None or self.table is None:
            return
        column = np.searchsorted(self.kept, sources)
        for first in range(0, len(frontier), AT_ONCE):
            rows, bits = bits_of(frontier.masks[first : first + AT_ONCE])
            self.table[frontier.rows[first + rows], column[bits]] = level

    def _tally(self, frontier: SourceFrontier, level: int, counts: NDArray[np.int64]) -> None:
        found = np.bitwise_count(frontier.masks).sum(axis=1, dtype=np.int64)
        self.reached[frontier.rows] += found
        self.distance[frontier.rows] += level * found
        self.squares[frontier.rows] += level * level * found
        while len(self.pairs) <= level:
            self.pairs.append(0)
            self.pair_squares.append(0.0)
        self.pairs[level] += int(counts.sum())
        self.pair_squares[level] += float((counts.astype(np.float64) ** 2).sum())
