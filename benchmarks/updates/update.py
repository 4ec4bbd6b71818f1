"""λ after a batch of changed edges, compared with a full computation in the same process.

    python -m benchmarks update --graphs cnr-2000,actor-collaboration --shares 0.0001,0.001,0.01 --repeats 3
    python -m benchmarks update --kinds stars,random --shares 0.0001,0.001,0.01,0.1 --csv benchmarks/update-cost.csv

*Stars* are all edges of random vertices: half of them come, half of them go. *Newcomers* are stars of vertices whose
degree is at most the median. *Random* are random edges, half of which come and half go. The share is that of all edges.
Yesterday's graph is the whole graph without the edges that come, today's without those that go. *Full* is the peeling
of today's graph, with its triangles counted before; *update* is `update_order`, which needs no counts. *Part* is the
ratio of the two. *Triangles* are those that the update looked at, over today's triangles, each of which a peeling looks
at once or more. *Work* counts those of the replay ten times, as the budget does; *estimate* is what the samples of the
plan tell of it, in the time of *samples*. *Order* is the time
of `order_of`, which derives the order of peeling from λ once. Times are medians of the repeats. With `--csv` the table
is also written to a file, from which `docs/making/pictures.py` draws the cost against the size of the change. λ is
compared with the full computation, edge by edge, and the new order is checked.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from benchmarks.common.graphs import Graph, WrongAnswer, graph
from benchmarks.common.table import markdown, millions, seconds
from edgemill.kernels.graph import Topology
from edgemill.kernels.runtime.threads import kernel_threads
from edgemill.tasks.bound.peel import find_lambda, find_triangles
from edgemill.tasks.update.order import Order, find_violation, order_of
from edgemill.tasks.update.updating import MOST, estimate_work, update_order
from edgemill.tasks.update.warm import warm_updates

GRAPHS = "cnr-2000,uk-2007-05_100000,actor-collaboration,rmat18"
KINDS = ("newcomers", "stars", "random")
HEAD = (
    "graph",
    "edges, M",
    "triangles, M",
    "batch",
    "share, %",
    "changed edges",
    "λ changed, %",
    "triangles, %",
    "work, %",
    "estimate, %",
    "count, s",
    "full, s",
    "order, s",
    "samples, s",
    "update, s",
    "part",
)
KEYS = ("graph", "batch", "share, %")
"""Columns that identify a row in the record."""
RECORDED = ("full, s", "update, s")
"""Columns whose figures are recorded."""


@dataclass(frozen=True)
class Full:
    """λ of a graph from nothing."""

    lam: NDArray[np.int32]
    """[edges] λ, in the order of the edges."""
    triangles: int
    count_seconds: float
    """Counting triangles and building the subgraph."""
    peel_seconds: float


def simple_edges(graph: Graph) -> Topology:
    """The edges of a graph without loops and duplicates. Vertices are numbered in the order of ids."""
    table = pq.read_table(graph.path, columns=["src", "dst"])
    ids, ends = np.unique([table["src"].to_numpy(), table["dst"].to_numpy()], return_inverse=True)
    low, high = np.sort(ends.reshape(2, -1), axis=0)
    keys = np.unique((low << 32 | high)[low != high])
    return Topology((keys >> 32).astype(np.int32), keys.astype(np.int32), len(ids))


def part_of(edges: Topology, chosen: NDArray[np.bool_]) -> Topology:
    """Some of the edges, with the same numbers of vertices."""
    return Topology(edges.low[chosen], edges.high[chosen], edges.vertices)


def full(edges: Topology) -> Full:
    """λ from nothing, timed."""
    start = time.perf_counter()
    owned, subgraph = find_triangles(edges.low, edges.high, edges.vertices)
    middle = time.perf_counter()
    found = find_lambda(subgraph)
    end = time.perf_counter()
    lam = np.empty(edges.edges, np.int32)
    lam[owned.row] = found
    return Full(lam, int(subgraph.support.sum(dtype=np.int64)) // 3, middle - start, end - middle)


def batch(edges: Topology, kind: str, share: float, seed: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Edges that come and edges that go, bool [edges] each: a share of all edges together, at least one of each."""
    rng = np.random.default_rng(seed)
    wanted = max(1, round(edges.edges * share / 2))
    come, go = np.zeros((2, edges.edges), np.bool_)
    if kind == "random":
        drawn = rng.choice(edges.edges, 2 * wanted, replace=False)
        come[drawn[:wanted]], go[drawn[wanted:]] = True, True
        return come, go
    degree = np.bincount(np.concatenate([edges.low, edges.high]), minlength=edges.vertices)
    some_degree = degree[degree > 0]
    limit = np.median(some_degree) if kind == "newcomers" else some_degree.max()
    shuffled = rng.permutation(np.flatnonzero((degree > 0) & (degree <= limit)))
    sizes = np.cumsum(degree[shuffled])
    first, last = np.searchsorted(sizes, [wanted, 2 * wanted]) + 1
    for chosen, some in ((come, shuffled[:first]), (go, shuffled[first : max(last, first + 1)])):
        star = np.zeros(edges.vertices, np.bool_)
        star[some] = True
        chosen |= star[edges.low] | star[edges.high]
    return come, go & ~come


