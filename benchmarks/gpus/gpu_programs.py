"""Vertex programs on the GPU: PageRank, breadth-first search and components of R-MAT graphs in its memory.

    python -m benchmarks gpu_programs --scales 22,24 --repeats 3 --seconds 100

Graphs have edge factor 16 and are undirected, without duplicates and loops; isolated vertices stay. They are generated
on the device before the time is taken. *PageRank* is the time of one superstep: the difference of runs with many and
with few, divided. *gather* is its sum over rows alone. *BFS* starts at the vertex of highest degree, and *components*
runs to its end; both times include everything after the block is built. *floor* is 12 bytes an entry (a source and
a value) at the bandwidth of a copy within the device, which is measured. Times are medians of the repeats; kernels are
compiled before. No new measurement starts after `--seconds`. Answers are checked on the device.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import cupy
import numpy as np

from benchmarks.common.graphs import WrongAnswer
from benchmarks.common.table import markdown, millions
from benchmarks.gpus.graphs import rmat_block
from edgemill.kernels import programs as gathers
from edgemill.kernels.graph import Extreme
from edgemill.tasks.device import MemorySpace
from edgemill.tasks.partition import RangePartitioner
from edgemill.tasks.programs import GraphBlock, Program, ProgramOutcome, run_program
from edgemill.tasks.programs.shipped.bfs import BreadthFirst
from edgemill.tasks.programs.shipped.components import Components
from edgemill.tasks.programs.shipped.pagerank import PageRank
from edgemill.tasks.shards.carriers.carrier import MemoryCarrier

HEAD = (
    "scale",
    "entries, M",
    "measure",
    "time, ms",
    "floor, ms",
    "ratio",
    "G entries/s",
    "supersteps",
)
KEYS = ("scale", "measure")
"""Columns that identify a row in the record."""
RECORDED = ("time, ms",)
"""Columns whose figures are recorded."""
FEW, MANY = 2, 12
"""Supersteps of the two runs whose difference is measured."""
COPIED = 2**30
"""Bytes that are copied to measure the bandwidth."""


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of a call, and its result."""
    cupy.cuda.Device().synchronize()
    start = time.perf_counter()
    found = call()
    cupy.cuda.Device().synchronize()
    return time.perf_counter() - start, found


def bandwidth() -> float:
    """Bytes a second that a copy within the device reads and writes."""
    one, other = cupy.zeros(COPIED, np.uint8), cupy.empty(COPIED, np.uint8)

    def copy() -> None:
        other[:] = one

    copy()
    return 2 * COPIED / min(timed(copy)[0] for _ in range(5))


def run(program: Program, block: GraphBlock, most_steps: int | None = None) -> ProgramOutcome:
    """The program on the block, on the device."""
    carrier = MemoryCarrier.open(1)[0]
    return run_program(program, block, RangePartitioner(), carrier, space=MemorySpace.DEVICE, most_steps=most_steps)


class Measured:
    """Measurements of one graph."""

    def __init__(self, scale: int, repeats: int, bytes_per_second: float, end: float) -> None:
        self.scale, self.repeats, self.end, self.rate = scale, repeats, end, bytes_per_second
        self.block = rmat_block(scale)
        self.rows: list[list[str]] = []

    def add(self, measure: str, seconds: float, entries: int, steps: int) -> None:
        """A line of the table; `entries` is what the floor counts."""
        floor = 12 * entries / self.rate
        self.rows.append(
            [
                f"{self.scale}",
                millions(len(self.block)),
                measure,
                f"{1e3 * seconds:.2f}",
                f"{1e3 * floor:.2f}",
                f"{seconds / floor:.2f}",
                f"{entries / seconds / 1e9:.1f}",
                f"{steps}",
            ]
        )
        print(markdown(HEAD, self.rows[-1:]), flush=True)

    def over(self, call: Callable[[], Any]) -> tuple[float, Any]:
        """The median of the repeats, and the last result. The first call is not counted."""
        found = timed(call)[1]
        times: list[float] = []
        while len(times) < self.repeats and (not times or time.perf_counter() < self.end):
            seconds, found = timed(call)
            times.append(seconds)
        return median(times), found

    def all(self) -> list[list[str]]:
        """Measure everything that starts in time."""
        for measure in (self.gather, self.ranks, self.search, self.components):
            if time.perf_counter() < self.end:
                measure()
        return self.rows

    def gather(self) -> None:
        """Sums over rows alone."""
        values = cupy.full(len(self.block.sources), 1.0)
        seconds, found = self.over(lambda: gathers.row_sums(self.block.rows, values))
        if not bool((found == cupy.diff(self.block.rows.offsets)).all()):
            raise WrongAnswer(f"scale {self.scale}: a sum of ones differs from the length of its row")
        self.add("gather", seconds, len(self.block), 1)

    def ranks(self) -> None:
        """A superstep of PageRank."""
        few, _ = self.over(lambda: run(PageRank(iterations=FEW), self.block))
        many, found = self.over(lambda: run(PageRank(iterations=MANY), self.block))
        if abs(found.state["rank"].sum() - 1) > 1e-9:
            raise WrongAnswer(f"scale {self.scale}: ranks sum to {found.state['rank'].sum()}")
        self.add("PageRank", (many - few) / (MANY - FEW), len(self.block), 1)

    def search(self) -> None:
        """A search from the vertex of highest degree."""
        hub = int(cupy.diff(self.block.rows.offsets).argmax())
        seconds, found = self.over(lambda: run(BreadthFirst(hub), self.block))
        level = cupy.asarray(found.state["level"])
        reached = level >= 0
        entries = int(cupy.diff(self.block.rows.offsets)[reached].sum())
        highest, _ = gathers.row_extremes(self.block.rows, None, level, Extreme(largest=True))
        highest = cupy.maximum(highest, -1)  # of a vertex without edges, too
        if not bool((cupy.where(reached, highest <= level + 1, highest == -1) | (highest == -1)).all()):
            raise WrongAnswer(f"scale {self.scale}: levels of neighbours differ by more than one")
        self.add("BFS", seconds, entries, found.steps)

    def components(self) -> None:
        """Components, to the end."""
        seconds, found = self.over(lambda: run(Components(), self.block))
        label = cupy.asarray(found.state["component"])
        least, _ = gathers.row_extremes(self.block.rows, None, label, Extreme())
        if bool((least < label).any()):
            raise WrongAnswer(f"scale {self.scale}: an edge joins two components")
        self.add("components", seconds, len(self.block), found.steps)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scales", default="22,24", help="R-MAT scales (22,24)")
    parser.add_argument("--repeats", type=int, default=3, help="passes (3)")
    parser.add_argument("--seconds", type=float, default=600, help="no new measurement starts after this time (600)")


def report(options: argparse.Namespace) -> list[list[str]]:
    """Measure and print; returns the rows of the table."""
    end = time.perf_counter() + options.seconds
    rate = bandwidth()
    name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    print(f"{name}, CuPy {cupy.__version__}, copies at {rate / 1e9:.0f} GB/s", flush=True)
    lines: list[list[str]] = []
    for scale in map(int, options.scales.split(",")):
        if time.perf_counter() < end:
            lines += Measured(scale, options.repeats, rate, end).all()
            cupy.get_default_memory_pool().free_all_blocks()
    print(markdown(HEAD, lines))
    return lines
