"""What partitions would hold and tell each other, counted without any: replication, lists, exchanges, ids.

    python -m benchmarks simulate_partitions --graphs rmat14,rmat16,rmat18 --partitions 1,4,16,64 --methods range,hash

One process holds the graph once; of each edge it knows its owner and who else would hold it as a ghost, so 256
partitions cost little more than four. Counts are those of a run, exactly (tests/benchmarks compares them with the tasks
of a run): *copies* are (owned + ghosts) / edges, *held* the same without edges that have no triangles, which is what
memory is for, *most* the part of the edges that the largest partition holds so; *lists* are the entries sent in the
stage triangulate, *ids* those of edges told in bounding, by banding; *evaluations* the edges looked at there. *Peeling
in step* tells each ghost once, in so many *rounds*. λ by peeling is that of the catalogue, and λ by banding that by
peeling, edge by edge; WrongAnswer ends the benchmark otherwise. `--csv` and `--json` keep all that was counted, the
latter exchange by exchange. With `--bounding none` bounding is left out.
"""

from __future__ import annotations

import argparse
import csv
import json
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import walks
from benchmarks.graphs import WrongAnswer, graph
from benchmarks.here import placed
from benchmarks.simulated_banding import Exchanges, banding
from benchmarks.table import markdown, millions, seconds
from benchmarks.whole_graph import WholeGraph, whole_graph
from edgemill.pipeline.partitioning import METHODS
from edgemill.tasks import identity, ingest


@dataclass(frozen=True)
class Simulated:
    """What was counted on one graph in one partitioning."""

    graph: str
    method: str
    partitions: int
    rows: int
    vertices: int
    edges: int
    triangles: int
    local: int
    """Edges that have triangles."""
    support_max: int
    lambda_max: int
    lambda_sum: int
    block_ids: int
    """Ids that blocks of a million rows send."""
    block_edges: int
    """Edges that they send."""
    bucket_highs: int
    """Larger ends that buckets ask about, as many buckets as partitions."""
    cut: int
    """Edges with ends in two partitions."""
    crossing: int
    """Triangles that lie in two partitions."""
    ghosts: int
    owned_most: int
    """Edges of the partition that owns most."""
    held_most: int
    """Local edges of the partition that holds most, its ghosts among them."""
    vertex_most: int
    """Local edges that an owner holds for one vertex alone, whatever the partitions."""
    lists: int
    list_entries: int
    list_entries_most: int
    """Of the partition that sends, or gets, most."""
    replies: int
    """Entries that are answered."""
    reply_ghosts: int
    """Ghosts named in answers."""
    levels: int
    rounds: int
    telling_rounds: int
    """Rounds of peeling in step in which ids are told."""
    round_ids_most: int
    """Ids of the round that tells most."""
    steps: int
    """Of banding, like all that follow; 0 if it was left out."""
    exchanges: int
    active: int
    """Tasks, over all exchanges."""
    parts: int
    """Messages, over all exchanges."""
    parts_most: int
    ids: int
    ids_most: int
    evaluations: int
    evaluations_slowest: int
    """Those of the partition with most in each exchange, added up."""
    seconds: float
    """Of this simulation."""
    placing: float = 0.0
    """Of these, seconds that it took to place the vertices, on one thread; 0 where nobody looked."""

    @property
    def replication(self) -> float:
        """Copies of an edge over all partitions."""
        return (self.edges + self.ghosts) / self.edges

    @property
    def held(self) -> float:
        """Copies without those edges that have no triangles."""
        return (self.local + self.ghosts) / self.edges


def simulate(graph: WholeGraph, method: str, partitions: int, band: bool = True) -> tuple[Simulated, Exchanges]:
    """Partition a graph and count; raises WrongAnswer if banding finds another λ than peeling."""
    start = time.perf_counter()
    part = placed(graph, method, partitions)[graph.dense]
    placing = time.perf_counter() - start
    copies, replies, reply_ghosts, crossing = walks.mark_copies(graph.offsets, graph.high, part, partitions)
    lists, sent, received = walks.measure_lists(graph.offsets, graph.high, part, partitions)
    owner = part[graph.low]
    cut = int(np.count_nonzero(owner != part[graph.high]))
    owned = np.bincount(owner, minlength=partitions)
    copies, owner = copies[graph.local], owner[graph.local]
    told = np.bitwise_count(copies).sum(axis=1, dtype=np.int64)
    ghosts = walks.tally_mail(np.arange(len(graph.local), dtype=np.int32), owner, copies, partitions).sum(axis=0)
    held = np.bincount(owner, minlength=partitions) + ghosts
    by_round = np.bincount(graph.peeled.round, weights=told, minlength=graph.peeled.rounds)
    happened, steps = Exchanges(), 0
    if band:
        banded = banding(graph.topology, graph.rows_of, graph.support[graph.local], owner, copies, partitions)
        happened, steps = banded.exchanges, banded.steps
        if not np.array_equal(banded.lam, graph.peeled.lam):
            raise WrongAnswer(f"{graph.name}, {partitions} {method}: banding finds another λ than peeling")
    answers = graph.answers()
    return Simulated(
        graph.name,
        method,
        partitions,
        graph.rows,
        graph.vertices,
        answers.edges,
        answers.triangles,
        len(graph.local),
        int(graph.support.max(initial=0)),
        answers.lambda_max,
        answers.lambda_sum,
        graph.block_ids,
        graph.block_edges,
        _bucket_highs(graph, partitions),
        cut,
        crossing,
        int(told.sum()),
        int(owned.max()),
        int(held.max()),
        graph.vertex_most,
        lists,
        int(sent.sum()),
        int(max(sent.max(), received.max())),
        replies,
        reply_ghosts,
        graph.peeled.levels,
        graph.peeled.rounds,
        int(np.count_nonzero(by_round)),
        int(by_round.max(initial=0)),
        steps,
        len(happened.ids),
        sum(happened.active),
        sum(happened.parts),
        max(happened.parts, default=0),
        sum(happened.ids),
        max(happened.ids, default=0),
        sum(happened.evaluations),
        sum(happened.slowest),
        time.perf_counter() - start,
        placing,
    ), happened


