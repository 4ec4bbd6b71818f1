"""Counts of a peeling in bands, before it is built: passes, work, balance and bytes for P workers.

    python -m benchmarks bands --graphs cnr-2000,rmat18 --workers 2,4,8,16,32,64 --threads 2

Every worker holds a copy of the graph. All workers together remove the edges with fewer than t triangles, pass by pass,
for thresholds t that ascend: the coarse filter. The edges that go between two thresholds are a band, and one worker
peels it alone. λ is compared with that of peeling: each edge must be in the band of its λ.

The unit of work is T, the removal of all triangles. Counting them takes 0.2 T, so one worker takes 1.2 T. The filter
knows no λ: it chooses each threshold by the counts at the last one (`next_threshold`), and takes a jump back that turns
out to remove too much. *time* is that of the busiest worker over one worker's, without the time of exchanges:

    0.2 / P + passes shared by all workers, each by its busiest share + passes done alike by all + bands of one worker

A pass whose frontier has fewer than T / 4000 triangles is done alike by all workers, without an exchange.
"""

from __future__ import annotations

import argparse
import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from benchmarks.common.graphs import Graph, WrongAnswer, graph
from benchmarks.common.table import markdown
from benchmarks.kernels import owned_edges
from edgemill import kernels
from edgemill.kernels.cpu.adjacency import adjacency, compact
from edgemill.kernels.cpu.peeling.cascade import REMOVED, Cascade
from edgemill.kernels.cpu.peeling.live_rows import LiveRows
from edgemill.kernels.cpu.peeling.scan import not_removed
from edgemill.kernels.graph import Adjacency, IntArray, Topology
from edgemill.kernels.runtime.threads import kernel_threads
from edgemill.tasks.bound.peel import peel
from edgemill.tasks.graph.subgraph import build_subgraph
from edgemill.tasks.graph.triangulate import count_triangles

GRAPHS = "cnr-2000,uk-2007-05_100000,ego-Twitter_combined,rmat16,rmat18"
COUNTING = 0.2
"""Time of counting all triangles over that of removing them."""
ALIKE = 1 / 4000
"""A pass whose frontier has less than this share of all triangles is done alike by all workers."""
BANDS_PER_WORKER = 2
STEP = 8
"""A jump takes at most one more level for each STEP levels that are gone: farther ones may set off a long cascade."""
OVERSHOT = 1.5
"""A jump is taken back, unless it is of one level, if it removes more than so many times the aim, or if a pass of it
removes more than so many times what its first one did: then each pass sets off a larger one."""


@njit(parallel=True)  # type: ignore[untyped-decorator]
def _changed(count: IntArray, before: IntArray) -> int:
    """How many counts changed; `before` becomes the counts."""
    changed = 0
    for e in prange(count.size):
        if count[e] != before[e]:
            if count[e] >= 0:
                changed += 1
            before[e] = count[e]
    return changed


@dataclass(frozen=True)
class Pass:
    """One pass of the filter."""

    edges: int
    """Edges that it removes."""
    listed: int
    """The sum of their counts, which all workers know before. A triangle is in it once for each edge that goes."""
    triangles: int
    """Triangles that it removes."""
    shares: NDArray[np.int64]
    """[PARTS] triangles that each part of the frontier removes. The parts list equally many."""
    changed: int
    """Counts that it lowers, of edges that are left."""
    left: int
    """Edges that are left."""


class _Overshot(Exception):
    """A jump removed more than it may."""


PARTS = 64
"""Parts of a frontier. Each worker has equally many of them."""


