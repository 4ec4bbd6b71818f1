"""λ of some cliques by each method, so that all kernels are compiled before the first stage is timed.

It runs in one thread: several threads would compile the same kernels at the same time.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from . import ingest
from .bound.intervals import Intervals
from .bound.peel import peel, peel_intervals
from .device import MemorySpace
from .graph import build_subgraph, count_triangles, whole_graph
from .ids import order
from .ingest import OwnedEdges
from .ingest.reading import IdRows

CLIQUE = 6
"""Vertices of each of the cliques that are run."""
CLIQUES = 1024
"""Number of cliques. It makes all arrays large: CuPy has other kernels for small ones."""


def run_clique(method: str, space: MemorySpace, whole: bool = False, compact_rows: bool = False) -> Intervals:
    """λ of the cliques by `method`, over arrays in `space`.

    `whole` is for peeling on a GPU, in plain rows or in `compact_rows`. What is peeled in shards, `tasks.shards` warms.
    """
    if whole:
        graph = whole_graph(whole_cliques(space))
        return peel_intervals(graph, peel(graph, most_plain=0 if compact_rows else None))
    owned = whole_cliques(space)
    subgraph = build_subgraph(owned, count_triangles(owned))
    if method == "peel":
        return peel_intervals(subgraph, peel(subgraph))
    # These import kernels for CPUs and carriers.
    from .bound.bisection import bisection_intervals, halve_bands, start_halves
    from .bound.fixpoint import fixpoint_intervals, lower_bounds, start_bounds

    topology, support = subgraph.topology, subgraph.first_counts()
    if method == "band":
        return bisection_intervals(subgraph, halve_bands(topology, start_halves(support)))
    return fixpoint_intervals(subgraph, lower_bounds(topology, start_bounds(support), "hindex"))


def whole_cliques(space: MemorySpace) -> OwnedEdges:
    """The cliques as the only partition, with arrays in `space`."""
    return ingest.owned_to_device(_owned()) if space is MemorySpace.DEVICE else _owned()


def load_coding(space: MemorySpace, text: bool) -> None:
    """Pack some rows, or code some strings, so that the threads that read do not all load the kernels for it."""
    if text:
        names = pa.array([f"{number % CLIQUE}" for number in range(CLIQUE * CLIQUES)], pa.large_string())
        ingest.clean(0, IdRows(names, names[::-1]), space)
        return
    rows = np.arange(CLIQUE, dtype=np.int64)
    ingest.pack(0, IdRows(space.place(rows), space.place(rows)))


def clique_edges() -> NDArray[np.int64]:
    """[edges, 2] ends of all edges, sorted."""
    one = np.array(list(combinations(range(CLIQUE), 2)), np.int64)
    return (CLIQUE * np.arange(CLIQUES)[:, None, None] + one).reshape(-1, 2)


def _owned() -> OwnedEdges:
    edges = clique_edges()
    low, high = edges.T.astype(np.int32)
    vertices = CLIQUE * CLIQUES
    offsets = order.offsets(np.bincount(low, minlength=vertices))
    row = np.arange(len(edges), dtype=np.int32)
    return OwnedEdges(np.arange(vertices), offsets, high, np.zeros(len(edges), np.int16), row)
