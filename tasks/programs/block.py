"""A block: the vertices of one class, and every edge into them, sorted by source.

This is the layout of shards read from the other side: the shard of a class stores all entries x → y with y in the
class, which are the edges into the vertices of the class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...kernels.held import Held
from ...kernels.in_rows import InRows
from .. import order
from ..order import Ints
from .program import View


@dataclass(frozen=True)
class Entries(Held):
    """Edges on their way to the blocks of their targets. `len()` counts them."""

    source: Ints
    """[entries] numbers."""
    target: Ints
    """[entries] numbers."""
    weight: NDArray[np.float64] | None = None
    """[entries] None where edges have no weights."""

    def __len__(self) -> int:
        return len(self.source)

    def at(self, rows: NDArray[Any]) -> Entries:
        """Some of them, by a mask or by positions."""
        return Entries(self.source[rows], self.target[rows], None if self.weight is None else self.weight[rows])


@dataclass(frozen=True)
class Block(Held):
    """The vertices of one group and the edges into them. `len()` counts the entries of its rows."""

    group: int

    vertices: int
    """Vertices of the whole graph."""

    view: View

    number: Ints
    """[own] numbers of the vertices of this block, ascending."""

    rows: InRows
    """[own] rows of sources."""

    sources: Ints
    """[sources] numbers of all sources of entries and of all own vertices, ascending."""

    symmetric: bool
    """Whether the rows are their own `rows_of_sources`: of an undirected graph in one block."""

    times: NDArray[np.uint8] | None = None
    """[entries] edges that an entry stands for, with view "either" of a directed graph; otherwise two, one each way."""

    def __len__(self) -> int:
        return len(self.rows)


def entries_of(edges: Entries, directed: bool, view: View) -> Entries:
    """The entries that edges make with a view; those of an undirected graph are given once each, in any direction."""
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
) -> Block:
    """The block of the vertices `number` [own], ascending, from all `entries` with a target among them, in any order.

    Raises OutOfRoom for 2^31 distinct sources.
    """
    sources, (_, code) = order.encode(number, entries.source)
    target = np.searchsorted(number, entries.target).astype(np.int32)
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
    return Block(group, vertices, view, number, rows, sources, groups == 1 and not (directed and view == "in"), times)
