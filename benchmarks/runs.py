"""The whole command, Parquet to Parquet, compared with the time of the kernels on the same graph.

    python -m benchmarks runs --graphs rmat14,rmat16,rmat18,rmat20 --layouts 1 --repeats 3
    python -m benchmarks runs --graphs rmat18,cnr-2000 --layouts 1,4,band

Each repeat is one pass of the kernels here (graph in memory, one partition) and one `edgemill run` process for each
layout, in turn, on the same cores, so that other load slows both. The time of a run is that of its process, including
the start of Python; the stages are those of its manifest, and *rest* is the time outside of them. Compiled kernels are
cached, and the input is in the page cache. Times are medians of the repeats. λ of the runs is checked against that of
the kernels, and that against the catalogue.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks import kernels
from benchmarks.common.command import CommandRun, Layout, run_command
from benchmarks.common.graphs import Graph, WrongAnswer, graph
from benchmarks.common.table import markdown, millions, seconds, span
from edgemill.kernels.runtime.warm import warm
from edgemill.tasks.generate import generate

STAGES = ("compile", "read", "number", "partition", "triangulate", "bound", "extract", "publish")


@dataclass(frozen=True)
class RunTimes:
    """The repeats on one graph in one layout."""

    graph: str
    layout: Layout
    runs: Sequence[CommandRun]
    samples: Sequence[kernels.Sample]
    """The passes of the kernels between the runs."""

    @property
    def seconds(self) -> float:
        """Median time of the whole runs."""
        return median(run.seconds for run in self.runs)

    @property
    def kernel_seconds(self) -> float:
        """Median time of the kernels."""
        return median(sample.seconds for sample in self.samples)

    @property
    def ratio(self) -> float:
        """Time of the whole run over that of the kernels."""
        return self.seconds / self.kernel_seconds

    def stage_seconds(self, stage: str) -> float:
        """Median of one stage, 0 if no run had it."""
        return median(run.stages.get(stage, 0.0) for run in self.runs)


def measure(graph: Graph, layouts: Sequence[Layout], threads: int, repeats: int, scratch: Path) -> list[RunTimes]:
    """Time whole runs and kernels in turn, after a small run in each layout that is not counted.

    Raises WrongAnswer if λ differs from that of the kernels or of the catalogue.
    """
    warm("peel", 1)
    owned = kernels.owned_edges(graph.path)
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        generate("chain", Path(folder) / "small", files=1, seed=1, triangles=1000)
        for layout in layouts:
            run_command(Path(folder) / "small", layout, scratch)  # fills the cache of compiled kernels
    samples: list[kernels.Sample] = []
    runs: dict[Layout, list[CommandRun]] = {layout: [] for layout in layouts}
    for _ in range(repeats):
        samples.append(kernels.sample(owned, threads))
        graph.check(samples[-1].answers)
        for layout in layouts:
            runs[layout].append(run_command(graph.path, layout, scratch))
            if runs[layout][-1].answers != samples[-1].answers:
                raise WrongAnswer(f"{graph.name}, {layout}: {runs[layout][-1].answers}, kernels {samples[-1].answers}")
    return [RunTimes(graph.name, layout, runs[layout], samples) for layout in layouts]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    parser.add_argument("--graphs", default=kernels.GRAPHS, help="names, with commas between")
    parser.add_argument("--layouts", default="1", help="such as 1,4,band: numbers of shards, and methods (1)")
    parser.add_argument("--repeats", type=int, default=3)


HEAD = ("graph", "partitions", "edges, M", "kernels, s", "run, s", "from-to, s", "ratio", *STAGES, "rest", "exchanges")
KEYS = ("graph", "partitions")
"""Columns that identify a row in the record."""
RECORDED = ("kernels, s", "run, s")
"""Columns whose figures are recorded."""


def row(times: RunTimes) -> list[str]:
    """A line of the table."""
    last = times.runs[-1]
    return [
        times.graph,
        str(times.layout),
        millions(last.answers.edges),
        seconds(times.kernel_seconds),
        seconds(times.seconds),
        span([run.seconds for run in times.runs]),
        f"{times.ratio:.2f}",
        *(seconds(times.stage_seconds(stage)) for stage in STAGES),
        seconds(median(run.rest_seconds for run in times.runs)),
        str(last.exchanges),
    ]


def report(options: argparse.Namespace) -> list[list[str]]:
    """Measure and print; returns the rows of the table."""
    graphs = [graph(name, options.cache) for name in options.graphs.split(",")]
    layouts = [Layout.parse(text) for text in options.layouts.split(",")]
    options.cache.mkdir(parents=True, exist_ok=True)
    rows = [
        row(times) for one in graphs for times in measure(one, layouts, options.threads, options.repeats, options.cache)
    ]
    print(f"Whole runs, {options.threads} cores, median of {options.repeats}; stages in seconds:\n")
    print(markdown(HEAD, rows))
    return rows
