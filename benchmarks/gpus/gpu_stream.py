"""Vertex programs on the GPU with edges in pinned host memory: PageRank, breadth-first search and components.

    python -m benchmarks gpu_stream --scale 26 --topology-gib 4
    python -m benchmarks gpu_stream --scale 28

Graphs are those of `gpu_programs`. They are generated on the device in parts; the time is not included. With
`--topology-gib` their entries lie in pinned memory, and at most so many GiB of the device hold some of them; without it
all entries lie on the device. *PageRank* is the time of one superstep: the difference of runs with many and with few,
divided. *10 iterations* is a whole run after the block is built, without copies that earlier runs have left on the
device. *BFS* starts at the vertex of highest degree, and *components* runs to its end. *Streamed* are the bytes of the
chunks that were copied, and of rows that were read without their chunk; *link* is the time of these bytes at the speed
of a copy from pinned memory, which is measured. *Predicted* is by the model of the plan, with that speed. Streamed
ranks and levels must have the same bits as those with all entries on the device, if these fit. Times are medians of the
repeats; kernels are compiled before.
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
from benchmarks.gpus.gpu_programs import FEW, MANY, run, timed
from benchmarks.gpus.graphs import block_of, rmat_rows
from edgemill.kernels.chunked import ChunkedRows
from edgemill.kernels.gpu.streaming import PinnedArray, streamed_rows
from edgemill.kernels.graph import InRows
from edgemill.tasks.programs import GraphBlock, Program, ProgramOutcome
from edgemill.tasks.programs.shipped.bfs import BreadthFirst
from edgemill.tasks.programs.shipped.components import Components
from edgemill.tasks.programs.shipped.pagerank import PageRank
from edgemill.tasks.programs.streaming import StreamCost

HEAD = (
    "scale",
    "entries, M",
    "topology, GiB",
    "measure",
    "time, ms",
    "streamed, MB",
    "link, ms",
    "ratio",
    "predicted, ms",
    "resident, ms",
)
KEYS = ("scale", "topology, GiB", "measure")
"""Columns that identify a row in the record."""
RECORDED = ("time, ms", "ratio")
"""Columns whose figures are recorded."""
ITERATIONS = 10
COPIED = 2**30
"""Bytes that are copied to measure the link."""


def link_rate() -> float:
    """Bytes a second of a copy from pinned memory."""
    host, device = PinnedArray.empty(COPIED, np.uint8), cupy.empty(COPIED, np.uint8)
    kind = cupy.cuda.runtime.memcpyHostToDevice

    def copy() -> None:
        cupy.cuda.runtime.memcpyAsync(device.data.ptr, host.device.data.ptr, COPIED, kind, 0)

    copy()
    return COPIED / min(timed(copy)[0] for _ in range(5))


class Graph:
    """One graph, with its entries on the device or in pinned memory."""

    def __init__(self, scale: int, topology_bytes: int | None) -> None:
        self.scale, self.topology_bytes = scale, topology_bytes
        self.offsets, self.source = rmat_rows(scale, topology_bytes is not None)
        self.host_offsets = self.offsets.get()
        self.entries = len(self.source)
        self.longest = int(np.diff(self.host_offsets).max())
        self.hub = int(np.diff(self.host_offsets).argmax())

    def block(self) -> GraphBlock:
        """The block as it is measured; nothing of streamed entries is on the device yet."""
        if self.topology_bytes is None:
            return block_of(self.offsets, InRows(self.offsets, self.source))
        return block_of(self.offsets, streamed_rows(self.host_offsets, self.source, None, self.topology_bytes))

    def resident(self) -> GraphBlock | None:
        """The block with all entries on the device; None if it is measured so, or if they do not fit beside others."""
        if self.topology_bytes is None or 4 * self.entries > 0.5 * cupy.cuda.runtime.memGetInfo()[0]:
            return None
        return block_of(self.offsets, InRows(self.offsets, cupy.asarray(self.source.host)))


def bytes_of(block: GraphBlock) -> int:
    """Bytes that were streamed so far."""
    rows = block.rows
    return rows.feed.bytes_copied + rows.feed.bytes_direct if isinstance(rows, ChunkedRows) else 0


class Measured:
    """Measurements of one graph."""

    def __init__(self, graph: Graph, rate: float, repeats: int) -> None:
        self.graph, self.rate, self.repeats = graph, rate, repeats
        self.block, self.resident = graph.block(), graph.resident()
        self.lines: list[list[str]] = []

    def add(
        self, measure: str, seconds: float, streamed: float, predicted: float | None, resident: float | None
    ) -> None:
        """A line of the table; `streamed` is in bytes."""
        link, graph = streamed / self.rate, self.graph
        self.lines.append(
            [
                f"{graph.scale}",
                millions(graph.entries),
                "all" if graph.topology_bytes is None else f"{graph.topology_bytes / 2**30:.3g}",
                measure,
                f"{1e3 * seconds:.2f}",
                f"{streamed / 1e6:.0f}",
                f"{1e3 * link:.2f}",
                f"{seconds / link:.2f}" if link else "",
                "" if predicted is None else f"{1e3 * predicted:.2f}",
                "" if resident is None else f"{1e3 * resident:.2f}",
            ]
        )
        print(markdown(HEAD, self.lines[-1:]), flush=True)

    def over(self, call: Callable[[], Any], block: GraphBlock) -> tuple[float, float, Any]:
        """Medians of the repeats: seconds, and bytes that were streamed; and the last result."""
        times, streamed, found = [], [], call()
        for _ in range(self.repeats):
            before = bytes_of(block)
            seconds, found = timed(call)
            times.append(seconds)
            streamed.append(bytes_of(block) - before)
        return median(times), median(streamed), found

    def all(self) -> list[list[str]]:
        """Measure everything."""
        self.ranks()
        self.iterations()
        self.whole(f"BFS from {self.graph.hub}", BreadthFirst(self.graph.hub), "level")
        self.whole("components", Components(), "component")
        return self.lines

    def cost(self) -> StreamCost:
        """The model of the plan."""
        whole, graph = 4 * self.graph.entries, self.graph
        topology = whole if graph.topology_bytes is None else graph.topology_bytes
        return StreamCost(graph.entries, 1 << graph.scale, 4, topology, graph.longest, self.rate)

    def step(self, block: GraphBlock) -> tuple[float, float, ProgramOutcome]:
        """Seconds and streamed bytes of a superstep of PageRank."""
        few, few_bytes, _ = self.over(lambda: run(PageRank(iterations=FEW), block), block)
        many, many_bytes, found = self.over(lambda: run(PageRank(iterations=MANY), block), block)
        steps = MANY - FEW
        return (many - few) / steps, (many_bytes - few_bytes) / steps, found

    def ranks(self) -> None:
        """A superstep of PageRank."""
        seconds, streamed, found = self.step(self.block)
        rank, resident = found.state["rank"], None
        if abs(float(rank.sum()) - 1) > 1e-9:
            raise WrongAnswer(f"scale {self.graph.scale}: ranks sum to {rank.sum()}")
        if self.resident is not None:
            resident, _, known = self.step(self.resident)
            self.check("ranks", rank, known.state["rank"])
        self.add("PageRank", seconds, streamed, self.cost().step_seconds, resident)

    def iterations(self) -> None:
        """Ten iterations from the start."""
        seconds, streamed = [], []
        for _ in range(self.repeats):
            self.block = self.graph.block()
            block = self.block
            seconds.append(timed(lambda block=block: run(PageRank(iterations=ITERATIONS), block))[0])
            streamed.append(bytes_of(block))
        predicted = self.cost().seconds(ITERATIONS) if self.graph.topology_bytes is not None else None
        self.add(f"PageRank, {ITERATIONS} iterations", median(seconds), median(streamed), predicted, None)

    def whole(self, measure: str, program: Program, name: str) -> None:
        """A program to its end."""
        seconds, streamed, found = self.over(lambda: run(program, self.block), self.block)
        resident = None
        if self.resident is not None:
            resident, _, known = self.over(lambda: run(program, self.resident), self.resident)  # type: ignore[arg-type]
            self.check(name, found.state[name], known.state[name])
        self.add(measure, seconds, streamed, None, resident)

    def check(self, name: str, found: Any, known: Any) -> None:
        """Raises WrongAnswer unless both have the same bits."""
        if not bool((cupy.asarray(found).view(np.uint8) == cupy.asarray(known).view(np.uint8)).all()):
            raise WrongAnswer(f"scale {self.graph.scale}: {name} differ if entries are streamed")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scale", type=int, default=24, help="R-MAT scale (24)")
    parser.add_argument("--topology-gib", type=float, help="GiB of the device for entries (all)")
    parser.add_argument("--repeats", type=int, default=3, help="passes (3)")


def report(options: argparse.Namespace) -> list[list[str]]:
    """Measure and print; returns the rows of the table."""
    rate = link_rate()
    name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    print(f"{name}, CuPy {cupy.__version__}, copies from pinned memory at {rate / 1e9:.1f} GB/s", flush=True)
    start = time.perf_counter()
    given = options.topology_gib
    graph = Graph(options.scale, None if given is None else int(given * 2**30))
    print(f"graph of {graph.entries:,} entries made in {time.perf_counter() - start:.1f} s", flush=True)
    lines = Measured(graph, rate, options.repeats).all()
    print(markdown(HEAD, lines))
    return lines
