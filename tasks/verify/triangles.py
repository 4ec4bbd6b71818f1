"""Enumerate all triangles of a graph, in batches, with NumPy alone. Shares no code with the kernels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Int = NDArray[np.int64]
Triangles = tuple[NDArray[np.integer], NDArray[np.integer], NDArray[np.integer]]
"""The three edge numbers of each triangle, as three arrays."""

_BATCH_PATHS = 1 << 20  # paths a → b, a → c per batch, so that temporary arrays stay in the cache
_TABLE_CELLS = 1 << 24  # cells of the table of marked neighbours
_PIECE = 1 << 22  # fewest triangles of a yielded batch


@dataclass(frozen=True)
class Oriented:
    """Edges from the lower to the higher end in (degree, number) order, sorted by it."""

    edge: Int
    """[edges] the caller's edge number at each position."""
    low: Int
    """[edges] rank of the lower end, ascending."""
    high: NDArray[np.integer]
    """[edges] rank of the higher end, ascending within each low."""
    offsets: Int
    """[vertices + 1] positions of each rank's edges."""


def orient(source: Int, target: Int, vertices: int) -> Oriented:
    """Orient the edges of a simple graph with the vertices 0 … vertices - 1."""
    degree = np.bincount(source, minlength=vertices) + np.bincount(target, minlength=vertices)
    rank = np.empty(vertices, np.int64)
    rank[np.argsort(degree, kind="stable")] = np.arange(vertices)
    one, other = rank[source], rank[target]
    low, high = np.minimum(one, other), np.maximum(one, other)
    edge = np.lexsort((high, low))
    low, high = low[edge], high[edge]
    offsets = np.zeros(vertices + 1, np.int64)
    np.cumsum(np.bincount(low, minlength=vertices), out=offsets[1:])
    narrow = np.int32 if max(vertices, edge.size) < 2**31 else np.int64
    return Oriented(edge, low, high.astype(narrow), offsets)


def triangles(graph: Oriented) -> Iterator[Triangles]:
    """Each triangle a < b < c once, as the positions of (a, b), (a, c) and (b, c), in batches of a few million.

    For each edge (a, b), the edges (a, c) after it in a's list are tried. b's list is marked in a table with one row
    for each b of the batch, which gives the position of (b, c). Degree order keeps the lists short: about edges ^ 1.5
    paths in the worst case (Chiba and Nishizeki, SIAM J. Comput. 1985).
    """
    vertices = graph.offsets.size - 1
    behind = graph.offsets[graph.low + 1] - np.arange(graph.low.size) - 1
    has_list = graph.offsets[graph.high + 1] > graph.offsets[graph.high]
    tried = np.flatnonzero((behind > 0) & has_list)
    tried = tried[np.argsort(graph.high[tried], kind="stable")]
    middle = graph.high[tried]
    slot = np.cumsum(np.diff(middle, prepend=middle[:1]) != 0)
    paths = np.concatenate([[0], np.cumsum(behind[tried])])
    slots = max(1, _TABLE_CELLS // max(1, vertices))
    table = np.zeros(min(slots, tried.size) * vertices, graph.high.dtype)
    found: list[Triangles] = []
    at = 0
    while at < tried.size:
        stop = int(np.searchsorted(paths, paths[at] + _BATCH_PATHS, "right")) - 1
        stop = max(at + 1, min(stop, int(np.searchsorted(slot, slot[at] + slots))))
        found.append(_close(graph, tried[at:stop], slot[at:stop] - slot[at], behind, table))
        at = stop
        if sum(piece[0].size for piece in found) >= _PIECE:
            yield concatenate(found)
            found = []
    if found:
        yield concatenate(found)


def _close(graph: Oriented, edges: Int, slot: Int, behind: Int, table: NDArray[np.integer]) -> Triangles:
    """Triangles over the given edges (a, b). The table is all zero before and after."""
    vertices = graph.offsets.size - 1
    first = np.flatnonzero(np.diff(slot, prepend=-1))
    middles = graph.high[edges[first]]
    marked, owner = ranges(graph.offsets[middles], graph.offsets[middles + 1] - graph.offsets[middles])
    cells = owner * vertices + graph.high[marked]
    table[cells] = marked + 1
    third, path = ranges(edges + 1, behind[edges])
    closing = table[(slot * vertices)[path] + graph.high[third]]
    table[cells] = 0
    hit = np.flatnonzero(closing)
    kind = table.dtype
    return edges.astype(kind)[path[hit]], third[hit].astype(kind), closing[hit] - 1


def concatenate(pieces: list[Triangles]) -> Triangles:
    """The triangles of all pieces."""
    if not pieces:
        return np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0, np.int32)
    one, two, three = (np.concatenate(side) for side in zip(*pieces, strict=True))
    return one, two, three


def ranges(starts: Int, counts: Int) -> tuple[Int, Int]:
    """The concatenated ranges starts[i] … starts[i] + counts[i] - 1, and the i of each element."""
    owner = np.repeat(np.arange(counts.size), counts)
    before = np.cumsum(counts) - counts
    return np.arange(owner.size) + (starts - before)[owner], owner
