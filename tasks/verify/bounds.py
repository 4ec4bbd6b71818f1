"""Certify that given bounds are λ, by definition, with NumPy alone. Shares no code with the kernels.

In a graph with two sides λ counts butterflies, and all that is said of triangles here holds for these.

Two certificates, each from one pass over all triangles, prove a bound without computing λ again:

- *Valid*: every edge has at least bound(e) triangles whose other edges have at least that bound. λ is the greatest
  valid assignment, so a valid one is nowhere above λ.
- *Falling*: at each level k, in ascending order, the edges of bound k are removed one after the other, each with at
  most k remaining triangles whose other edges have a bound ≥ k and are not removed. If all edges are removed, the bound
  is nowhere below λ: in a subgraph with more than k triangles on every edge, no edge with bound ≤ k can be removed
  first. Level k depends only on triangles whose smallest bound is k, so levels are independent.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .butterflies import butterflies
from .triangles import Int, Oriented, orient, ranges, triangles

Shapes = tuple[NDArray[np.integer], ...]
"""The edge numbers of each triangle or butterfly, as three or four arrays."""

_GROUP_TRIANGLES = 1 << 25  # triangles in memory during the check of falling, about 50 bytes each


@dataclass(frozen=True)
class Simple:
    """A simple graph. Edge i joins the vertices source[i] and target[i], of 0 … vertices - 1."""

    source: Int
    target: Int
    vertices: int
    two_sided: bool = False
    """Whether λ counts butterflies."""

    @property
    def edges(self) -> int:
        """Number of edges."""
        return int(self.source.size)

    def only(self, edges: Int) -> Simple:
        """The graph of the given edges, renumbered in that order."""
        return Simple(self.source[edges], self.target[edges], self.vertices, self.two_sided)

    @property
    def measure(self) -> str:
        """What λ counts."""
        return "butterflies" if self.two_sided else "triangles"

    def shapes(self, oriented: Oriented) -> Iterator[Shapes]:
        """Its triangles, or butterflies, in batches, from its edges as `orient` returns them."""
        return butterflies(oriented) if self.two_sided else triangles(oriented)


@dataclass(frozen=True)
class Backing:
    """The triangles that support one bound."""

    count: Int
    """[edges] triangles of each edge whose other edges have at least its bound."""
    tied: Int
    """[max bound + 1] number of triangles by smallest bound, if two or three of their edges have that bound."""


def survey(graph: Simple, bounds: list[NDArray[np.int32]]) -> tuple[Int, list[Backing]]:
    """The support of each edge, and the backing of each of the bounds (≥ 0), in one pass over all triangles."""
    oriented = orient(graph.source, graph.target, graph.vertices)
    by_position = [bound[oriented.edge] for bound in bounds]
    support = np.zeros(graph.edges, np.int64)
    counts = [np.zeros(graph.edges, np.int64) for _ in bounds]
    tied = [np.zeros(int(bound.max(initial=0)) + 1, np.int64) for bound in bounds]
    for sides in graph.shapes(oriented):
        for side in sides:
            support += np.bincount(side, minlength=graph.edges)
        for bound, count, ties_at in zip(by_position, counts, tied, strict=True):
            least, ties = _ties([bound[side] for side in sides])
            for side, tie in zip(sides, ties, strict=True):
                count += np.bincount(side[tie], minlength=graph.edges)
            ties_at += np.bincount(least[_several(ties)], minlength=ties_at.size)
    position = np.empty_like(oriented.edge)
    position[oriented.edge] = np.arange(graph.edges)
    return support[position], [Backing(count[position], ties_at) for count, ties_at in zip(counts, tied, strict=True)]


def not_falling(graph: Simple, bound: NDArray[np.int32], backing: Backing) -> Int:
    """Edges that are not removed at the level of their bound. Empty if and only if no bound is below λ.

    If the bound is valid, λ of each of these edges is above it.
    """
    fallen = backing.count <= bound
    for first, last in _level_groups(backing.tied):
        within = np.flatnonzero(bound >= first)
        part = graph.only(within)
        oriented = orient(part.source, part.target, part.vertices)
        names = within[oriented.edge]
        level, count, gone = bound[names], backing.count[names], fallen[names]
        sides, lost = _open_ties(part, oriented, level, gone, last)
        cascade = _Cascade(sides, count - lost)
        waiting = np.flatnonzero(~gone & (level < last))
        fallen[names[cascade.fall(waiting[cascade.count[waiting] <= level[waiting]], level)]] = True
    return np.flatnonzero(~fallen)


def peel(graph: Simple) -> NDArray[np.int32]:
    """λ of every edge by peeling level by level (Wang and Cheng, PVLDB 2012). About 60 bytes a triangle."""
    oriented = orient(graph.source, graph.target, graph.vertices)
    sides = _joined(graph, list(graph.shapes(oriented)))
    cascade = _Cascade(sides, np.bincount(np.concatenate(sides), minlength=graph.edges))
    answer = np.zeros(graph.edges, np.int32)
    left = np.arange(graph.edges)
    while left.size:
        level = cascade.count[left].min()
        fell = cascade.fall(left[cascade.count[left] <= level], np.full(graph.edges, level, np.int32))
        answer[oriented.edge[fell]] = level
        left = left[~cascade.fallen[left]]
    return answer


class _Cascade:
    """Removes edges with their triangles until no other edge qualifies."""

    def __init__(self, sides: Shapes, count: Int) -> None:
        """`sides` are the edges of each triangle, -1 for edges to ignore; `count` [edges] the remaining triangles."""
        self.count = count.copy()
        self.fallen = np.zeros(count.size, np.bool_)
        self._sides = sides
        self._live = np.ones(sides[0].size, np.bool_)
        bits = sides[0].size.bit_length()
        triangle = np.arange(sides[0].size)
        keys = np.concatenate([(side.astype(np.int64) << bits | triangle)[side >= 0] for side in sides])
        keys.sort()  # sorting keys is many times faster than argsort
        self._offsets = np.searchsorted(keys, np.arange(count.size + 1) << bits)
        keys &= (1 << bits) - 1
        self._triangles = keys.astype(np.uint32 if bits <= 32 else np.int64)

    def fall(self, falling: Int, threshold: NDArray[np.int32]) -> Int:
        """Remove these edges, then all edges whose count drops to their threshold. Returns the removed edges."""
        fell = [falling]
        while falling.size:
            self.fallen[falling] = True
            starts = self._offsets[falling]
            position, _ = ranges(starts, self._offsets[falling + 1] - starts)
            touched = self._triangles[position]
            ended = _distinct(touched[self._live[touched]])
            self._live[ended] = False
            losers = np.concatenate([side[ended] for side in self._sides])
            losers = losers[losers >= 0]
            np.subtract.at(self.count, losers, 1)
            falling = _distinct(losers[(self.count[losers] <= threshold[losers]) & ~self.fallen[losers]])
            fell.append(falling)
        return np.concatenate(fell)


def _open_ties(
    graph: Simple, oriented: Oriented, bound: NDArray[np.int32], fallen: NDArray[np.bool_], last: int
) -> tuple[Shapes, Int]:
    """Triangles whose smallest bound is below `last` and on two or three edges, none of them removed; edges with a
    larger bound are -1. Also the triangles that each edge loses to removed edges. Edges are positions.
    """
    kept: list[Shapes] = []
    lost = np.zeros(bound.size, np.int64)
    for piece in graph.shapes(oriented):
        least, ties = _ties([bound[side] for side in piece])
        chosen = np.flatnonzero(_several(ties) & (least < last))
        sides = [np.where(tie[chosen], side[chosen], -1) for side, tie in zip(piece, ties, strict=True)]
        gone = [fallen[side] & (side >= 0) for side in sides]
        ended = np.logical_or.reduce(gone)
        for side in sides:
            losers = side[ended]
            lost += np.bincount(losers[losers >= 0], minlength=bound.size)
        kept.append(tuple(side[~ended] for side in sides))
    return _joined(graph, kept), lost


def _joined(graph: Simple, parts: list[Shapes]) -> Shapes:
    sides = 4 if graph.two_sided else 3
    return tuple(np.concatenate([np.zeros(0, np.int64), *(part[side] for part in parts)]) for side in range(sides))


def _distinct(values: NDArray[Any]) -> Int:
    """The distinct values, ascending. Sorting is faster here than the hash table of np.unique."""
    values = np.sort(values)
    return values[np.flatnonzero(np.diff(values, prepend=-1))].astype(np.int64)


def _ties(values: list[NDArray[np.int32]]) -> tuple[NDArray[np.int32], list[NDArray[np.bool_]]]:
    """The smallest of three or four values, and masks of the values equal to it."""
    least = np.minimum.reduce(values)
    return least, [value == least for value in values]


def _several(ties: list[NDArray[np.bool_]]) -> NDArray[np.bool_]:
    several: NDArray[np.bool_] = np.add.reduce(ties, dtype=np.int8) > 1
    return several


def _level_groups(tied: Int) -> Iterator[tuple[int, int]]:
    """Runs of levels [first, last) with triangles: one level, or several with at most _GROUP_TRIANGLES in total."""
    levels = np.flatnonzero(tied)
    at = 0
    while at < levels.size:
        total = np.cumsum(tied[levels[at:]])
        stop = at + max(1, int(np.searchsorted(total, _GROUP_TRIANGLES, "right")))
        yield int(levels[at]), int(levels[stop - 1]) + 1
        at = stop
