"""Betweenness by Brandes's algorithm for up to 64 sources at once: paths are counted level by level, then dependencies
are added up in the opposite order.

Brandes, "A faster algorithm for betweenness centrality", Journal of Mathematical Sociology 25(2), 2001. One matrix of
float64 has a row for each vertex and a column for each source. It first holds σ, the number of shortest paths from the
source to the vertex, then (1 + δ) / σ, where δ is the dependency of the source on the vertex.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ....kernels.cpu import betweenness
from ...errors import InputError
from ..block import GraphBlock
from ..words import NO_WORDS
from .program import PathsFound
from .side import ALL_BITS, Side, SourceFrontier, bits_of, first_frontier, unused_bits


def path_search(block: GraphBlock, into: Side, out: Side, columns: int) -> PathSearch | WholePathSearch:
    """Brandes's algorithm in the block of each group, for up to `columns` sources at once; both give the same bits."""
    if into.mirrors.carrier.groups == 1:
        return WholePathSearch(block, into, columns)
    return PathSearch(block, into, out, columns)


class WholePathSearch:
    """Brandes's algorithm in the block of the only group, each batch in compiled functions from start to end."""

    def __init__(self, block: GraphBlock, into: Side, columns: int) -> None:
        self.block, self.into = block, into
        self.levels = 0
        """Levels of all batches so far."""
        self._paths = betweenness.BlockPaths(into.rows, into.transposed, columns)
        self.found = PathsFound(self._paths.score, self._paths.squares)

    def run(self, sources: NDArray[np.int64]) -> None:
        """Add the dependencies of these sources."""
        levels, finite = self._paths.run(np.searchsorted(self.block.number, sources))
        if not finite:
            raise _too_many()
        self.levels += levels
        self.into.entries = self._paths.entries


class PathSearch:
    """Brandes's algorithm in one of several blocks."""

    def __init__(self, block: GraphBlock, into: Side, out: Side, columns: int) -> None:
        self.block, self.into, self.out = block, into, out
        self.found = PathsFound(np.zeros(block.rows.rows), np.zeros(block.rows.rows))
        self.levels = 0
        """Levels of all batches so far."""
        self._paths = np.empty((len(block.sources), columns))
        self._shares = self._paths if out is into else np.empty((len(out.at), columns))

    def run(self, sources: NDArray[np.int64]) -> None:
        """Add the dependencies of these sources. All groups must call this with the same sources."""
        levels = self._count(sources)
        self._add_dependencies(levels)
        self.levels += len(levels)
        if not np.isfinite(self.found.score).all():
            raise _too_many()

    def _count(self, sources: NDArray[np.int64]) -> list[SourceFrontier]:
        """Count the paths. Returns the levels, each with the own vertices."""
        into = self.into
        seen = np.where(into.lengths > 0, unused_bits(len(sources), 1), ALL_BITS)
        frontier = first_frontier(self.block.number, sources, 1)
        own = into.mirrors.own
        columns = bits_of(frontier.masks)
        self._paths[own[frontier.rows[columns[0]]], columns[1]] = 1.0
        seen[frontier.rows] |= frontier.masks[:, 0]
        left = int(into.lengths[seen != ALL_BITS].sum())
        block_sources = betweenness.Sources(own, into.at.reshape(-1), self._paths)
        levels: list[SourceFrontier] = []
        while True:
            count = np.array([len(frontier)], np.uint32)
            packets = into.mirrors.exchange(count, into.packets(frontier, self._paths))
            if not any(int(packet.common[0]) for packet in packets):
                return levels
            levels.append(frontier)
            positions = into.take(packets, frontier, self._paths)
            rows = into.reached(positions, seen.reshape(-1, 1), left)
            if rows is None:
                rows = np.flatnonzero(seen != ALL_BITS).astype(np.int32)
            into.entries += int(into.lengths[rows].sum())
            fresh = betweenness.path_counts(into.rows, rows, seen, block_sources)
            into.clear(positions)
            new = fresh != 0
            frontier = SourceFrontier(rows[new], fresh[new].reshape(-1, 1))
            seen[frontier.rows] |= fresh[new]
            left -= int(into.lengths[frontier.rows[seen[frontier.rows] == ALL_BITS]].sum())

    def _add_dependencies(self, levels: list[SourceFrontier]) -> None:
        """Go back from the last level to the first; sources themselves are not between other vertices."""
        out, found = self.out, self.found
        own = out.mirrors.own
        if self._shares is not self._paths:
            self._shares[own] = self._paths[self.into.mirrors.own]
        sources = betweenness.Sources(own, out.at.reshape(-1), self._shares)
        closed = np.full((self.block.rows.rows, 1), ALL_BITS)
        positions = np.empty(0, np.int32)
        for level in reversed(levels[1:]):
            reads = np.zeros(len(level), np.bool_)
            if len(positions):
                closed[level.rows] = ~level.masks
                rows = out.reached(positions, closed, int(out.lengths[level.rows].sum()))
                reads[slice(None) if rows is None else np.searchsorted(level.rows, rows)] = True
                closed[level.rows] = ALL_BITS
            out.entries += int(out.lengths[level.rows[reads]].sum())
            rows_of_level = betweenness.LevelRows(level.rows, level.masks.reshape(-1), reads)
            betweenness.path_dependencies(out.rows, rows_of_level, sources, found.score, found.squares)
            out.clear(positions)
            if level is not levels[1]:
                packets = out.mirrors.exchange(NO_WORDS, out.packets(level, self._shares))
                positions = out.take(packets, level, self._shares)
        out.clear(positions)


def _too_many() -> InputError:
    return InputError(
        "betweenness: two vertices have more than 1.8e308 shortest paths between them, the limit of float64; "
        "leave betweenness out of programs.run"
    )
