"""The methods that find λ of a graph on one worker, or on several in threads, with no Dask."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeAlias

from edgemill.kernels.runtime.threads import kernel_threads
from edgemill.tasks.bands.copies import graph_copy
from edgemill.tasks.bands.sums import WorkerSums
from edgemill.tasks.bound.bisection import Halves, bisection_intervals, halve_bands, start_halves
from edgemill.tasks.bound.fixpoint import Bounds, Operator, fixpoint_intervals, lower_bounds, start_bounds
from edgemill.tasks.bound.intervals import Intervals
from edgemill.tasks.bound.peel import peel, peel_intervals
from edgemill.tasks.graph import Subgraph
from edgemill.tasks.shards import MemoryCarrier

Method: TypeAlias = Callable[[Subgraph], Intervals]


def in_threads(workers: int, search: Callable[[WorkerSums], Any]) -> list[Any]:
    """[workers] what a search gives on each of several workers."""

    def on(carrier: MemoryCarrier) -> Any:
        with kernel_threads(1):
            try:
                return search(WorkerSums(carrier))
            except BaseException:
                carrier.abandon()
                raise

    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(on, MemoryCarrier.open(workers)))


def halved(graph: Subgraph, most: int | None = None, workers: int = 1, before: Halves | None = None) -> list[Halves]:
    """[workers] the bands after at most `most` iterations."""
    support = graph.first_counts()
    before = before or start_halves(support)
    if workers == 1:
        return [halve_bands(graph.topology, before, None, most)]
    copy = graph_copy(graph)
    return in_threads(workers, lambda sums: halve_bands(copy.topology(), before, sums, most))


def lowered(
    graph: Subgraph,
    operator: Operator = "hindex",
    most: int | None = None,
    workers: int = 1,
    before: Bounds | None = None,
) -> list[Bounds]:
    """[workers] the bounds after at most `most` iterations."""
    before = before or start_bounds(graph.first_counts())
    if workers == 1:
        return [lower_bounds(graph.topology, before, operator, None, most)]
    copy = graph_copy(graph)
    return in_threads(workers, lambda sums: lower_bounds(copy.topology(), before, operator, sums, most))


def band(graph: Subgraph, most: int | None = None, workers: int = 1) -> Intervals:
    """Bands that are halved; after `most` iterations it ends with the intervals of that moment."""
    return bisection_intervals(graph, halved(graph, most, workers)[-1])


def fixpoint(graph: Subgraph, operator: Operator = "hindex", most: int | None = None, workers: int = 1) -> Intervals:
    """Fixpoint iterations; after `most` of them it ends with the intervals of that moment."""
    return fixpoint_intervals(graph, lowered(graph, operator, most, workers)[-1])


def peeling(graph: Subgraph) -> Intervals:
    """Peeling from start to end."""
    return peel_intervals(graph, peel(graph))


def peeling_in_pieces(graph: Subgraph) -> Intervals:
    """Peeling, each time by a new one that goes on from what was found."""
    found = peel(graph, None, 0)
    while found.left:
        found = peel(graph, found, 0)
    return peel_intervals(graph, found)


ANYWHERE: dict[str, Method] = {
    "peel": peeling,
    "peel in pieces": peeling_in_pieces,
    "hindex": fixpoint,
    "tridn": partial(fixpoint, operator="tridn"),
}
"""Methods for arrays in any memory."""
METHODS: dict[str, Method] = ANYWHERE | {
    "band": band,
    "band, 3 workers": partial(band, workers=3),
    "hindex, 3 workers": partial(fixpoint, workers=3),
    "tridn, 2 workers": partial(fixpoint, operator="tridn", workers=2),
}
"""All methods, for arrays in host memory."""
