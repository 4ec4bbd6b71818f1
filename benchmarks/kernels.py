"""The kernels alone: support and λ of a graph in memory, one partition.

    python -m benchmarks kernels --graphs rmat14,rmat16,rmat18,rmat20 --threads 2 --repeats 3

The edges are read, cleaned and oriented before the time is taken, by the steps of a run (`owned_edges`), and the
kernels are compiled. *Support* is the stage triangulate: counting triangles and building the subgraph. *λ* is its
peeling. Times are medians of the repeats; rates are per second of both together. The peak is the resident set of the
process while the kernels run, including Python, Numba and the oriented edges (`in memory`). λ is checked against the
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

from benchmarks.common import machine
from benchmarks.common.graphs import Answers, Graph, graph
from benchmarks.common.table import markdown, mebibytes, millions, seconds, span
from edgemill.kernels.runtime.threads import kernel_threads
from edgemill.kernels.runtime.warm import warm
from edgemill.pipeline.events import Events
from edgemill.pipeline.stages.ingesting import number, read
from edgemill.pipeline.stages.partitioning import partition
from edgemill.pipeline.stages.task_engine import SequentialEngine
from edgemill.tasks.bound.peel import peel, peel_intervals
from edgemill.tasks.device import MemorySpace
from edgemill.tasks.graph import build_subgraph, count_triangles
from edgemill.tasks.ingest import OwnedEdges
from edgemill.tasks.inputs.open_source import open_source
from edgemill.tasks.inputs.sources import plan_blocks

GRAPHS = "rmat14,rmat16,rmat18,rmat20,uk-2007-05_100000,cnr-2000,ego-Twitter_combined"


@dataclass(frozen=True)
class Sample:
    """One pass of the kernels."""

    support_seconds: float
    lambda_seconds: float
    answers: Answers

    @property
    def seconds(self) -> float:
        """Support and λ together."""
        return self.support_seconds + self.lambda_seconds


@dataclass(frozen=True)
class KernelTimes:
    """The passes over one graph."""

    graph: str
    samples: Sequence[Sample]
    graph_bytes: int
    """Size of the oriented edges, which are in memory before."""
    peak_bytes: int
    """Peak memory of the process during the passes."""

    @property
    def answers(self) -> Answers:
        """The answers, which are the same in all passes."""
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
    """The oriented edges of one partition from Parquet, by the stages of a run with one bucket."""
    source, engine, events, space = open_source(str(path)), SequentialEngine(), Events(), MemorySpace.HOST
    blocks, _ = read(engine, events, source, plan_blocks(source, 2_000_000), "drop", space)
    buckets = number(engine, events, source, blocks, 1, space)
    owned, _ = partition(engine, events, buckets, space)
    assert isinstance(owned, OwnedEdges)
    return owned


def sample(owned: OwnedEdges, threads: int) -> Sample:
    """One pass over the oriented edges of a graph."""
    gc.collect()
    with kernel_threads(threads):
        start = time.perf_counter()
        subgraph = build_subgraph(owned, count_triangles(owned))
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
    """Time the kernels on a graph. Raises WrongAnswer if λ differs from the catalogue."""
    warm("peel", 1)
    owned = owned_edges(graph.path)
    gc.collect()
    machine.forget_peak()
    samples = [sample(owned, threads) for _ in range(repeats)]
    for one in samples:
        graph.check(one.answers)
    in_memory = sum(array.nbytes for array in vars(owned).values())
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
KEYS = ("graph",)
"""Columns that identify a row in the record."""
RECORDED = ("support, s", "λ, s", "both, s", "peak, MiB")
"""Columns whose figures are recorded."""


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


def report(options: argparse.Namespace) -> list[list[str]]:
    """Measure and print; returns the rows of the table."""
    graphs = [graph(name, options.cache) for name in options.graphs.split(",")]
    print(f"Kernels, {options.threads} threads, median of {options.repeats}:\n")
    rows = [row(measure(one, options.threads, options.repeats)) for one in graphs]
    print(markdown(HEAD, rows))
    return rows
