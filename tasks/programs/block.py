"""A block: the vertices of one group, and all edges into them, sorted by target and source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...kernels import programs as gathers
from ...kernels.graph import InRows
from ...kernels.runtime.sizes import SizedArrays
from ..device import MemorySpace, move_arrays
from ..ids import order
from ..ids.order import Ints
from .program import View


@dataclass(frozen=True)
class Entries(SizedArrays):
    """Directed edges that are sent to the blocks of their targets. `len()` is the number of entries."""

    source: Ints
    """[entries] dense numbers of vertices."""
    target: Ints
    """[entries] dense numbers of vertices."""
    weight: NDArray[np.float64] | None = None
    """[entries] None for edges without weights."""
    mirrored: bool = False
    """Whether an entry stands for both directions of an edge. Then entries are distinct, with source < target, sorted
    by (source, target).
    """

    def __len__(self) -> int:
        return len(self.source)

    def at(self, rows: NDArray[Any] | slice) -> Entries:
        """The entries at a mask, at positions or in a slice; not for mirrored ones."""
        return Entries(self.source[rows], self.target[rows], None if self.weight is None else self.weight[rows])


@dataclass(frozen=True)
class GraphBlock(SizedArrays):
    """The vertices of one group and the edges into them. `len()` is the number of entries."""

    group: int

    vertices: int
    """Number of vertices of the graph."""

    view: View

    number: Ints
    """[own] dense numbers of the vertices of this block, ascending."""

    rows: InRows
    """[own] the sources of the edges into each vertex."""

    sources: Ints
    """[sources] dense numbers of all sources and all own vertices, ascending."""

    symmetric: bool
    """Whether the rows equal their transpose, as for an undirected graph in one block."""

    mutual: bool
    """Whether every edge of the graph is there in both directions, so that rows of in-edges are rows of out-edges."""

    times: NDArray[np.uint8] | None = None
    """[entries] number of directed edges that an entry represents, for view "either" of a directed graph; None
    means 2.
    """

    def __len__(self) -> int:
        return len(self.rows)

    def placed(self, space: MemorySpace) -> GraphBlock:
        """The block with its arrays in `space`; arrays that are there are not copied."""
        if self.on_device == (space is MemorySpace.DEVICE):
            return self
        return replace(move_arrays(self, space), rows=move_arrays(self.rows, space))


def entries_of(edges: Entries, directed: bool, view: View) -> Entries:
    """The entries of edges for a view. Edges of an undirected graph are given once each, in either direction."""
    if directed and view == "in":
        return edges
    loops = edges.source == edges.target
    one = edges.at(~loops) if view == "either" else edges
    other = edges if directed and view == "both" else edges.at(~loops)
    weight = None
    if one.weight is not None and other.weight is not None:
        weight = np.concatenate([one.weight, other.weight])
    return Entries(np.concatenate([one.source, other.target]), np.concatenate([one.target, other.source]), weight)


def build_block(
    group: int, groups: int, vertices: int, number: Ints, entries: Entries, directed: bool, view: View
) -> GraphBlock:
    """The block of the vertices `number` [own], ascending, from all `entries` whose target is among them, in any order.

    Raises OutOfRoom for 2^31 distinct sources.
    """
    sources, (_, code) = order.encode(number, entries.source)
    target = order.lookup(number, entries.target)
    weight, times = entries.weight, None
    by = order.order_pairs(target, code, len(number), len(sources))
    code, target = code[by], target[by]
    weight = None if weight is None else weight[by]
    if view == "either":
        heads = order.heads(code) | order.heads(target)
        if directed:
            times = np.diff(np.append(np.flatnonzero(heads), len(heads))).astype(np.uint8)
        code, target = code[heads], target[heads]
        weight = None if weight is None else weight[heads]
    rows = InRows(order.offsets(np.bincount(target, minlength=len(number))), code, weight)
    mutual = not (directed and view == "in")
    return GraphBlock(group, vertices, view, number, rows, sources, groups == 1 and mutual, mutual, times)


def build_whole_block(vertices: int, parts: Sequence[Entries], view: View) -> GraphBlock:
    """The only block of an undirected graph, without sorting, from `mirrored` entries: each part has higher sources
    than the one before. The block lies in the memory of the entries. Raises OutOfRoom for 2^31 vertices.
    """
    order.check_codes(vertices)
    low, high, weight = parts[0].source, parts[0].target, parts[0].weight
    if len(parts) > 1:
        low, high = (np.concatenate([getattr(part, end) for part in parts]) for end in ("source", "target"))
        weights = [part.weight for part in parts if part.weight is not None]
        weight = np.concatenate(weights) if weights else None
    low, high = (ends.astype(np.int32, copy=False) for ends in (low, high))
    rows = gathers.both_ways(low, high, weight, vertices)
    number = order.shifted(np.arange(vertices, like=low), 0, vertices)
    return GraphBlock(0, vertices, view, number, rows, number, True, True)


MOST_VERTICES = 50_000
"""The most vertices of a graph with a table of distances: 2.5 billion pairs, 5 GB in memory."""

NO_PATH = np.uint16(2**16 - 1)
"""The distance of a pair without a path, and of a vertex to itself. Larger than any distance of MOST_VERTICES."""


@dataclass(frozen=True)
class PairTable(SizedArrays):
    """Distances from some vertices to others. `len()` is the number of rows."""

    row: NDArray[np.int64]
    """[rows] dense numbers of the vertices of the rows, ascending."""
    column: NDArray[np.int64]
    """[columns] dense numbers of the vertices of the columns, ascending."""
    distance: NDArray[np.uint16]
    """[rows, columns]"""

    def __len__(self) -> int:
        return len(self.row)
