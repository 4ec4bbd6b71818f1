"""Peeling in bands, counted: how even the bands are, how many passes and exchanges the coarse filter takes.

    python -m benchmarks bands --graphs rmat18 --workers 4,16,64

Runs the filter of `tasks.bands` for P workers in one process, which does all shares one after the other, and counts. λ
is compared with that of peeling: each edge must be in the band of its λ.

The unit is W, the work of removing all edges: their triangles, and `EDGE_WORK` for each edge. Counting all triangles
takes 0.2 of their removal. *time* is that of the busiest worker over one worker's, without the time of exchanges:

    counting / P + passes shared by all, each by its busiest share + passes done alike by all + bands of one worker

A pass is done alike by all workers, without an exchange, if its work is small (`SMALL`).
"""

from __future__ import annotations

import argparse
import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from benchmarks.common.graphs import Graph, WrongAnswer, graph
from benchmarks.common.table import markdown
from benchmarks.kernels import owned_edges
from edgemill import kernels
from edgemill.kernels.cpu.peeling.filtering import Filtering
from edgemill.kernels.filters import EDGE_WORK, Frontier, Removed
from edgemill.kernels.graph import IntArray, Topology
from edgemill.kernels.runtime.threads import kernel_threads
from edgemill.tasks.bands.filtering import BANDS_PER_WORKER, Bands, CoarseFilter
from edgemill.tasks.bands.sums import WorkerSums
from edgemill.tasks.bound.peel import peel
from edgemill.tasks.graph import build_subgraph, count_triangles
from edgemill.tasks.shards import MemoryCarrier

GRAPHS = "cnr-2000,uk-2007-05_100000,ego-Twitter_combined,rmat16,rmat18"
COUNTING = 0.2
"""Time of counting all triangles over that of removing them."""


@njit(parallel=True)  # type: ignore[untyped-decorator]
def _changed(count: IntArray, before: IntArray) -> int:
    """How many counts of edges that are left changed."""
    changed = 0
    for e in prange(count.size):
        changed += count[e] >= 0 and count[e] != before[e]
    return changed


@dataclass(frozen=True)
class Pass:
    """One pass of the filter."""

    edges: int
    """Edges that it removes."""
    shares: NDArray[np.int64]
    """[workers] work of each worker's share."""
    alike: bool
    """Whether all workers do all of it."""
    changed: int
    """Counts that it lowers, of edges that are left."""
    left: int
    """Edges that are left."""


class SharedSums(WorkerSums):
    """The sums of several workers that are one process and share their counts."""

    def __init__(self, workers: int) -> None:
        super().__init__(MemoryCarrier.open(1)[0])
        self._workers = workers

    @property
    def workers(self) -> int:
        return self._workers

    def seconds(self) -> float:
        return 0.0


class CountingFilter(CoarseFilter):
    """The filter of several workers, in one process. Mutable."""

    def __init__(self, topology: Topology, count: IntArray, workers: int) -> None:
        super().__init__(topology, count, SharedSums(workers))
        self.made: list[Pass] = []

    def _pass(self, frontier: Frontier, small: float) -> tuple[Removed, Frontier]:
        part, workers = self._part, self._sums.workers
        assert isinstance(part, Filtering)
        edges, work = part._frontier, part._work  # in the order in which workers divide them
        before = part.count.copy()
        removed, following = part.remove_alone(0)
        destroyed = kernels.take(part._destroyed, edges).astype(np.int64)
        cuts = np.searchsorted(work, np.linspace(0, int(work[-1]), workers + 1)[1:-1])
        shares = np.array([own.sum() + EDGE_WORK * len(own) for own in np.split(destroyed, cuts)])
        self.made.append(Pass(len(edges), shares, frontier.work < small, _changed(part.count, before), part.left))
        self._passes += removed.passes
        self._removed += removed.triangles
        return removed, following

    def _agreed(self, values: list[int]) -> list[list[int]]:
        return [values]


