"""Whether the memory of the client grows with the edges: it should not, as edges live with the workers.

    python -m benchmarks client_memory --graphs rmat14,rmat16,rmat18,cliques400,cliques40000 --workers 2 --partitions 4

A fresh process for each graph starts two worker processes, mines a small graph so that everything is imported and
warm, and then mines the graph. *Above* is the most memory that process had (its peak resident set, workers
not included) less what it had after the small graph, *until tables*, until the workers have written the tables, and
*report*, while this process writes the report from them. *After connecting* is its level before all that. The Dask
scheduler lives in the same process and is counted: its records grow with the tasks, so with the exchanges, until they
reach their fixed length. The sample that a plan is made from is bounded, but large beside all that, and let go before
anything runs: the watch starts there.
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

from benchmarks import ROOT, machine
from benchmarks.graphs import Answers, Graph, graph
from benchmarks.table import markdown, mebibytes, millions, seconds
from edgemill.pipeline import mine
from edgemill.pipeline.cluster import connect
from edgemill.pipeline.config import make_settings
from edgemill.pipeline.mining import mine_settings
from edgemill.pipeline.settings import ClusterSettings
from edgemill.pipeline.telemetry import Events
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
    """Most resident until its tables were written."""
    report_bytes: int
    """Most resident while its report was written."""
    rest_bytes: int
    """Most resident from then on."""
    seconds: float

    @property
    def peak_bytes(self) -> int:
        """Most resident within it."""
        return max(self.tables_bytes, self.report_bytes, self.rest_bytes)

    @property
    def above_bytes(self) -> int:
        """What the run added."""
        return self.peak_bytes - self.before_bytes

    @property
    def above_until_tables_bytes(self) -> int:
        """What it added until its tables were written."""
        return self.tables_bytes - self.before_bytes

    @property
    def above_in_report_bytes(self) -> int:
        """What it added while its report was written."""
        return self.report_bytes - self.before_bytes


class _FromThePlan:
    """Forgets, when a run has its plan, what that took; and tells the parts that follow apart."""

    before = tables = report = 0
    """Resident before; the peaks until the tables were written, and while the report was."""

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
    """Mine a graph by worker processes and watch this process. Do it in a fresh one: `measure_apart`."""
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
    graph.check(Answers(counts.vertices, counts.edges, counts.triangles, manifest.lam.max, manifest.lam.sum))
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
    """The other end of `measure_apart`."""
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


def report(options: argparse.Namespace) -> None:
    """Measure and print."""
    options.cache.mkdir(parents=True, exist_ok=True)
    graphs = [graph(name, options.cache) for name in options.graphs.split(",")]
    peaks = [measure_apart(one, options.workers, options.partitions, options.cache) for one in graphs]
    print(f"Client of {options.workers} worker processes, {options.partitions} partitions:\n")
    print(markdown(HEAD, map(row, peaks)))
