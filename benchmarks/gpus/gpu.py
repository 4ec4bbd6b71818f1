"""Support and λ on the GPU: one partition, graph on the device.

    python -m benchmarks gpu --scales 20,22,24 --repeats 3

R-MAT graphs, edge factor 16, are generated, cleaned and put in degree order on the device before the time is taken.
*Support* is the stage triangulate: counting triangles and building the subgraph. *λ* is the peeling of that subgraph,
including its rows and their hash tables. Times are medians of the repeats; kernels are compiled. Bytes are the peak of
CuPy's memory pool, including the oriented edges. With --profile operations are timed separately, with a
synchronization after each.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable
from statistics import median
from typing import Any

import cupy

from benchmarks.common.table import markdown, millions, seconds
from benchmarks.gpus.graphs import rmat
from edgemill import kernels
from edgemill.kernels.gpu import peel as peeling
from edgemill.kernels.gpu.runtime.launch import Rounds
from edgemill.tasks.bound.peel import peel, peel_intervals
from edgemill.tasks.graph.subgraph import build_subgraph
from edgemill.tasks.graph.triangulate import count_triangles
from edgemill.tasks.ingest import OwnedEdges

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

    for name in ("intersect", "adjacency"):
        setattr(kernels, name, timed(name, getattr(kernels, name)))
    peeling.adjacency = timed("compact", peeling.adjacency)  # type: ignore[assignment]
    Rounds.launch = timed("launch", Rounds.launch)  # type: ignore[method-assign]


def sample(owned: OwnedEdges) -> tuple[float, float, dict[str, int]]:
    """One pass: seconds of support and of λ, and the answers."""
    stream = cupy.cuda.get_current_stream()
    stream.synchronize()
    start = time.perf_counter()
    subgraph = build_subgraph(owned, count_triangles(owned, {}), 1, {})
    stream.synchronize()
    middle = time.perf_counter()
    found = peel(subgraph)
    stream.synchronize()
    end = time.perf_counter()
    low = peel_intervals(subgraph, found).low
    answers = {
        "edges": len(owned),
        "local": subgraph.topology.edges,
        "triangles": int(subgraph.support.sum(dtype="int64")) // 3,
        "levels": found.levels,
        "max": int(low.max()),
        "sum": int(low.sum(dtype="int64")),
    }
    return middle - start, end - middle, answers


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scales", default="20,22,24", help="R-MAT scales (20,22,24)")
    parser.add_argument("--repeats", type=int, default=3, help="passes (3)")
    parser.add_argument("--profile", action="store_true", help="time every operation apart")


def report(options: argparse.Namespace) -> list[list[str]]:
    """Measure and print; returns the rows of the table."""
    spent: Spent = Counter()
    if options.profile:
        profile(spent)
    device = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    print(f"{device}, CuPy {cupy.__version__}")
    sample(rmat(12))
    pool = cupy.get_default_memory_pool()
    lines: list[list[str]] = []
    for scale in map(int, options.scales.split(",")):
        owned = rmat(scale)
        pool.free_all_blocks()
        spent.clear()
        passes = [sample(owned) for _ in range(options.repeats)]
        answers = passes[0][2]
        support, bound = (median(p[i] for p in passes) for i in (0, 1))
        lines.append(
            [
                f"{scale}",
                millions(answers["edges"]),
                millions(answers["triangles"]),
                f"{answers['levels']}",
                f"{answers['max']}",
                f"{answers['sum']}",
                seconds(support),
                seconds(bound),
                seconds(support + bound),
                f"{pool.total_bytes() / answers['local']:.0f}",
            ]
        )
        print(markdown(HEAD, lines[-1:]), flush=True)
        if options.profile:
            print({name: round(value / options.repeats, 4) for name, value in sorted(spent.items())}, flush=True)
        del owned
        pool.free_all_blocks()
    print(markdown(HEAD, lines))
    return lines
