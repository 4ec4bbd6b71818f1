"""λ in bands on the GPU: the work of several groups in one process on one GPU, and what each of several GPUs would do.

    python -m benchmarks gpu_bands --scales 20,22,24 --workers 2,4

The groups share one copy of the graph and its rows. They do their shares of each pass of the coarse filter of
`tasks.bands` one after the other; what all do alike is done once. Then each band is peeled. λ of each edge is compared
with that of `kernels.peeling`, *one peel*. Exchanges take no time here.

    all      everything, as one GPU does it for all groups
    busiest  for P GPUs: the filter with the busiest share of each pass, and the longest sum of bands of one of them

Medians of the repeats; kernels are compiled. The graph is made on the device before.
"""

from __future__ import annotations

import argparse
import heapq
import time
from statistics import median
from typing import Any, NamedTuple

import cupy

from benchmarks.bands import SharedSums
from benchmarks.common.graphs import WrongAnswer
from benchmarks.common.table import markdown, millions, seconds
from benchmarks.gpus.graphs import rmat
from edgemill import kernels
from edgemill.kernels.filters import EDGE_WORK, Frontier, Removed
from edgemill.kernels.graph import IntArray, Topology
from edgemill.tasks.bands.copies import graph_copy
from edgemill.tasks.bands.filtering import Bands, CoarseFilter
from edgemill.tasks.bands.peeling import BandState, peel_band
from edgemill.tasks.graph import whole_graph

HEAD = (
    "scale",
    "edges, M",
    "P",
    "bands",
    "passes",
    "exchanges",
    "one peel, s",
    "shares, s",
    "alike, s",
    "bands, s",
    "longest band, s",
    "all over one peel",
    "busiest over one peel",
)
KEYS = ("scale", "P")
RECORDED = ("one peel, s", "shares, s", "alike, s", "bands, s", "all over one peel", "busiest over one peel")


class Times(NamedTuple):
    """Seconds of one pass."""

    peel: float
    shares: float
    """Of all shares of passes."""
    alike: float
    """Of the filter without shares."""
    bands: float
    longest: float
    all: float
    """All over one peel."""
    busiest: float
    """The busiest group over one peel."""


class GroupsFilter(CoarseFilter):
    """The filter of several groups that share one copy of the graph. Mutable."""

    def __init__(self, topology: Topology, count: IntArray, workers: int) -> None:
        super().__init__(topology, count, SharedSums(workers))
        self.exchanges = 0
        self.shares = self.busiest = self.copies = 0.0
        """Seconds of all shares, of the busiest one of each pass, and of the copies that groups of their own have."""

    def _pass(self, frontier: Frontier, small: float) -> tuple[Removed, Frontier]:
        part, workers = self._part, self._sums.workers
        if frontier.work < small:
            return super()._pass(frontier, small)
        started = _now()
        before, total, times, triangles = part.count.copy(), cupy.zeros_like(part.count), [], 0
        for worker in range(workers):
            part.count[:] = before
            begun = _now()
            triangles += part.remove_share(worker, workers)
            times.append(_now() - begun)
            total += part.amounts  # type: ignore[attr-defined]
        part.count -= total
        self.shares, self.busiest = self.shares + sum(times), self.busiest + max(times)
        self.copies += _now() - started - sum(times)
        self.exchanges += 1
        self._passes += 1
        self._removed += triangles
        return Removed(frontier.edges, triangles, 1), part.end_pass()

    def _agreed(self, values: list[int]) -> list[list[int]]:
        return [values]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    parser.add_argument("--scales", default="20,22,24", help="R-MAT scales (20,22,24)")
    parser.add_argument("--workers", default="4", help="numbers of workers, with commas between (4)")
    parser.add_argument("--repeats", type=int, default=3, help="passes after the first (3)")
    parser.add_argument("--profile", action="store_true", help="print the work and the seconds of each band")


def _now() -> float:
    cupy.cuda.get_current_stream().synchronize()
    return time.perf_counter()


def sample(topology: Topology, support: IntArray, workers: int, profile: bool) -> tuple[Times, Bands, int]:
    """One pass: times, bands, exchanges. Raises WrongAnswer if λ of an edge differs from peeling."""
    started = _now()
    peeling = kernels.peeling(topology, support)
    while peeling.left:
        peeling.advance()
    lam = peeling.low
    peel = _now() - started
    del peeling
    started = _now()
    groups = GroupsFilter(topology, support, workers)
    bands = groups.run()
    alike = _now() - started - groups.shares - groups.copies
    state, found, each = BandState.of(bands), {}, {}
    for band in state.unfinished:
        started = _now()
        found[band] = peel_band(topology, bands, band)
        each[band] = _now() - started
    if bool((state.with_bands(found).low != lam).any()):
        raise WrongAnswer("λ of bands is not that of peeling")
    if profile:
        sizes = state.band_sizes()
        for band, spent in each.items():
            left = int(sizes[band:].sum())
            triangles = bands.work[band] - EDGE_WORK * int(sizes[band])
            print(f"band {band}: {sizes[band]:,} edges of {left:,}, {triangles:,} triangles, {spent:.3f} s")
    loads = [0.0] * workers
    for spent in each.values():  # those with most work first
        heapq.heapreplace(loads, loads[0] + spent)
    fine = sum(each.values())
    total, busiest = groups.shares + alike + fine, groups.busiest + alike + max(loads)
    longest = max(each.values(), default=0.0)
    return Times(peel, groups.shares, alike, fine, longest, total / peel, busiest / peel), bands, groups.exchanges


def report(options: argparse.Namespace) -> list[list[str]]:
    """Measure and print; returns the rows of the table."""
    lines: list[list[str]] = []
    for scale in options.scales.split(","):
        owned = rmat(int(scale))
        edges: Any = graph_copy(whole_graph(owned))
        del owned
        topology, support = edges.topology(), edges.support
        for workers in map(int, options.workers.split(",")):
            times = []
            for turn in range(options.repeats + 1):
                one, bands, exchanges = sample(topology, support, workers, options.profile and turn == 1)
                times.append(one)
            *spent, total, busiest = (median(own) for own in zip(*(times[1:] or times), strict=True))
            facts = (len(bands.stops), bands.figures.passes, exchanges)
            ratios = (f"{total:.2f}", f"{busiest:.2f}")
            lines.append([scale, millions(len(edges)), str(workers), *map(str, facts), *map(seconds, spent), *ratios])
            print(markdown(HEAD, lines[-1:]), flush=True)
        del edges, topology, support, bands
        cupy.get_default_memory_pool().free_all_blocks()
    print(markdown(HEAD, lines))
    return lines