@dataclass
class Filter:
    """The state of the coarse filter. Mutable."""

    topology: Topology
    count: IntArray
    passes: list[Pass] = field(default_factory=list)

    def __post_init__(self) -> None:
        edges = self.topology.edges
        self.count = self.count.copy()
        self._firsts = np.zeros(edges, np.int32)
        self._most, self._first = 0.0, 0
        self._small = ALIKE * self.count.sum(dtype=np.int64) / 3
        self._all = adjacency(self.topology)
        self._begin(self._copied(np.zeros(edges, np.int8)), np.zeros(edges, np.int8))

    def _begin(self, rows: Adjacency, state: NDArray[np.int8]) -> None:
        self._state = state
        self.left = int(np.count_nonzero(state == 0))
        self._before = self.count.copy()
        self._rows = LiveRows(self.topology, rows, state, self.left)
        self._cascade = Cascade(self.topology, self._rows.rows)
        self._cascade.state, self._cascade.after_round = state, self._removed
        self._cascade.firsts = self._firsts

    def restore(self, count: IntArray) -> None:
        """Go back to earlier counts, as they were at a threshold."""
        self.count = count.copy()
        state = np.where(count < 0, np.int8(REMOVED), np.int8(0))
        self._begin(self._copied(state), state)

    def _copied(self, state: NDArray[np.int8]) -> Adjacency:
        """Rows of the edges that are left; those of all edges stay as they are."""
        return compact(self._all, not_removed(state))

    def _removed(self, edges: IntArray) -> Adjacency:
        destroyed = self._firsts[edges].astype(np.int64)
        self.left -= len(edges)
        listed = self._before[edges].astype(np.int64)
        cuts = np.searchsorted(np.cumsum(listed), np.linspace(0, listed.sum(), PARTS + 1)[1:-1])
        shares = np.array([part.sum() for part in np.split(destroyed, cuts)])
        changed = _changed(self.count, self._before)
        self.passes.append(Pass(len(edges), int(listed.sum()), int(destroyed.sum()), shares, changed, self.left))
        self._most -= int(destroyed.sum())
        self._first = max(self._first, 0) or int(destroyed.sum())
        if self._most < 0 or (
            self._most < np.inf and destroyed.sum() > OVERSHOT * self._first and destroyed.sum() > self._small
        ):
            raise _Overshot
        return self._rows.remove(edges, self.left)

    def run(self, threshold: int, most: float) -> bool:
        """Remove the edges with fewer than `threshold` triangles, until none is left.

        Returns False once over `most` triangles went; the state is then in the middle of a pass, to be restored.
        """
        frontier = np.flatnonzero((self.count >= 0) & (self.count < threshold)).astype(np.int32)
        limit = np.array([threshold], np.int32)
        self._most, self._first = most, 0
        try:
            self._cascade.run(self._rows.rows, self.count, frontier, limit, None)
        except _Overshot:
            return False
        return True


def listed_below(count: IntArray) -> NDArray[np.int64]:
    """[t] the sum of the counts below t of the edges that are left, for each t up to the largest count + 1."""
    histogram = np.bincount(count[count >= 0])
    return np.concatenate([[0], np.cumsum(histogram * np.arange(len(histogram), dtype=np.int64))])