def check(found: Bands, lam: IntArray) -> None:
    """Raises WrongAnswer unless each edge went between the two thresholds around its λ."""
    stops = np.array(found.stops, np.int64)
    start = np.array([found.first_level(band) for band in range(len(stops))])
    wrong = (lam < start[found.band]) | (lam >= stops[found.band])
    if wrong.any():
        raise WrongAnswer(f"{np.count_nonzero(wrong)} edges are in another band")


def makespan(bands: Sequence[int], workers: int) -> int:
    """Work of the worker with most of it, where the longest band goes first, to whoever is free."""
    loads = [0] * workers
    for band in sorted(bands, reverse=True):
        heapq.heapreplace(loads, loads[0] + band)
    return max(loads)


HEAD = (
    "graph",
    "P",
    "bands",
    "time",
    "coarse",
    "fine",
    "fine, sum",
    "largest, of aim",
    "passes",
    "exchanges",
    "alike",
    "taken back",
    "imbalance",
    "changes an edge",
    "bytes an edge",
)
KEYS = ("graph", "P")
RECORDED = ("time", "passes", "exchanges", "bytes an edge")


def row(name: str, edges: int, workers: int, found: Bands, made: Sequence[Pass]) -> list[str]:
    """A line of the table."""
    total = found.total + EDGE_WORK * edges
    alike = sum(int(one.shares.sum()) for one in made if one.alike)
    told = [one for one in made if not one.alike]
    shared, least = (sum(int(one.shares.max()) for one in told), sum(int(one.shares.sum()) for one in told) / workers)
    rest = [band for band, single in zip(found.work, found.single, strict=True) if not single]
    coarse, fine = (shared + alike) / total, makespan(rest, workers) / total
    counting = COUNTING * found.total / total
    # Each worker sends the changes of its share, and gets the sums: as a list (5 bytes) or as bits and bytes.
    sent = sum(2 * min(5 * one.changed, one.changed + (one.left + one.edges) // 8) for one in told)
    return [
        name,
        str(workers),
        str(len(found.stops)),
        f"{(counting / workers + coarse + fine) / (1 + counting):.2f}",
        f"{coarse:.2f}",
        f"{fine:.2f}",
        f"{sum(rest) / total:.2f}",
        f"{max(rest, default=0) / total * BANDS_PER_WORKER * workers:.1f}",
        str(len(made)),
        str(len(told)),
        f"{alike / total:.3f}",
        str(found.figures.taken_back),
        f"{shared / max(least, 1):.2f}",
        f"{sum(one.changed for one in told) / edges:.1f}",
        f"{sent / edges:.0f}",
    ]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    parser.add_argument("--graphs", default=GRAPHS, help="names, with commas between")
    parser.add_argument("--workers", default="2,4,8,16,32,64", help="numbers of workers, with commas between")


def rows_of(graph: Graph, workers: Sequence[int], threads: int) -> list[list[str]]:
    """The lines of one graph. Raises WrongAnswer if an edge is in another band than its λ."""
    with kernel_threads(threads):
        owned = owned_edges(graph.path)
        subgraph = build_subgraph(owned, count_triangles(owned))
        support = kernels.take(subgraph.support, subgraph.number)
        lam = peel(subgraph).low
        rows = []
        for count in workers:
            counted = CountingFilter(subgraph.topology, support, count)
            found = counted.run()
            check(found, lam)
            rows.append(row(graph.name, len(lam), count, found, counted.made))
            print(" ", *rows[-1], flush=True)
    return rows


def report(options: argparse.Namespace) -> list[list[str]]:
    """Count and print; returns the rows of the table."""
    workers = [int(count) for count in options.workers.split(",")]
    rows = [
        own
        for name in options.graphs.split(",")
        for own in rows_of(graph(name, options.cache), workers, options.threads)
    ]
    print(f"\n{markdown(HEAD, rows)}")
    return rows
