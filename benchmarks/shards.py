"""Peeling of rows cut by the third vertex, all shards in one process: counts and times.

    python -m benchmarks shards --graphs rmat14,rmat16 --shards 1,4,16,64

λ is compared with that of one partition, edge by edge. *Stored* is the largest shard's share of all entries. *Entries
read* and *triangles* are those of the busiest shard over the mean. *Rounds* are the exchanges that remove edges.
*Bytes* are those sent between shards per edge: 8 for each shard that receives its removal, 8 for each message. A shard
has at most one thread. Peak memory is not measured.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from benchmarks.common.graphs import Graph, WrongAnswer, graph
from benchmarks.common.table import markdown, millions, seconds
from benchmarks.kernels import owned_edges
from edgemill.kernels.cpu.shards import Cut
from edgemill.kernels.runtime.threads import kernel_threads
from edgemill.tasks.bound.peel import peel
from edgemill.tasks.graph import Subgraph, build_subgraph, count_triangles
from edgemill.tasks.shards import MemoryCarrier, ShardEdges
from edgemill.tasks.shards.peeling import GroupPeeling, build_group

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
KEYS = ("graph", "shards")
"""Columns that identify a row in the record."""
RECORDED = ("build, s", "peel, s", "one partition, s")
"""Columns whose figures are recorded."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    parser.add_argument("--graphs", default=GRAPHS, help="names, with commas between")
    parser.add_argument("--shards", default="1,2,4,16,64", help="numbers of shards, with commas between")
    parser.add_argument("--window", type=int, default=4, help="levels in a window (4)")


def row(name: str, subgraph: Subgraph, expected: np.ndarray, alone: float, shards: int, window: int) -> list[str]:
    """Peel in `shards` shards; returns a line of the table. Raises WrongAnswer."""
    topology = subgraph.topology
    (carrier,) = MemoryCarrier.open(1)
    low, high = topology.low.astype(np.uint32), topology.high.astype(np.uint32)
    support, cut = subgraph.support[subgraph.number], Cut(topology.vertices, shards)
    whole = ShardEdges(0, 1, cut, low, high, support, topology.edges)
    start = time.perf_counter()
    group = build_group(whole, carrier)
    middle = time.perf_counter()
    peeled = GroupPeeling(whole, group, carrier, window=window).run(None, None)
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


def rows_of(one: Graph, shards: list[int], threads: int, window: int) -> list[list[str]]:
    """The lines of one graph."""
    owned = owned_edges(one.path)
    with kernel_threads(threads):
        subgraph = build_subgraph(owned, count_triangles(owned))
        start = time.perf_counter()
        expected = peel(subgraph).low
        alone = time.perf_counter() - start
        return [row(one.name, subgraph, expected, alone, count, window) for count in shards]


def report(options: argparse.Namespace) -> list[list[str]]:
    """Measure and print; returns the rows of the table."""
    shards = [int(count) for count in options.shards.split(",")]
    graphs = [graph(name, options.cache) for name in options.graphs.split(",")]
    rows = [row for one in graphs for row in rows_of(one, shards, options.threads, options.window)]
    print(f"Shards in one process, {options.threads} threads, windows of {options.window} levels:\n")
    print(markdown(HEAD, rows))
    return rows