def next_threshold(listed: NDArray[np.int64], threshold: int, aim: float, factor: float) -> int:
    """The farthest threshold whose first frontier is expected to remove at most `aim` triangles with what follows it.

    `listed` [t] are the triangles that the frontier of t lists, and `factor` is how many went for each of them in the
    jump before.
    """
    least = int(np.searchsorted(listed, 0, "right"))  # nothing is removed below the least count
    most = int(np.searchsorted(listed, aim / factor, "right")) - 1
    return max(min(most, max(least, threshold + 1) + threshold // STEP), least, threshold + 1)


@dataclass(frozen=True)
class Counted:
    """What was counted of one graph for one number of workers."""

    stops: list[int]
    """The threshold at which each band ends."""
    triangles: list[int]
    """Triangles of each band."""
    single: list[bool]
    """Whether a band is of one level, so that nothing is left to peel."""
    stop_of: IntArray
    """[edges] the threshold that each edge went before."""
    passes: list[Pass]
    taken_back: int
    """Passes that were taken back, also in `passes`."""


def filtered(topology: Topology, support: IntArray, workers: int) -> Counted:
    """Run the coarse filter for a number of workers, until what is left is one band."""
    state = Filter(topology, support)
    total = left = int(support.sum(dtype=np.int64)) // 3
    aim, factor, threshold = total / (BANDS_PER_WORKER * workers), 1.0, 0
    too_far = 0  # a threshold that a jump was taken back from
    stop_of = np.full(topology.edges, 2**31 - 1, np.int32)
    stops, triangles, single, taken_back = [], [], [], 0
    while state.left and left > aim:
        start, passes = state.count.copy(), len(state.passes)
        listed = listed_below(start)
        least = max(int(start[start >= 0].min()), threshold) + 1
        while True:
            stop = next_threshold(listed, threshold, aim, factor)
            if threshold < too_far:
                stop = max(min(stop, (threshold + too_far) // 2), least)
            done = state.run(stop, np.inf if stop <= least else OVERSHOT * aim)
            made = state.passes[passes:]
            removed = sum(one.triangles for one in made)
            factor = max(removed / max(int(listed[min(stop, len(listed) - 1)]), 1), 1 / 3)
            if done:
                break
            too_far = stop
            taken_back += len(made)
            passes = len(state.passes)
            state.restore(start)
        stops.append(stop)
        triangles.append(removed)
        single.append(stop <= least)
        stop_of[(start >= 0) & (state.count < 0)] = stop
        threshold, left = stop, left - removed
    if state.left:
        stops.append(2**31 - 1)
        triangles.append(left)
        single.append(False)
    return merged(Counted(stops, triangles, single, stop_of, state.passes, taken_back), aim)


def merged(found: Counted, aim: float) -> Counted:
    """The same with neighbouring bands together, unless they have one level, or more triangles than aimed at."""
    stops: list[int] = []
    triangles: list[int] = []
    single: list[bool] = []
    for stop, own, alone in zip(found.stops, found.triangles, found.single, strict=True):
        if single and not alone and not single[-1] and triangles[-1] + own <= aim:
            stops[-1], triangles[-1] = stop, triangles[-1] + own
        else:
            stops.append(stop)
            triangles.append(own)
            single.append(alone)
    return replace(found, stops=stops, triangles=triangles, single=single)


def check(found: Counted, lam: IntArray, total: int) -> None:
    """Raises WrongAnswer unless each edge went between the two thresholds around its λ, and each triangle once."""
    if sum(found.triangles) != total:
        raise WrongAnswer(f"the bands have {sum(found.triangles)} triangles, and the graph has {total}")
    before = np.concatenate([[0], np.unique(found.stop_of)])
    start = before[np.searchsorted(before, found.stop_of) - 1]
    if np.any(lam < start) or np.any(lam >= found.stop_of):
        raise WrongAnswer(f"{np.count_nonzero((lam < start) | (lam >= found.stop_of))} edges are in another band")


def busiest(shares: NDArray[np.int64], workers: int) -> int:
    """Triangles of the worker with most of them. A worker has every `workers`-th of the parts."""
    return int(max(shares[w::workers].sum() for w in range(workers)))


def makespan(bands: Sequence[int], workers: int) -> int:
    """Triangles of the worker with most of them, where the longest band goes first, to whoever is free."""
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


def row(name: str, edges: int, total: int, workers: int, found: Counted) -> list[str]:
    """A line of the table."""
    alike = [one for one in found.passes if one.listed < ALIKE * total]
    told = [one for one in found.passes if one.listed >= ALIKE * total]
    shared, least = sum(busiest(one.shares, workers) for one in told), sum(one.triangles for one in told) / workers
    coarse = (shared + sum(one.triangles for one in alike)) / total
    rest = [band for band, single in zip(found.triangles, found.single, strict=True) if not single]
    fine = makespan(rest, workers) / total
    # Each worker sends the changes of its share, to their owners, and gets the sums: as a list (8 bytes) or dense (4).
    sent = sum(2 * min(8 * one.changed, 4 * (one.left + one.edges)) for one in told)
    return [
        name,
        str(workers),
        str(len(found.stops)),
        f"{(COUNTING / workers + coarse + fine) / (1 + COUNTING):.2f}",
        f"{coarse:.2f}",
        f"{fine:.2f}",
        f"{sum(rest) / total:.2f}",
        f"{max(rest, default=0) / total * BANDS_PER_WORKER * workers:.1f}",
        str(len(found.passes)),
        str(len(told)),
        f"{sum(one.triangles for one in alike) / total:.3f}",
        str(found.taken_back),
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
        subgraph = build_subgraph(owned, count_triangles(owned, {}), 1, {})
        support = kernels.take(subgraph.support, subgraph.number)
        lam, total = peel(subgraph).low, int(support.sum(dtype=np.int64)) // 3
        rows = []
        for count in workers:
            found = filtered(subgraph.topology, support, count)
            check(found, lam, total)
            rows.append(row(graph.name, len(owned), total, count, found))
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
