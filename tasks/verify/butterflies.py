"""Enumerate the butterflies of a graph, in batches, with NumPy alone. Shares no code with the kernels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from .triangles import Int, Oriented, ranges

Butterflies = tuple[NDArray[np.integer], NDArray[np.integer], NDArray[np.integer], NDArray[np.integer]]
"""The four edge numbers of each butterfly, as four arrays."""

_BATCH_WEDGES = 1 << 20  # wedges in memory, besides those of one vertex
_PIECE = 1 << 22  # fewest butterflies of a yielded batch, if there are as many


def butterflies(graph: Oriented) -> Iterator[Butterflies]:
    """Each butterfly once, as the positions of its edges (a, c), (a, d), (b, c), (b, d), in batches of a few million.

    Its vertex d of the highest rank and the opposite one, c, are the ends of two wedges over a and b. The wedges of d
    are those to ends of a lower rank, over middles of a lower rank. All pairs with the same ends are butterflies.
    """
    vertices = graph.offsets.size - 1
    low, high = graph.low.astype(np.int64), graph.high.astype(np.int64)
    edge = np.tile(np.arange(low.size), 2)
    owner, neighbour = np.concatenate([low, high]), np.concatenate([high, low])
    order = np.lexsort((neighbour, owner))  # the row of each vertex, ascending by the rank of the neighbour
    owner, neighbour, edge = owner[order], neighbour[order], edge[order]
    starts = np.searchsorted(owner, np.arange(vertices + 1))
    upward = np.flatnonzero(neighbour > owner)
    upward = upward[np.argsort(neighbour[upward], kind="stable")]
    before = upward - starts[owner[upward]]  # entries of the middle's row that come before the highest vertex
    top = neighbour[upward]
    last = np.append(np.flatnonzero(np.diff(top)), top.size - 1)  # the last entry of each highest vertex
    wedges = np.cumsum(before)[last] if top.size else np.zeros(0, np.int64)
    at = done = 0
    while at < last.size:
        stop = max(at + 1, int(np.searchsorted(wedges, done + _BATCH_WEDGES, "right")))
        own = np.arange(last[at - 1] + 1 if at else 0, last[stop - 1] + 1)
        entries, path = ranges(starts[owner[upward[own]]], before[own])
        key = top[own][path] * vertices + neighbour[entries]
        by_ends = np.argsort(key, kind="stable")
        key, first, second = key[by_ends], edge[entries][by_ends], edge[upward[own]][path][by_ends]
        yield from _pairs(key, first, second)
        at, done = stop, int(wedges[stop - 1])


def _pairs(key: Int, first: Int, second: Int) -> Iterator[Butterflies]:
    """The butterflies of wedges that are sorted by their ends `key`; `first` and `second` are the edges of each."""
    begins = np.flatnonzero(np.diff(key, prepend=-1))
    ends = np.append(begins[1:], key.size)[: begins.size]
    later = np.repeat(ends, ends - begins) - np.arange(key.size) - 1  # wedges after each one with the same ends
    chosen = np.flatnonzero(later)
    total = np.cumsum(later[chosen])
    at = done = 0
    while at < chosen.size:
        stop = max(at + 1, int(np.searchsorted(total, done + _PIECE, "right")))
        own = chosen[at:stop]
        other, path = ranges(own + 1, later[own])
        one = own[path]
        yield first[one], second[one], first[other], second[other]
        at, done = stop, int(total[stop - 1])
