"""Find a clique in the innermost core of a graph: a lower bound of the largest λ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...kernels.runtime.sizes import SizedArrays
from ..programs.block import GraphBlock
from ..programs.running import ProgramOutcome

MOST_VERTICES = 4096
"""Vertices of the innermost core that are looked at; the first ones of a larger core."""
MOST_STARTS = 64
"""Vertices that cliques are grown from."""


@dataclass(frozen=True)
class CoreEdges(SizedArrays):
    """Edges into some vertices of the core that belong to one block, both ends as positions among these vertices."""

    one: NDArray[np.int64]
    other: NDArray[np.int64]


def highest_core(outcome: ProgramOutcome) -> int:
    """The largest core number of a block's vertices."""
    return int(outcome.state["core"].max(initial=0))


def core_vertices(outcome: ProgramOutcome, core: int) -> NDArray[np.int64]:
    """[vertices] the first MOST_VERTICES vertices of a block with this core number."""
    found: NDArray[np.int64] = outcome.number[outcome.state["core"] == core][:MOST_VERTICES].astype(np.int64)
    return found


def first_vertices(parts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """[vertices] the first MOST_VERTICES of the vertices of all blocks, ascending."""
    return np.sort(np.concatenate([np.zeros(0, np.int64), *parts]))[:MOST_VERTICES]


def core_edges(block: GraphBlock, vertices: NDArray[np.int64]) -> CoreEdges:
    """The edges of a block between these vertices."""
    rows = np.flatnonzero(np.isin(block.number, vertices))
    sources = np.searchsorted(vertices, block.sources)
    sources[sources == len(vertices)] = 0
    position = np.where(vertices[sources] == block.sources, sources, -1) if len(vertices) else sources - 1
    one, other = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for row, vertex in zip(rows.tolist(), np.searchsorted(vertices, block.number[rows]).tolist(), strict=True):
        found = position[block.rows.source[block.rows.offsets[row] : block.rows.offsets[row + 1]]]
        found = found[found >= 0]
        one.append(np.full(len(found), vertex))
        other.append(found)
    return CoreEdges(np.concatenate(one), np.concatenate(other))


def grow_clique(parts: Sequence[CoreEdges]) -> int:
    """The size of the largest clique found among the vertices of the core; at least 1, or 0 without edges.

    Greedy, from each of the MOST_STARTS vertices of highest degree: as long as the vertices of the clique have common
    neighbours, the one with most neighbours among the common neighbours is added, the first of several.
    """
    one, other = (
        np.concatenate([np.zeros(0, np.int64), *(getattr(p, end) for p in parts)]) for end in ("one", "other")
    )
    if not len(one):
        return 0
    vertices = int(max(one.max(), other.max())) + 1
    joined = np.zeros((vertices, vertices), np.bool_)
    joined[one, other] = joined[other, one] = True
    np.fill_diagonal(joined, False)
    degree = joined.sum(axis=1)
    best = 1
    for start in np.argsort(-degree, kind="stable")[:MOST_STARTS].tolist():
        left = joined[start]
        size, inside = 1, joined[left].sum(axis=0)
        while left.any() and size + np.count_nonzero(left) > best:
            added = int(np.where(left, inside, -1).argmax())
            kept = left & joined[added]
            inside = inside - joined[left & ~kept].sum(axis=0)
            left, size = kept, size + 1
        best = max(best, size)
    return best
