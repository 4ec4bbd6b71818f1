"""Support and λ on the GPU: one partition, graph on the device.

    python -m benchmarks gpu --scales 20,22,24 --repeats 3
    python -m benchmarks gpu --scales "" --graphs cnr-2000,uk-2007-05_100000,actor-collaboration

R-MAT graphs, edge factor 16, are generated, cleaned and put in degree order on the device before the time is taken.
Graphs of the catalogue are read from Parquet, and their answers are checked against it.
*Support* is the stage triangulate: counting triangles. *λ* is peeling, including its rows and their hash tables. Times
are medians of the repeats; kernels are compiled. A first pass, unless --repeats is 1, takes the pool's memory from the
device and is not in the medians. Bytes are the peak of CuPy's memory pool for each edge in that pass, including the
oriented edges, but not mapped host memory. With --bytes CuPy may take that many bytes for each edge, so that peeling
starts in compact rows if plain rows do not fit. With --check that many edges drawn at random are checked: an edge with
λ = k has at least k triangles whose other edges have λ ≥ k, and at most k whose other edges have λ > k. With --profile
operations are timed separately, with a synchronization after each.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from statistics import median
from typing import Any

import cupy

from benchmarks.common.graphs import Answers, Graph
from benchmarks.common.graphs import graph as catalogued
from benchmarks.common.table import markdown, millions, seconds
from benchmarks.gpus.check_lambda import check_lambda
from benchmarks.gpus.graphs import real, rmat
from edgemill.kernels.gpu import peel as peeling
from edgemill.kernels.gpu.peel import Rounds
from edgemill.kernels.gpu.whole_graph import WholePeeling
from edgemill.tasks.bound.peel import peel
from edgemill.tasks.device import MemorySpace, move_arrays
from edgemill.tasks.graph import WholeGraph, whole_graph
from edgemill.tasks.ingest import OwnedEdges, owned_to_device

HEAD = (
    "scale",
    "edges, M",
    "triangles, M",
    "levels",
    "λ max",
    "λ sum",
    "support, s",
    "λ, s",
    "both, s",
    "bytes/edge",
    "bytes/local edge",
)
KEYS = ("scale",)
"""Columns that identify a row in the record."""
RECORDED = ("support, s", "λ, s", "both, s", "bytes/local edge")
"""Columns whose figures are recorded."""
Spent = Counter[str]


def profile(spent: Spent) -> None:
    """Time each operation from here on."""

    def timed(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            cupy.cuda.get_current_stream().synchronize()
            start = time.perf_counter()
            found = function(*arguments, **named)
            cupy.cuda.get_current_stream().synchronize()
            spent[name] += time.perf_counter() - start
            spent[f"{name} calls"] += 1
            if name == "launch":
                spent["rounds"] += int(arguments[0].state[1])
            return found

        return call

    module = sys.modules["edgemill.kernels.gpu.triangles"]
    module.supports = timed("supports", module.supports)
    for name in ("_go_on_in_plain_rows", "_scatter"):
        setattr(WholePeeling, name, timed(name, getattr(WholePeeling, name)))
    peeling.adjacency = timed("compact", peeling.adjacency)  # type: ignore[assignment]
    Rounds.launch = timed("launch", Rounds.launch)  # type: ignore[method-assign]


def sample(given: OwnedEdges) -> tuple[float, float, WholeGraph, Any]:
    """One pass: seconds of support and of λ, and the answers: supports and λ of all edges.

    The edges are copied from host memory before, so that only these arrays are in the pool.
    """
    owned = owned_to_device(given)
    stream = cupy.cuda.get_current_stream()
    stream.synchronize()
    start = time.perf_counter()
    graph = whole_graph(owned)
    del owned
    stream.synchronize()
    middle = time.perf_counter()
    found = peel(graph)
    low, levels = found.low, found.levels
    del found
    stream.synchronize()
    end = time.perf_counter()
    return middle - start, end - middle, graph, (low, levels)


class Peak(cupy.cuda.MemoryHook):
    """The most bytes that arrays took at once."""

    name = "peak"
    most = 0

    def malloc_postprocess(self, **kwargs: Any) -> None:
        """Called by CuPy after it gives memory to an array."""
        self.most = max(self.most, cupy.get_default_memory_pool().used_bytes())


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scales", default="20,22,24", help="R-MAT scales (20,22,24)")
    parser.add_argument("--graphs", default="", help="names of graphs of the catalogue, with commas between (none)")
    parser.add_argument("--repeats", type=int, default=3, help="passes (3)")
    parser.add_argument("--bytes", type=int, default=0, help="most bytes for each edge (0: all of the device)")
    parser.add_argument("--check", type=int, default=0, help="edges whose λ is checked (0)")
    parser.add_argument("--profile", action="store_true", help="time every operation apart")


def inputs(options: argparse.Namespace) -> Iterator[tuple[str, Graph | None, Callable[[], OwnedEdges]]]:
    """The graphs to measure: name, entry of the catalogue if it is there, and what makes its edges."""
    for scale in filter(None, options.scales.split(",")):
        yield scale, None, partial(rmat, int(scale))
    for name in filter(None, options.graphs.split(",")):
        known = catalogued(name)
        yield name, known, partial(real, known.path)


def report(options: argparse.Namespace) -> list[list[str]]:
    """Measure and print; returns the rows of the table."""
    spent: Spent = Counter()
    if options.profile:
        profile(spent)
    device = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    print(f"{device}, CuPy {cupy.__version__}")
    sample(move_arrays(rmat(12), MemorySpace.HOST))
    pool = cupy.get_default_memory_pool()
    lines: list[list[str]] = []
    for name, known, made in inputs(options):
        pool.set_limit(size=0)
        owned = move_arrays(made(), MemorySpace.HOST)
        pool.free_all_blocks()
        pool.set_limit(size=options.bytes * len(owned))
        times, peak = [], Peak()
        for turn in range(options.repeats + (options.repeats > 1)):
            graph = answer = None
            if turn < 2:  # so that operations of the first pass count only if there is no other
                spent.clear()
            with nullcontext() if turn else peak:
                *seconds_, graph, answer = sample(owned)
            times.append(seconds_)
        times = times[1:] or times
        pool.set_limit(size=0)
        if known is not None:
            known.check(_answers(graph, answer[0]))
        lines.append(_line(name, times, graph, answer, peak.most))
        print(markdown(HEAD, lines[-1:]), flush=True)
        if options.check:
            print(_shape(answer[0]))
            check_lambda(graph, answer[0], options.check)
            print(f"{options.check} edges have the right λ", flush=True)
        if options.profile:
            print({name: round(value / options.repeats, 4) for name, value in sorted(spent.items())}, flush=True)
        del owned, graph, answer
        pool.free_all_blocks()
    print(markdown(HEAD, lines))
    return lines


def _answers(graph: WholeGraph, low: Any) -> Answers:
    return Answers(
        vertices=graph.counts.vertices,
        edges=graph.counts.owned,
        triangles=int(graph.support.sum(dtype="int64")) // 3,
        lambda_max=int(low.max()),
        lambda_sum=int(low.sum(dtype="int64")),
    )


def _line(name: str, times: list[list[float]], graph: WholeGraph, answer: Any, most: int) -> list[str]:
    low, levels = answer
    found = _answers(graph, low)
    support, bound = (median(one[i] for one in times) for i in (0, 1))
    return [
        name,
        millions(found.edges),
        millions(found.triangles),
        f"{levels}",
        f"{found.lambda_max}",
        f"{found.lambda_sum}",
        seconds(support),
        seconds(bound),
        seconds(support + bound),
        f"{most / found.edges:.1f}",
        f"{most / int((graph.support > 0).sum()):.1f}",
    ]


def _shape(low: Any) -> str:
    """The distribution of λ over the edges with triangles, as shares of the largest."""
    counts = cupy.bincount(low).get()
    counts[0] = 0
    below, largest = counts.cumsum(), len(counts) - 1
    parts = (0.1, 0.25, 0.5, 0.75, 0.9, 0.99)
    at = [int(below.searchsorted(part * below[-1])) / largest for part in parts]
    return "λ/λmax at " + ", ".join(f"{part:.0%}: {share:.4f}" for part, share in zip(parts, at, strict=True))
