"""Memory of the client as the number of edges grows. It must not grow, as workers hold the edges.

    python -m benchmarks client_memory --graphs rmat14,rmat16,rmat18,cliques400,cliques40000 --workers 2 --partitions 4

A new process for each graph starts two worker processes, mines a small graph to import and compile everything, and
then mines the graph. *Above* is the peak resident set of that process, without the workers, less its resident set
after the small graph: *until tables*, until the workers have written the tables, and *report*, while the process writes
the report. *After connecting* is its resident set before that. The Dask scheduler is in the same process and is
counted: its records grow with the tasks until they reach their maximum length. The sample for the plan has a bounded
size and is freed before the run starts; the measurement begins after that.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks import ROOT
from benchmarks.common import machine
from benchmarks.common.graphs import Answers, Graph, graph
from benchmarks.common.table import markdown, mebibytes, millions, seconds
from edgemill.pipeline import mine
from edgemill.pipeline.cluster.connecting.start import connect
from edgemill.pipeline.events import Events
from edgemill.pipeline.run.mining import mine_settings
from edgemill.pipeline.settings.models import ClusterSettings
from edgemill.pipeline.settings.sources import make_settings
from edgemill.tasks.generate import generate

GRAPHS = "rmat14,rmat16,rmat18,cliques400,cliques40000"


@dataclass(frozen=True)
class ClientPeak:
    """Memory of the client in one run."""

    graph: str
    edges: int
    exchanges: int
    connected_bytes: int
    """Resident just after connecting."""
    before_bytes: int
    """Resident just before the run."""
    tables_bytes: int
    """Peak resident set until its tables were written."""
    report_bytes: int
    """Peak resident set while its report was written."""
    rest_bytes: int
    """Peak resident set after that."""
    seconds: float

    @property
    def peak_bytes(self) -> int:
        """Peak resident set of the run."""
        return max(self.tables_bytes, self.report_bytes, self.rest_bytes)

    @property
    def above_bytes(self) -> int:
        """Memory that the run added."""
        return self.peak_bytes - self.before_bytes

    @property
    def above_until_tables_bytes(self) -> int:
        """Memory that the run added until its tables were written."""
        return self.tables_bytes - self.before_bytes

    @property
    def above_in_report_bytes(self) -> int:
        """Memory that the run added while its report was written."""
        return self.report_bytes - self.before_bytes


class _FromThePlan:
    """A display that measures the peaks of the parts of a run after its plan is made."""

    before = tables = report = 0
    """Resident set before the run; the peaks until the tables were written and while the report was written."""

    def show(self, event: Mapping[str, Any]) -> None:
        """A display's."""
        if event["event"] == "planned":
            gc.collect()
            pa.default_memory_pool().release_unused()
            ctypes.CDLL(None).malloc_trim(0)
            self.before = machine.resident_bytes()
            machine.forget_peak()
        elif event["event"] == "stage_finished" and event["stage"] == "publish":
            self.tables = machine.peak_bytes()
            machine.forget_peak()
        elif event["event"] == "report_written":
            self.report = machine.peak_bytes()
            machine.forget_peak()

    def close(self) -> None:
        """A display's."""


def measure(graph: Graph, workers: int, partitions: int, scratch: Path) -> ClientPeak:
    """Mine a graph with worker processes and measure this process. Call it in a new process, by `measure_apart`."""
    with tempfile.TemporaryDirectory(dir=scratch) as name, connect(ClusterSettings(workers=workers)) as client:
        folder = Path(name)
        connected = machine.resident_bytes()
        generate("chain", folder / "small", files=1, seed=1, triangles=1000)
        mine(folder / "small", folder / "first", client=client, partitions=partitions)
        watch = _FromThePlan()
        settings = make_settings(graph.path, folder / "out", partitions=partitions)
        with Events(watch) as events:
            manifest = mine_settings(settings, client=client, events=events).manifest
        rest = machine.peak_bytes()
    counts, exchanges = manifest.counts, len(manifest.exchanges)
    graph.check(Answers(counts.vertices, counts.edges, counts.triangles or 0, manifest.lam.max, manifest.lam.sum))
    parts = watch.before, watch.tables, watch.report, rest
    return ClientPeak(graph.name, counts.edges, exchanges, connected, *parts, manifest.seconds)


def measure_apart(graph: Graph, workers: int, partitions: int, scratch: Path) -> ClientPeak:
    """`measure` in a process of its own; raises CalledProcessError if it fails."""
    call = f"import sys; sys.path.append({str(ROOT)!r}); from benchmarks.client_memory import _serve; _serve()"
    done = subprocess.run(
        [sys.executable, "-c", call],
        env={**os.environ, "PYTHONSAFEPATH": "1"},
        input=pickle.dumps((graph, workers, partitions, scratch)),
        stdout=subprocess.PIPE,
        check=True,
    )
    peak: ClientPeak = pickle.loads(done.stdout)
    return peak


def _serve() -> None:
    """Run `measure` in the process that `measure_apart` starts."""
    sys.stdout.buffer.write(pickle.dumps(measure(*pickle.load(sys.stdin.buffer))))


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    parser.add_argument("--graphs", default=GRAPHS, help="names, with commas between")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--partitions", type=int, default=4)


HEAD = (
    "graph",
    "edges, M",
    "exchanges",
    "after connecting, MiB",
    "before, MiB",
    "peak, MiB",
    "above until tables, MiB",
    "report, MiB",
    "above, MiB",
    "run, s",
)
KEYS = ("graph",)
"""Columns that identify a row in the record."""
RECORDED = ("above until tables, MiB", "above, MiB")
"""Columns whose figures are recorded."""


def row(peak: ClientPeak) -> list[str]:
    """A line of the table."""
    return [
        peak.graph,
        millions(peak.edges),
        str(peak.exchanges),
        mebibytes(peak.connected_bytes),
        mebibytes(peak.before_bytes),
        mebibytes(peak.peak_bytes),
        mebibytes(peak.above_until_tables_bytes),
        mebibytes(peak.above_in_report_bytes),
        mebibytes(peak.above_bytes),
        seconds(peak.seconds),
    ]


def report(options: argparse.Namespace) -> list[list[str]]:
    """Measure and print; returns the rows of the table."""
    options.cache.mkdir(parents=True, exist_ok=True)
    graphs = [graph(name, options.cache) for name in options.graphs.split(",")]
    rows = [row(measure_apart(one, options.workers, options.partitions, options.cache)) for one in graphs]
    print(f"Client of {options.workers} worker processes, {options.partitions} partitions:\n")
    print(markdown(HEAD, rows))
    return rows
