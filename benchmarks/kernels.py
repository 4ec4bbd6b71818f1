"""The kernels alone: support and λ of a graph in memory, one partition.

    python -m benchmarks kernels --graphs rmat14,rmat16,rmat18,rmat20 --threads 2 --repeats 3

The edges are read, cleaned and oriented outside the clock, as a run does it (`owned_edges`), and the kernels are
compiled. *Support* is then all of the stage triangulate: triangles counted, and the subgraph built. *λ* is its
peeling. Medians of the repeats; a rate is per second of both together. The peak is that of the
process within the kernels, with Python, Numba and the oriented edges (`in memory`) included. λ is checked against the
catalogue.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks import machine
from benchmarks.graphs import Answers, Graph, graph
from benchmarks.table import markdown, mebibytes, millions, seconds, span
from edgemill.kernels.device import to_host
from edgemill.kernels.threads import kernel_threads
from edgemill.kernels.warm import warm
from edgemill.tasks import ingest
from edgemill.tasks.bound.peel import peel, peel_intervals
from edgemill.tasks.ingest import OwnedEdges
from edgemill.tasks.messages import collect
from edgemill.tasks.partition import RangePartitioner
from edgemill.tasks.sources import open_source, plan_blocks
from edgemill.tasks.subgraph import build_subgraph
from edgemill.tasks.triangulate import count_triangles

GRAPHS = "rmat14,rmat16,rmat18,rmat20,uk-2007-05_100000,cnr-2000,ego-Twitter_combined"


@dataclass(frozen=True)
class Sample:
    """One pass of the kernels."""

    support_seconds: float
    lambda_seconds: float
    answers: Answers

    @property
    def seconds(self) -> float:
        """Both together."""
        return self.support_seconds + self.lambda_seconds


@dataclass(frozen=True)
class KernelTimes:
    """The passes over one graph."""

    graph: str
    samples: Sequence[Sample]
    graph_bytes: int
    """Arrays of the oriented edges, which were there before."""
    peak_bytes: int
    """Most memory of the process in the passes."""

    @property
    def answers(self) -> Answers:
        """The same in all passes."""
        return self.samples[0].answers

    @property
    def support_seconds(self) -> float:
        """Median."""
        return median(sample.support_seconds for sample in self.samples)

    @property
    def lambda_seconds(self) -> float:
        """Median."""
        return median(sample.lambda_seconds for sample in self.samples)

    @property
    def seconds(self) -> float:
        """Median of both together."""
        return median(sample.seconds for sample in self.samples)


def owned_edges(path: Path) -> OwnedEdges:
    """The oriented edges of one partition from Parquet, by the steps of a run with one bucket."""
    source = open_source(str(path))
    blocks = [ingest.read_block(source, block) for block in plan_blocks(source, 2_000_000)]
    every = ingest.sample_interval(source.rows, 1)
    splitters = ingest.choose_splitters([ingest.sample_ids(block, every) for block in blocks], 1)
    ids = ingest.number_ids(
        0, source.kind, to_host, collect(0, [ingest.send_ids(block, splitters) for block in blocks])
    )
    starts = ingest.bucket_starts([len(ids)])
    numbers = [ingest.answer_numbers(ids, starts)]
    pairs = [
        ingest.send_pairs(ingest.without_ids(block), starts, collect(i, numbers)) for i, block in enumerate(blocks)
    ]
    edges = ingest.merge_pairs(0, starts, to_host, collect(0, pairs))
    degrees = ingest.collect_degrees(edges, collect(0, [ingest.send_degrees(edges)]))
    first = ingest.order_starts([ingest.degree_histogram(degrees)])[0]
    ranks = ingest.rank_vertices(degrees, first, len(ids))
    oriented = ingest.orient(edges, ranks, collect(0, [ingest.answer_ranks(degrees, ranks)]))
    return ingest.collect_owned(0, to_host, collect(0, [ingest.send_owned(edges, oriented, RangePartitioner())]))


def sample(owned: OwnedEdges, threads: int) -> Sample:
    """One pass over the oriented edges of a graph."""
    gc.collect()
    with kernel_threads(threads):
        start = time.perf_counter()
        subgraph = build_subgraph(owned, count_triangles(owned, {}), 1, {})
        middle = time.perf_counter()
        found = peel_intervals(subgraph, peel(subgraph)).low
        end = time.perf_counter()
    answers = Answers(
        vertices=len(owned.rank),
        edges=len(owned),
        triangles=int(subgraph.support.sum(dtype="int64")) // 3,
        lambda_max=int(found.max(initial=0)),
        lambda_sum=int(found.sum(dtype="int64")),
    )
    return Sample(middle - start, end - middle, answers)


def measure(graph: Graph, threads: int, repeats: int) -> KernelTimes:
    """Time the kernels on a graph; raises WrongAnswer if λ is not as the catalogue has it."""
    warm("peel", 1)
    owned = owned_edges(graph.path)
    gc.collect()
    machine.forget_peak()
    samples = [sample(owned, threads) for _ in range(repeats)]
    for one in samples:
        graph.check(one.answers)
    in_memory = sum(array.nbytes for array in vars(owned).values() if not isinstance(array, int))
    return KernelTimes(graph.name, samples, in_memory, machine.peak_bytes())


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    parser.add_argument("--graphs", default=GRAPHS, help="names, with commas between")
    parser.add_argument("--repeats", type=int, default=3)


HEAD = (
    "graph",
    "edges, M",
    "triangles, M",
    "λ max",
    "support, s",
    "λ, s",
    "both, s",
    "from-to, s",
    "edges, M/s",
    "triangles, M/s",
    "in memory, MiB",
    "peak, MiB",
)


def row(times: KernelTimes) -> list[str]:
    """A line of the table."""
    answers = times.answers
    return [
        times.graph,
        millions(answers.edges),
        millions(answers.triangles),
        str(answers.lambda_max),
        seconds(times.support_seconds),
        seconds(times.lambda_seconds),
        seconds(times.seconds),
        span([one.seconds for one in times.samples]),
        millions(answers.edges / times.seconds),
        millions(answers.triangles / times.seconds),
        mebibytes(times.graph_bytes),
        mebibytes(times.peak_bytes),
    ]


def report(options: argparse.Namespace) -> None:
    """Measure and print."""
    graphs = [graph(name, options.cache) for name in options.graphs.split(",")]
    print(f"Kernels, {options.threads} threads, median of {options.repeats}:\n")
    print(markdown(HEAD, [row(measure(one, options.threads, options.repeats)) for one in graphs]))
