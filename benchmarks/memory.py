"""Memory that `edgemill plan` projects, compared with the memory that a run takes.

    python -m benchmarks memory --graphs rmat16,rmat17,rmat18 --layouts 1,4,band --workers 0,1,2

A layout `4` is four shards in as many groups as there are workers. A new process for each line starts its workers (0:
one worker in the process itself, with the scheduler), makes the plan and mines. *Taken* is the largest peak resident
set of a worker; *projected* is what the plan says of a worker that spills nothing. On the CPU.
"""

from __future__ import annotations

import argparse
import os
import pickle
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import ROOT
from benchmarks.common import machine
from benchmarks.common.command import Layout
from benchmarks.common.graphs import Answers, Graph, graph
from benchmarks.common.table import markdown, mebibytes, millions, seconds
from edgemill.pipeline import mine
from edgemill.pipeline.cluster.connecting.start import connect
from edgemill.pipeline.cluster.engine import Engine
from edgemill.pipeline.inputs.input_object import open_input
from edgemill.pipeline.plan.choice import plan_run
from edgemill.pipeline.settings.models import ClusterSettings
from edgemill.pipeline.settings.sources import make_settings


@dataclass(frozen=True)
class Memory:
    """One run."""

    graph: str
    rows: int
    layout: Layout
    workers: int
    projected_bytes: int
    taken_bytes: int
    edges_off: float
    """Relative error of the number of edges in the plan; positive if the plan has more."""
    output_off: float
    """Relative error of the size of the result in the plan."""
    seconds: float

    @property
    def off(self) -> float:
        """Relative error of the projected memory; -0.2 is a fifth too little."""
        return self.projected_bytes / self.taken_bytes - 1


def measure(graph: Graph, layout: Layout, workers: int, threads: int, scratch: Path) -> Memory:
    """Plan and mine. Call it in a new process, by `measure_apart`."""
    how: dict[str, Any] = {"device": "cpu", **layout.settings}
    cluster = ClusterSettings(device="cpu", workers=workers or None, threads_per_worker=threads)
    with tempfile.TemporaryDirectory(dir=scratch) as name, connect(cluster) as client:
        settings = make_settings(str(graph.path), f"{name}/out", **how)
        plan = plan_run(settings, open_input(settings), Engine.connect(client, "plan").capacity)
        manifest = mine(graph.path, f"{name}/out", client=client, **how).manifest
        taken = max(client.run(machine.peak_bytes).values())
    counts = manifest.counts
    graph.check(Answers(counts.vertices, counts.edges, counts.triangles or 0, manifest.lam.max, manifest.lam.sum))
    return Memory(
        graph.name,
        counts.rows,
        layout,
        workers,
        plan.unspilled_bytes,
        taken,
        plan.edges / counts.edges - 1,
        plan.graph.output_bytes / sum(file.bytes for file in manifest.outputs) - 1,
        manifest.seconds,
    )


def measure_apart(graph: Graph, layout: Layout, workers: int, threads: int, scratch: Path) -> Memory:
    """`measure` in a process of its own; raises CalledProcessError if it fails."""
    call = f"import sys; sys.path.append({str(ROOT)!r}); from benchmarks.memory import _serve; _serve()"
    done = subprocess.run(
        [sys.executable, "-c", call],
        env={**os.environ, "PYTHONSAFEPATH": "1"},
        input=pickle.dumps((graph, layout, workers, threads, scratch)),
        stdout=subprocess.PIPE,
        check=True,
    )
    found: Memory = pickle.loads(done.stdout)
    return found


def _serve() -> None:
    """Run `measure` in the process that `measure_apart` starts."""
    sys.stdout.buffer.write(pickle.dumps(measure(*pickle.load(sys.stdin.buffer))))


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    parser.add_argument("--graphs", default="rmat16,rmat17,rmat18", help="names, with commas between")
    parser.add_argument("--layouts", default="1,4,band", help="numbers of shards and methods, with commas between")
    parser.add_argument("--workers", default="0,1,2", help="numbers of worker processes, with commas between")


HEAD = (
    "graph",
    "rows, M",
    "layout",
    "workers",
    "edges off, %",
    "output off, %",
    "projected, MiB",
    "taken, MiB",
    "off, %",
    "run, s",
)
KEYS = ("graph", "layout", "workers")
"""Columns that identify a row in the record."""
RECORDED = ("projected, MiB", "taken, MiB")
"""Columns whose figures are recorded."""


def row(memory: Memory) -> list[str]:
    """A line of the table."""
    return [
        memory.graph,
        millions(memory.rows),
        str(memory.layout),
        str(memory.workers),
        f"{100 * memory.edges_off:+.0f}",
        f"{100 * memory.output_off:+.0f}",
        mebibytes(memory.projected_bytes),
        mebibytes(memory.taken_bytes),
        f"{100 * memory.off:+.0f}",
        seconds(memory.seconds),
    ]


def report(options: argparse.Namespace) -> list[list[str]]:
    """Measure and print; the workers share the threads. Returns the rows of the table."""
    options.cache.mkdir(parents=True, exist_ok=True)
    rows = [
        row(measure_apart(one, layout, workers, max(1, options.threads // max(1, workers)), options.cache))
        for one in (graph(name, options.cache) for name in options.graphs.split(","))
        for layout in map(Layout.parse, options.layouts.split(","))
        for workers in map(int, options.workers.split(","))
        if workers <= layout.shards
    ]
    print(markdown(HEAD, rows))
    return rows
