"""The whole command for a day that differs little from the day before, compared with a run from nothing.

    python -m benchmarks nights --graphs cnr-2000,rmat18 --batches none,stars-0.001,stars-0.01,random-0.01 --repeats 3

The batches are those of `python -m benchmarks update`: a share of all edges, half of which come and half go. *Run* is
`edgemill run` on today's edges. *Update* is `edgemill update` of yesterday's result with the batch, *day* is
`edgemill run --previous` on today's edges; *part* is the time of each over that of the run. Times are those of whole
processes, with the start of Python and the report: CPU seconds of all threads, which other load does not change, and
for `--wall` seconds on the clock; medians of the repeats. *λ of run* is the time of the stages triangulate and bound on
the clock, *λ of day* that of update and bound, *λ part* the latter over the former. *Way* is how λ was found. The λ,
counts and DN-graphs of all three are compared.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from benchmarks.common.graphs import Graph, WrongAnswer, graph
from benchmarks.common.table import markdown, millions, seconds
from benchmarks.updates.update import batch, part_of, simple_edges
from edgemill.kernels.graph import Topology
from edgemill.pipeline.output.manifest import Manifest, read_manifest

GRAPHS = "cnr-2000,rmat18"
BATCHES = "none,stars-0.001,stars-0.01,random-0.01"
HEAD = (
    *("graph", "edges, M", "batch", "changed edges", "λ changed, %", "way", "files kept", "run, s"),
    *("update, s", "part", "day, s", "part of day", "λ of run, s", "λ of day, s", "λ part"),
)
KEYS = ("graph", "batch")
"""Columns that identify a row in the record."""
RECORDED = ("run, s", "update, s", "day, s", "λ of run, s", "λ of day, s")
"""Columns whose figures are recorded."""
FIND_LAMBDA = {"run": ("triangulate", "bound"), "update": ("update", "bound"), "day": ("update", "bound")}
"""Stages that find λ."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    parser.add_argument("--graphs", default=GRAPHS, help="names, with commas between")
    parser.add_argument("--batches", default=BATCHES, help="none, or kind-share, with commas between")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--wall", action="store_true", help="time on the clock instead of CPU seconds")


def command(wall: bool, *arguments: str) -> float:
    """Seconds of a process of edgemill. If it fails, its stderr is printed and CalledProcessError raised."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "edgemill.pipeline", *arguments, "--device", "cpu"],
        env={**os.environ, "PYTHONSAFEPATH": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    elapsed, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.stderr.write(done.stderr)
        done.check_returncode()
    return elapsed if wall else after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def write(path: Path, edges: Topology, rows: NDArray[np.bool_] | None = None) -> str:
    """Write some of the edges; returns the path."""
    own = edges if rows is None else part_of(edges, rows)
    pq.write_table(pa.table({"src": own.low.astype(np.int64), "dst": own.high.astype(np.int64)}), path)
    return str(path)


def rows_of(one: Graph, batches: Sequence[str], repeats: int, wall: bool, scratch: Path) -> Iterator[list[str]]:
    """Measure one graph. Raises WrongAnswer if the results differ."""
    edges = simple_edges(one)
    for name in batches:
        kind, _, share = name.partition("-")
        come = go = np.zeros(edges.edges, np.bool_)
        if kind != "none":
            come, go = batch(edges, kind, float(share), seed=1)
        with tempfile.TemporaryDirectory(dir=scratch) as folder:
            yield [one.name, millions(edges.edges), name, *_measured(Path(folder), edges, come, go, repeats, wall)]


def _measured(
    folder: Path, edges: Topology, come: NDArray[np.bool_], go: NDArray[np.bool_], repeats: int, wall: bool
) -> list[str]:
    before, today = (write(folder / f"{name}.parquet", edges, ~own) for name, own in (("before", come), ("today", go)))
    plus, minus = (write(folder / f"{name}.parquet", edges, own) for name, own in (("plus", come), ("minus", go)))
    base = str(folder / "base")
    command(wall, "run", "--input", before, "--output", base, "--set", "nightly.incremental=auto")
    ways: dict[str, list[str]] = {
        "run": ["run", "--input", today],
        "update": ["update", base, "--insert", plus, "--delete", minus],
        "day": ["run", "--input", today, "--previous", base],
    }
    times: dict[str, list[float]] = {way: [] for way in ways}
    own: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(repeats):
        for way, arguments in ways.items():
            out = str(folder / way)
            times[way].append(command(wall, *arguments, "--output", out, "--overwrite", "--fresh"))
            stages = read_manifest(folder / way).stages
            own[way].append(sum(stage.seconds for stage in stages if stage.stage in FIND_LAMBDA[way]))
    made = {way: read_manifest(folder / way) for way in ways}
    if not _answers(made["run"]) == _answers(made["update"]) == _answers(made["day"]):
        raise WrongAnswer(f"the results differ: {made}")
    run, update, day = (median(times[way]) for way in ways)
    whole, changes = median(own["run"]), median(own["day"])
    went = made["update"].update
    assert went is not None
    changed = "" if went.changed is None else f"{100 * went.changed / edges.edges:.2f}"
    return [
        *(f"{went.inserted + went.deleted:,}", changed, went.way, str(went.files_kept)),
        *(seconds(run), seconds(update), f"{update / run:.2f}", seconds(day), f"{day / run:.2f}"),
        *(seconds(whole), seconds(changes), f"{changes / max(whole, 1e-9):.3f}"),
    ]


def _answers(manifest: Manifest) -> tuple[object, ...]:
    counts = manifest.counts
    return counts.edges, counts.vertices, counts.triangles, manifest.lam, manifest.dense


def report(options: argparse.Namespace) -> list[list[str]]:
    """Measure and print; returns the rows of the table."""
    options.cache.mkdir(parents=True, exist_ok=True)
    batches = options.batches.split(",")
    rows = []
    for name in options.graphs.split(","):
        one = graph(name, options.cache)
        for row in rows_of(one, batches, options.repeats, options.wall, options.cache):
            print(" | ".join(row), flush=True)
            rows.append(row)
    clock = "wall" if options.wall else "CPU"
    print(f"\nNights, {options.threads} cores, {clock} seconds of whole processes, median of {options.repeats}:\n")
    print(markdown(HEAD, rows))
    return rows