def rows_of(graph: Graph, kinds: Sequence[str], shares: Sequence[float], repeats: int) -> Iterator[list[str]]:
    """Measure one graph. Raises WrongAnswer if λ or the order is wrong."""
    edges = simple_edges(graph)
    for kind in kinds:
        for share in shares:
            come, go = batch(edges, kind, share, seed=1)
            before, after = part_of(edges, ~come), part_of(edges, ~go)
            lam = full(before).lam
            order, order_seconds = _ordered(before, lam)
            again = [full(after) for _ in range(repeats)]
            start = time.perf_counter()
            estimate = estimate_work(before, order, go[~come], part_of(edges, come), MOST)
            sample_seconds = time.perf_counter() - start
            times = []
            for _ in range(repeats):
                start = time.perf_counter()
                found = update_order(before, order, go[~come], part_of(edges, come))
                times.append(time.perf_counter() - start)
            if (
                not np.array_equal(found.order.lam, again[0].lam)
                or find_violation(found.edges, found.order) is not None
            ):
                raise WrongAnswer(f"{graph.name}, {kind}, {share}: the update differs from a full computation")
            peel = median(one.peel_seconds for one in again)
            yield [
                graph.name,
                millions(edges.edges),
                millions(again[0].triangles),
                kind,
                f"{100 * share:g}",
                str(int(np.count_nonzero(come) + np.count_nonzero(go))),
                f"{100 * np.count_nonzero(found.changed & (found.origin >= 0)) / after.edges:.3f}",
                f"{100 * found.triangles / max(again[0].triangles, 1):.3g}",
                f"{100 * found.work / max(again[0].triangles, 1):.3g}",
                f"{100 * estimate.work / max(again[0].triangles, 1):.3g}",
                seconds(median(one.count_seconds for one in again)),
                seconds(peel),
                seconds(order_seconds),
                seconds(sample_seconds),
                seconds(median(times)),
                f"{median(times) / peel:.3f}",
            ]


def _ordered(edges: Topology, lam: NDArray[np.int32]) -> tuple[Order, float]:
    start = time.perf_counter()
    order = order_of(edges, lam)
    return order, time.perf_counter() - start


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    parser.add_argument("--graphs", default=GRAPHS, help="names, with commas between")
    parser.add_argument("--kinds", default=",".join(KINDS), help="newcomers, stars, random")
    parser.add_argument("--shares", default="0.00001,0.0001,0.001,0.01", help="shares of the edges that change")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--csv", type=Path, metavar="FILE", help="also write the table to this file")


def report(options: argparse.Namespace) -> list[list[str]]:
    """Measure and print; returns the rows of the table."""
    shares = [float(share) for share in options.shares.split(",")]
    print(f"Updates, {options.threads} threads, median of {options.repeats}:\n")
    with kernel_threads(options.threads):
        warm_updates()
        rows = [
            row
            for name in options.graphs.split(",")
            for row in rows_of(graph(name, options.cache), options.kinds.split(","), shares, options.repeats)
        ]
    print(markdown(HEAD, rows))
    if options.csv is not None:
        write_csv(options.csv, options.threads, rows)
    return rows


def write_csv(file: Path, threads: int, rows: Sequence[Sequence[str]]) -> None:
    """Write the table, with the number of threads in each row."""
    with file.open("w", newline="", encoding="utf-8") as opened:
        writer = csv.writer(opened, lineterminator="\n")
        writer.writerow(["threads", *HEAD])
        writer.writerows([str(threads), *row] for row in rows)
