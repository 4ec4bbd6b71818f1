"""The command with nothing compiled: what the very first run on a machine costs.

    python -m benchmarks first_run --graph rmat14 --layouts 1,4-range --repeats 3

Each repeat gives `edgemill run` an empty cache folder (EDGEMILL_CACHE_DIR) and runs it twice: the *first* time it
compiles, the *next* time it finds the code there. *Compile* is the stage of that name in the manifest. Medians of the
repeats.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.command import CommandRun, Layout, run_command
from benchmarks.graphs import Graph, graph
from benchmarks.table import markdown, seconds, span


@dataclass(frozen=True)
class FirstRuns:
    """Pairs of runs, each pair with a cache folder of its own."""

    graph: str
    layout: Layout
    first: Sequence[CommandRun]
    then: Sequence[CommandRun]


def measure(graph: Graph, layout: Layout, repeats: int, scratch: Path) -> FirstRuns:
    """Time first runs and those after them; raises WrongAnswer if λ is not the catalogue's."""
    first, then = [], []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory(dir=scratch) as empty:
            # An empty NUMBA_CACHE_DIR is none, where the user's own would win over our folder.
            environment = {"EDGEMILL_CACHE_DIR": empty, "NUMBA_CACHE_DIR": ""}
            first.append(run_command(graph.path, layout, scratch, environment))
            then.append(run_command(graph.path, layout, scratch, environment))
        graph.check(first[-1].answers)
        graph.check(then[-1].answers)
    return FirstRuns(graph.name, layout, first, then)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    parser.add_argument("--graph", default="rmat14")
    parser.add_argument("--layouts", default="1,4-range", help="partitions and partitioner (1,4-range)")
    parser.add_argument("--repeats", type=int, default=3)


HEAD = ("graph", "partitions", "first run, s", "from-to, s", "compile, s", "next run, s", "compile then, s")


def row(runs: FirstRuns) -> list[str]:
    """A line of the table."""
    return [
        runs.graph,
        str(runs.layout),
        seconds(median(run.seconds for run in runs.first)),
        span([run.seconds for run in runs.first]),
        seconds(median(run.stages.get("compile", 0.0) for run in runs.first)),
        seconds(median(run.seconds for run in runs.then)),
        seconds(median(run.stages.get("compile", 0.0) for run in runs.then)),
    ]


def report(options: argparse.Namespace) -> None:
    """Measure and print."""
    one = graph(options.graph, options.cache)
    options.cache.mkdir(parents=True, exist_ok=True)
    layouts = [Layout.parse(text) for text in options.layouts.split(",")]
    rows = [row(measure(one, layout, options.repeats, options.cache)) for layout in layouts]
    print(f"First runs, {options.threads} cores, median of {options.repeats}:\n")
    print(markdown(HEAD, rows))
