"""λ of some cliques by each method, so that all kernels are compiled before the first stage is timed.

It runs in one thread: several threads would compile the same kernels at the same time.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from . import ingest
from .bound import band, fixpoint
from .bound.intervals import Intervals
from .bound.peel import peel, peel_intervals
from .device import MemorySpace
from .graph.subgraph import Subgraph, build_subgraph
from .graph.triangulate import count_triangles, send_lists
from .graph.whole_graph import whole_graph
from .ids import order
from .ingest import OwnedEdges
from .ingest.reading import IdRows
from .messages import Bundle, collect

CLIQUE = 6
"""Vertices of each of the cliques that are run."""
CLIQUES = 1024
"""Number of cliques. It makes all arrays large: CuPy has other kernels for small ones."""


def run_clique(
    method: str, partitions: int, space: MemorySpace, whole: bool = False, compact_rows: bool = False
) -> list[Intervals]:
    """λ of the cliques by `method`, in two partitions, or in one if `partitions` is 1, over arrays in `space`.

    Messages go one way only. `whole` is for peeling on a GPU, in plain rows or in `compact_rows`. Peeling has one
    partition here: several are peeled as shards, which `tasks.shards` warms.
    """
    if whole:
        graph = whole_graph(whole_cliques(space))
        return [peel_intervals(graph, peel(graph, most_plain=0 if compact_rows else None))]
    count = 1 if method == "peel" else min(partitions, 2)
    owned = [_owned(p, count) for p in range(count)]
    if space is MemorySpace.DEVICE:
        owned = list(map(ingest.owned_to_device, owned))
    lists = [send_lists(edges, count) for edges in owned]
    counted = [count_triangles(edges, collect(p, lists)) for p, edges in enumerate(owned)]
    replies = [found.replies for found in counted]
    subgraphs = [build_subgraph(owned[p], counted[p], count, collect(p, replies)) for p in range(count)]
    if method == "peel":
        return [peel_intervals(subgraphs[0], peel(subgraphs[0]))]
    return _band(subgraphs) if method == "band" else _fixpoint(subgraphs)


def whole_cliques(space: MemorySpace) -> OwnedEdges:
    """The cliques as the only partition, with arrays in `space`."""
    return ingest.owned_to_device(_owned(0, 1)) if space is MemorySpace.DEVICE else _owned(0, 1)


def load_packing(space: MemorySpace) -> None:
    """Pack some rows, so that the threads that read do not all load the kernels for it."""
    rows = np.arange(CLIQUE, dtype=np.int64)
    ingest.pack(0, IdRows(space.place(rows), space.place(rows)))


def clique_edges() -> NDArray[np.int64]:
    """[edges, 2] ends of all edges, sorted."""
    one = np.array(list(combinations(range(CLIQUE), 2)), np.int64)
    return (CLIQUE * np.arange(CLIQUES)[:, None, None] + one).reshape(-1, 2)


def _owned(partition: int, partitions: int) -> OwnedEdges:
    edges = clique_edges()
    edges = edges[edges[:, 0] % partitions == partition]
    rank = np.unique(edges)
    low, high = np.searchsorted(rank, edges.T).astype(np.int32)
    offsets = order.offsets(np.bincount(low, minlength=len(rank)))
    part = (rank % partitions).astype(np.int16)
    row = np.arange(len(edges), dtype=np.int32)
    return OwnedEdges(partition, rank, part, offsets, high, np.zeros(len(edges), np.int16), row)


def _band(subgraphs: list[Subgraph]) -> list[Intervals]:
    """Filters at 4, which removes no edge, and at 5, which removes all."""
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
