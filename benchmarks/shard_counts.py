"""Counts of peeling in shards, kept as lines of a CSV for docs/scaling.md.

    python -m benchmarks shard_counts --csv docs/scaling/shards.csv --graphs rmat14,rmat16 --shards 4,16,32,64,256

Peels as the benchmark `shards` does, which compares every λ with that of one partition, and counts in which shards the
ends of an edge have rows. `--peel no` leaves the peeling in shards out, and its columns empty.
"""

from __future__ import annotations

import argparse
import csv
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np

from benchmarks import shards as peeling
from benchmarks.graphs import Graph, graph
from benchmarks.kernels import owned_edges
from benchmarks.row_counts import count_rows
from benchmarks.table import markdown
from edgemill.kernels.cpu.shards import Cut
from edgemill.kernels.threads import kernel_threads
from edgemill.tasks.bound.peel import peel
from edgemill.tasks.subgraph import build_subgraph
from edgemill.tasks.triangulate import count_triangles


@dataclass(frozen=True)
class ShardCounts:
    """One graph in one number of shards. What was not counted is 0."""

    graph: str
    shards: int
    vertices: int
    corners: int
    """Vertices in triangles."""
    all_edges: int
    edges: int
    """Edges with triangles; shards store no others."""
    triangles: int
    support_max: int
    lambda_max: int
    stored: float
    """Entries of the largest shard over all entries."""
    rows: int
    """Pairs of a vertex and a shard that stores a neighbour of it."""
    both: int
    """Pairs of an edge and a shard in which both ends have a row."""
    late: int
    """Those in which both rows have an edge of the same λ or more: rows that are left when the edge is removed."""
    entries_uneven: float = 0
    """Entries read by the busiest shard over the mean."""
    triangles_uneven: float = 0
    exchanges: int = 0
    rounds: int = 0
    levels: int = 0
    alarms: float = 0
    """For each edge, as are reports and grants."""
    reports: float = 0
    grants: float = 0


def counts_of(one: Graph, shards: list[int], threads: int, in_shards: bool) -> list[ShardCounts]:
    """The lines of one graph. Raises WrongAnswer where shards find another λ."""
    owned = owned_edges(one.path)
    with kernel_threads(threads):
        subgraph = build_subgraph(owned, count_triangles(owned, {}), 1, {})
        lam, topology = peel(subgraph).low, subgraph.topology
        low, high = topology.low, topology.high
        corners = np.unique(np.concatenate([low, high])).size
        support = subgraph.support
        found = []
        for count in shards:
            cut = Cut(topology.vertices, count)
            ends = np.concatenate([low, high]).astype(np.uint32)
            stored = np.bincount(cut.classes(ends), minlength=count)
            line = ShardCounts(
                one.name,
                count,
                topology.vertices,
                corners,
                len(owned),
                topology.edges,
                int(support.sum(dtype=np.int64)) // 3,
                int(support.max(initial=0)),
                int(lam.max(initial=0)),
                round(float(stored.max() / stored.sum()), 5),
                *count_rows(low, high, lam, topology.vertices, count),
            )
            if in_shards:
                texts = peeling.row(one.name, subgraph, lam, 0, count, near=4)
                line = with_peeling(line, dict(zip(peeling.HEAD, texts, strict=True)))
            found.append(line)
    return found


def with_peeling(line: ShardCounts, texts: dict[str, str]) -> ShardCounts:
    """A line with what the benchmark `shards` says: title of a column → text."""
    return ShardCounts(
        **asdict(line)
        | {
            "entries_uneven": float(texts["entries read"]),
            "triangles_uneven": float(texts["triangles"]),
            **{name: int(texts[name]) for name in ("exchanges", "rounds", "levels")},
            "alarms": float(texts["alarms an edge"]),
            **{name: float(texts[name]) for name in ("reports", "grants")},
        }
    )


def read_csv(path: Path) -> list[ShardCounts]:
    """The lines of a file; none where there is no file."""
    kinds = {"str": str, "int": int, "float": float}
    types = {field.name: kinds[str(field.type)] for field in fields(ShardCounts)}
    if not path.exists():
        return []
    with path.open(newline="") as file:
        lines = list(csv.DictReader(file))
    return [ShardCounts(**{name: types[name](text or 0) for name, text in line.items()}) for line in lines]


def write_csv(path: Path, found: list[ShardCounts]) -> None:
    """Replace the lines of the same graphs and shards, and keep all others."""
    lines = {(one.graph, one.shards): one for one in [*read_csv(path), *found]}
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(ShardCounts)], lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: value or "" for name, value in asdict(lines[key]).items()} for key in sorted(lines))


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    parser.add_argument("--graphs", default="rmat14,rmat16", help="names, with commas between")
    parser.add_argument("--shards", default="4,16,32,64,256", help="numbers of shards, with commas between")
    parser.add_argument("--peel", choices=("yes", "no"), default="yes", help="peel in shards, too (yes)")
    parser.add_argument("--csv", type=Path, help="file whose lines are added or replaced")


def report(options: argparse.Namespace) -> None:
    """Count and print."""
    shards = [int(count) for count in options.shards.split(",")]
    for name in options.graphs.split(","):
        found = counts_of(graph(name, options.cache), shards, options.threads, options.peel == "yes")
        if options.csv:
            write_csv(options.csv, found)
        rows = [list(map(str, asdict(one).values())) for one in found]
        print(markdown([field.name for field in fields(ShardCounts)], rows), flush=True)
