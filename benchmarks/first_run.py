"""The command without compiled kernels: the time of the first run on a machine.

    python -m benchmarks first_run --graph rmat14 --layouts 1,4-range --repeats 3

Each repeat runs `edgemill run` twice with an initially empty cache folder (EDGEMILL_CACHE_DIR): the *first* run
compiles the kernels, the *next* one loads them. *Compile* is the stage of that name in the manifest. Times are medians
of the repeats.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.common.command import CommandRun, Layout, run_command
from benchmarks.common.graphs import Graph, graph
from benchmarks.common.table import markdown, seconds, span


@dataclass(frozen=True)
class FirstRuns:
    """Pairs of runs; each pair has its own cache folder."""

    graph: str
    layout: Layout
    first: Sequence[CommandRun]
    then: Sequence[CommandRun]


def measure(graph: Graph, layout: Layout, repeats: int, scratch: Path) -> FirstRuns:
    """Time pairs of runs. Raises WrongAnswer if λ differs from the catalogue."""
    first, then = [], []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory(dir=scratch) as empty:
            # A NUMBA_CACHE_DIR of the user would take precedence; an empty one has no effect.
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
KEYS = ("graph", "partitions")
"""Columns that identify a row in the record."""
RECORDED = ("first run, s", "compile, s", "next run, s")
"""Columns whose figures are recorded."""


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


def report(options: argparse.Namespace) -> list[list[str]]:
    """Measure and print; returns the rows of the table."""
    one = graph(options.graph, options.cache)
    options.cache.mkdir(parents=True, exist_ok=True)
    layouts = [Layout.parse(text) for text in options.layouts.split(",")]
    rows = [row(measure(one, layout, options.repeats, options.cache)) for layout in layouts]
    print(f"First runs, {options.threads} cores, median of {options.repeats}:\n")
    print(markdown(HEAD, rows))
    return rows
