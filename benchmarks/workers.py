"""The whole command with more and more worker processes on the same cores: what sharing out a graph costs.

    python -m benchmarks workers --threads 16 --graphs rmat20,rmat22 --shapes 1x16,4x4,16x1 --repeats 3

A shape is worker processes times threads of each. 1x16 is one worker inside the command's process, and peels one
partition; the others peel groups of shards. Runs of all shapes take turns; compiled kernels are cached and the input is
in the page cache. Medians. *bound* is the λ stage; the ratios are to the first shape. λ is checked against the first
shape's, and against the catalogue's.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.command import CommandRun, run_with
from benchmarks.graphs import Graph, WrongAnswer, graph
from benchmarks.table import markdown, millions, seconds, span


@dataclass(frozen=True)
class Shape:
    """Worker processes, and threads of each."""

    workers: int
    threads: int

    @classmethod
    def parse(cls, text: str) -> Shape:
        """From `4x4`; ValueError for anything else."""
        workers, _, threads = text.partition("x")
        return cls(int(workers), int(threads))

    def __str__(self) -> str:
        return f"{self.workers} x {self.threads}"

    def arguments(self, carrier: str) -> list[str]:
        """Flags of the command."""
        own = ["--device", "cpu", "--set", f"cluster.threads_per_worker={self.threads}"]
        if self.workers == 1:
            return own
        return [*own, "--workers", str(self.workers), "--set", f"bounding.carrier={carrier}"]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    parser.add_argument("--graphs", default="rmat18", help="names, with commas between (rmat18)")
    parser.add_argument("--shapes", default="1x2,2x1", help="workers x threads, with commas between (1x2,2x1)")
    parser.add_argument("--carrier", default="auto", help="bounding.carrier (auto)")
    parser.add_argument("--repeats", type=int, default=3)


HEAD = (
    *("graph", "edges, M", "workers", "carrier", "triangulate, s", "bound, s", "from-to, s", "ratio"),
    *("run, s", "ratio of runs", "exchanges", "MB sent", "busiest / mean"),
)


def measure(one: Graph, shapes: Sequence[Shape], carrier: str, repeats: int, scratch: Path) -> list[list[str]]:
    """Lines of the table for one graph."""
    runs: dict[Shape, list[CommandRun]] = {shape: [] for shape in shapes}
    small = graph("rmat12", scratch)
    for shape in shapes:  # puts its kernels in the cache
        run_with(small.path, [*shape.arguments(carrier), "--partitions", str(shape.workers)], scratch)
    for _ in range(repeats):
        for shape in shapes:
            runs[shape].append(run_with(one.path, shape.arguments(carrier), scratch))
            if runs[shape][-1].answers != runs[shapes[0]][0].answers:
                raise WrongAnswer(f"{one.name}, {shape}: {runs[shape][-1].answers}")
    one.check(runs[shapes[0]][0].answers)
    first = runs[shapes[0]]
    return [_line(one, shape, runs[shape], first) for shape in shapes]


def _bound(runs: Sequence[CommandRun]) -> float:
    return median(run.stages["bound"] for run in runs)


def _line(one: Graph, shape: Shape, runs: Sequence[CommandRun], first: Sequence[CommandRun]) -> list[str]:
    shards = runs[-1].shards
    times = [run.stages["bound"] for run in runs]
    whole, whole_first = (median(run.seconds for run in own) for own in (runs, first))
    return [
        one.name,
        millions(runs[0].answers.edges),
        str(shape),
        shards.carrier if shards else "",
        seconds(median(run.stages["triangulate"] for run in runs)),
        seconds(_bound(runs)),
        span(times),
        f"{_bound(runs) / _bound(first):.2f}",
        seconds(whole),
        f"{whole / whole_first:.2f}",
        f"{shards.exchanges:,}" if shards else "",
        f"{shards.bytes / 1e6:.0f}" if shards else "",
        f"{shards.busiest:.2f}" if shards else "",
    ]


def report(options: argparse.Namespace) -> None:
    """Measure and print."""
    shapes = [Shape.parse(text) for text in options.shapes.split(",")]
    options.cache.mkdir(parents=True, exist_ok=True)
    rows = []
    for name in options.graphs.split(","):
        rows += measure(graph(name, options.cache), shapes, options.carrier, options.repeats, options.cache)
    print(f"Whole runs, {options.threads} cores, medians of {options.repeats}:\n")
    print(markdown(HEAD, rows))
