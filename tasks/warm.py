"""A tiny run of triangulation and bounding, so that all they call is compiled before the clock of a stage runs."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np

from . import order
from .bound import band, fixpoint
from .bound.intervals import Intervals
from .bound.peel import peel
from .ingest import OwnedEdges
from .messages import Bundle, collect
from .subgraph import Subgraph, build_subgraph
from .triangulate import count_triangles, send_lists

CLIQUE = 6
"""Vertices of the clique that is run."""


def run_clique(method: str, partitions: int, put: Callable[[OwnedEdges], OwnedEdges]) -> list[Intervals]:
    """λ of a clique by `method`, in two partitions or one, over the arrays that `put` gives. Mail goes one way only."""
    count = min(partitions, 2)
    owned = [put(_owned(p, count)) for p in range(count)]
    lists = [send_lists(edges, count) for edges in owned]
    counted = [count_triangles(edges, collect(p, lists)) for p, edges in enumerate(owned)]
    replies = [found.replies for found in counted]
    subgraphs = [build_subgraph(owned[p], counted[p], count, collect(p, replies)) for p in range(count)]
    if method == "peel":
        return [peel(subgraph).intervals for subgraph in subgraphs]
    return _band(subgraphs) if method == "band" else _fixpoint(subgraphs)


def _owned(partition: int, partitions: int) -> OwnedEdges:
    edges = [(a, b) for a, b in combinations(range(CLIQUE), 2) if a % partitions == partition]
    rank = np.unique(np.array(edges, np.int64))
    low, high = np.searchsorted(rank, np.array(edges, np.int64).T).astype(np.int32)
    offsets = order.offsets(np.bincount(low, minlength=len(rank)))
    part = (rank % partitions).astype(np.int16)
    row = np.arange(len(edges), dtype=np.int32)
    return OwnedEdges(partition, rank, part, offsets, high, np.zeros(len(edges), np.int16), row)


def _band(subgraphs: list[Subgraph]) -> list[Intervals]:
    """Filters at 4, which is silent, and at 5, at which everything falls."""
    highest = max(len(band.support_histogram(subgraph)) for subgraph in subgraphs)
    states = [band.start_bands(subgraph, highest) for subgraph in subgraphs]
    top = CLIQUE - 2
    for batch in ([band.Order(0, 0, top, 0)], [band.Order(0, top, 0, top + 1)], []):
        sent: list[Bundle[band.EdgeNumbers]] = []
        for p, subgraph in enumerate(subgraphs):
            states[p], mail, _ = band.band_exchange(subgraph, states[p], [batch], 0, collect(p, sent))
            sent.append(mail)
    done = [band.Order(top, top + 1, 0, 0)]
    return [band.band_intervals(subgraph, states[p], [done], {}) for p, subgraph in enumerate(subgraphs)]


def _fixpoint(subgraphs: list[Subgraph]) -> list[Intervals]:
    found: list[Intervals] = []
    sent: list[Bundle[fixpoint.FallenBounds]] = []
    for p, subgraph in enumerate(subgraphs):
        bound = fixpoint.start_bounds(subgraph, CLIQUE)
        bound, _, _ = fixpoint.fixpoint_exchange(subgraph, bound, "hindex", True, {})
        bound, mail, _ = fixpoint.fixpoint_exchange(subgraph, bound, "hindex", False, collect(p, sent))
        sent.append(mail)
        found.append(fixpoint.fixpoint_intervals(subgraph, bound, True))
    return found