def _bucket_highs(graph: WholeGraph, buckets: int) -> int:
    """Distinct larger ends of the edges of each bucket, added up."""
    edges = graph.edges
    starts = identity.split(graph.ids, ingest.choose_splitters(graph.samples, buckets))
    bucket = np.searchsorted(starts[1:-1], edges.low, side="right")
    keys = bucket * len(edges.highs) + edges.high
    keys.sort()
    return int(np.count_nonzero(np.diff(keys))) + 1 if len(keys) else 0


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    parser.add_argument("--graphs", default="rmat14,rmat16", help="names, with commas between")
    parser.add_argument("--partitions", default="1,4,16,64", help="counts, with commas between")
    parser.add_argument("--methods", default="range,hash", help=f"of {', '.join(METHODS)}, with commas between")
    parser.add_argument("--bounding", choices=("band", "none"), default="band", help="none leaves banding out")
    parser.add_argument("--csv", type=Path, help="file for all counts, a line for each simulation; lines are added")
    parser.add_argument("--json", type=Path, help="file for each exchange of each simulation")


HEAD = (
    "graph",
    "partitions",
    "copies",
    "held",
    "most, %",
    "cut, %",
    "lists/edge",
    "rounds",
    "steps",
    "exchanges",
    "messages",
    "ids/edge",
    "largest, M",
    "evaluations/edge",
    "placing, s",
    "s",
)


def row(found: Simulated) -> list[str]:
    """A line of the table."""
    return [
        found.graph,
        f"{found.partitions} {found.method}",
        f"{found.replication:.2f}",
        f"{found.held:.2f}",
        f"{100 * found.held_most / found.edges:.1f}",
        f"{100 * found.cut / found.edges:.1f}",
        f"{found.list_entries / found.edges:.2f}",
        str(found.rounds),
        str(found.steps),
        str(found.exchanges),
        str(found.parts),
        f"{found.ids / found.edges:.2f}",
        millions(found.ids_most),
        f"{found.evaluations / found.edges:.2f}",
        seconds(found.placing),
        seconds(found.seconds),
    ]


def write_csv(path: Path, found: Iterable[Simulated]) -> None:
    """Add to a file of all counts; a line that it has of the same partitioning is replaced."""
    lines = {
        (one.graph, one.method, one.partitions): one for one in [*(read_csv(path) if path.exists() else []), *found]
    }
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [column.name for column in fields(Simulated)], lineterminator="\n")
        writer.writeheader()
        for one in lines.values():
            writer.writerow(asdict(one) | {name: f"{getattr(one, name):.2f}" for name in ("placing", "seconds")})


def read_csv(path: Path) -> list[Simulated]:
    """What `write_csv` wrote."""
    kinds: dict[str, Callable[[str], Any]] = {"graph": str, "method": str, "placing": float, "seconds": float}
    with path.open(newline="") as file:
        lines = [{name: kinds.get(name, int)(value) for name, value in line.items()} for line in csv.DictReader(file)]
    return [Simulated(**line) for line in lines]


def report(options: argparse.Namespace) -> None:
    """Simulate and print, a line at a time."""
    methods, counts = options.methods.split(","), [int(count) for count in options.partitions.split(",")]
    if unknown := set(methods) - METHODS.keys():
        raise SystemExit(f"no method {', '.join(sorted(unknown))}: there are {', '.join(METHODS)}")
    found: list[Simulated] = []
    exchanges = []
    for name in options.graphs.split(","):
        whole = whole_graph(graph(name, options.cache))
        for partitions in counts:
            for method in methods if partitions > 1 else methods[:1]:
                one, happened = simulate(whole, method, partitions, options.bounding == "band")
                found.append(one)
                exchanges.append({"graph": name, "method": method, "partitions": partitions} | asdict(happened))
                print(f"{one.graph}, {partitions} {method}: {one.seconds:.1f} s", flush=True)
                if options.csv:
                    write_csv(options.csv, [one])
        del whole
    if options.json:
        options.json.write_text(json.dumps(exchanges))
    print()
    print(markdown(HEAD, map(row, found)))
