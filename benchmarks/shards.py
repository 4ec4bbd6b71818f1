"""Peeling by rows cut by the third vertex: counts and times, all shards in one process, one thread a shard at most.

    python -m benchmarks shards --graphs rmat14,rmat16 --shards 1,4,16,64

Every answer is compared with the peel of one partition, edge by edge. *Stored* is the largest shard's share of all
entries. *Entries read* and *triangles* are those of the busiest shard over the mean. *Rounds* are the exchanges that
remove edges. *Bytes* are those that cross shards for each edge: 8 for each shard that hears of its removal, 8 for each
message. Peak memory is not measured here.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from benchmarks.graphs import Graph, WrongAnswer, graph
from benchmarks.kernels import owned_edges
from benchmarks.table import markdown, millions, seconds
from edgemill.kernels.cpu.shards import Cut
from edgemill.kernels.threads import kernel_threads
from edgemill.tasks.bound.peel import peel
from edgemill.tasks.shards import MemoryCarrier, ShardEdges
from edgemill.tasks.shards.building import build_group
from edgemill.tasks.shards.peeling import Peeling
from edgemill.tasks.subgraph import Subgraph, build_subgraph
from edgemill.tasks.triangulate import count_triangles

GRAPHS = "rmat14,rmat16,rmat18,cnr-2000,uk-2007-05_100000,ego-Twitter_combined"
HEAD = (
    "graph",
    "edges, M",
    "shards",
    "stored",
    "entries read",
    "triangles",
    "exchanges",
    "rounds",
    "levels",
    "alarms an edge",
    "reports",
    "grants",
    "bytes an edge",
    "build, s",
    "peel, s",
    "one partition, s",
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    parser.add_argument("--graphs", default=GRAPHS, help="names, with commas between")
    parser.add_argument("--shards", default="1,2,4,16,64", help="numbers of shards, with commas between")
    parser.add_argument("--near", type=int, default=4, help="levels in a window (4)")


def row(name: str, subgraph: Subgraph, expected: np.ndarray, alone: float, shards: int, near: int) -> list[str]:
    """Peel in so many shards; a line of the table. Raises WrongAnswer."""
    topology = subgraph.topology
    (carrier,) = MemoryCarrier.open(1)
    low, high = topology.low.astype(np.uint32), topology.high.astype(np.uint32)
    support, cut = subgraph.support[subgraph.number], Cut(topology.vertices, shards)
    whole = ShardEdges(0, 1, cut, low, high, support, topology.edges)
    start = time.perf_counter()
    group = build_group(whole, carrier)
    middle = time.perf_counter()
    peeled = Peeling(whole, group, carrier, near=near).run(None, None)
    end = time.perf_counter()
    if not np.array_equal(peeled.low, expected):
        raise WrongAnswer(f"{name} in {shards} shards: λ is not that of one partition")
    progress, edges = peeled.figures, topology.edges
    stored = np.bincount(cut.classes(low), minlength=shards) + np.bincount(cut.classes(high), minlength=shards)
    messages = progress.messages
    return [
        name,
        millions(edges),
        str(shards),
        f"{stored.max() / stored.sum():.3f}",
        _uneven(progress.entries),
        _uneven(progress.triangles),
        str(progress.exchanges),
        str(progress.rounds),
        str(progress.levels),
        *(f"{count / edges:.2f}" for count in (progress.alarms, progress.reports, progress.grants)),
        f"{8 * (shards - 1) + 8 * messages / edges:.0f}",
        seconds(middle - start),
        seconds(end - middle),
        seconds(alone),
    ]


def _uneven(counts: tuple[int, ...]) -> str:
    return f"{max(counts) / max(1.0, float(np.mean(counts))):.2f}"


def rows_of(one: Graph, shards: list[int], threads: int, near: int) -> list[list[str]]:
    """The lines of one graph."""
    owned = owned_edges(one.path)
    with kernel_threads(threads):
        subgraph = build_subgraph(owned, count_triangles(owned, {}), 1, {})
        start = time.perf_counter()
        expected = peel(subgraph).low
        alone = time.perf_counter() - start
        return [row(one.name, subgraph, expected, alone, count, near) for count in shards]


def report(options: argparse.Namespace) -> None:
    """Measure and print."""
    shards = [int(count) for count in options.shards.split(",")]
    graphs = [graph(name, options.cache) for name in options.graphs.split(",")]
    found = [row for one in graphs for row in rows_of(one, shards, options.threads, options.near)]
    print(f"Shards in one process, {options.threads} threads, windows of {options.near} levels:\n")
    print(markdown(HEAD, found))
