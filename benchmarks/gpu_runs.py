"""Whole runs on GPUs, Parquet to Parquet: in one process, or with a worker process on each GPU.

    python -m benchmarks gpu_runs --threads 16 --scales 18,22,24 --repeats 2
    python -m benchmarks gpu_runs --threads 64 --scales 18,22 --layouts 1,2,4 --protocol ucxx

R-MAT graphs, edge factor 16, are generated on first use in 32 files. A layout is a number of shards, or of partitions
that are made by range or hash and banded (4-range); 1 runs in this process, another has a worker for each. The first
run compiles kernels and starts CUDA; the table has the fastest of the repeats. The answers of all layouts must be the
same, edge by edge up to scale 22. *Bytes/row* is the peak of CuPy's memory pool in this process.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.command import Layout
from benchmarks.graphs import Answers, WrongAnswer, graph
from benchmarks.runs import STAGES
from benchmarks.table import markdown, millions, seconds
from edgemill.pipeline import mine

FILES = 32
"""Of an input: as many as cores may write, and read, side by side."""
COMPARED_ROWS = 10**8
"""Results of inputs up to so many rows are compared edge by edge."""


@dataclass(frozen=True)
class GpuRun:
    """One run."""

    seconds: float
    stages: dict[str, float]
    answers: Answers
    rows: int
    exchanges: int
    messages: int
    pool_bytes: int
    """Of CuPy in this process; 0 where others compute."""
    table: pa.Table | None
    """src, dst and lambda of every edge; None where there are too many."""


def measure(rows: Path, layout: Layout, device: str, protocol: str, scratch: Path) -> GpuRun:
    """Run once."""
    workers = layout.partitions if layout.partitions > 1 else None
    cluster: dict[str, Any] = {"device": device, "workers": workers, "protocol": protocol}
    in_process = workers is None and device == "gpu"
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        if in_process:
            _pool().free_all_blocks()
        start = time.perf_counter()
        result = mine(rows, Path(folder) / "out", cluster=cluster, **layout.settings)
        took = time.perf_counter() - start
        manifest = result.manifest
        counts, lam = manifest.counts, manifest.lam
        few = counts.rows <= COMPARED_ROWS
        return GpuRun(
            took,
            {stage.stage: stage.seconds for stage in manifest.stages},
            Answers(counts.vertices, counts.edges, counts.triangles, lam.max, lam.sum),
            counts.rows,
            manifest.bounding.exchanges,
            sum(exchange.messages for exchange in manifest.exchanges),
            _pool().total_bytes() if in_process else 0,
            result.edges.to_table(columns=["src", "dst", "lambda"]) if few else None,
        )


def _pool() -> Any:
    import cupy

    return cupy.get_default_memory_pool()


def compare(name: str, runs: list[GpuRun]) -> None:
    """Raises WrongAnswer unless all runs found the same."""
    for run in runs[1:]:
        if run.answers != runs[0].answers or run.table != runs[0].table:
            raise WrongAnswer(f"{name}: found {run.answers}, before {runs[0].answers}; or edges differ")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    parser.add_argument("--scales", default="18,22,24", help="R-MAT scales (18,22,24)")
    parser.add_argument(
        "--layouts", default="1", help="such as 1,4,4-hash: shards, or partitions and how they are made (1)"
    )
    parser.add_argument("--protocol", default="tcp", choices=["tcp", "ucxx"], help="between workers (tcp)")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--device", default="gpu", choices=["gpu", "cpu"])


HEAD = (
    "graph",
    "partitions",
    "rows, M",
    "edges, M",
    "run, s",
    *STAGES,
    "rest",
    "exchanges",
    "ids sent, M",
    "bytes/row",
)


def row(name: str, layout: Layout, run: GpuRun) -> list[str]:
    """A line of the table."""
    return [
        name,
        str(layout),
        millions(run.rows),
        millions(run.answers.edges),
        seconds(run.seconds),
        *(seconds(run.stages[stage]) for stage in STAGES),
        seconds(run.seconds - sum(run.stages.values())),
        str(run.exchanges),
        millions(run.messages),
        f"{run.pool_bytes / run.rows:.0f}",
    ]


def report(options: argparse.Namespace) -> None:
    """Measure and print."""
    lines = []
    for scale in options.scales.split(","):
        rows = graph(f"rmat{scale}", options.cache, FILES).path
        every: list[GpuRun] = []
        for layout in map(Layout.parse, options.layouts.split(",")):
            runs = [
                measure(rows, layout, options.device, options.protocol, options.cache) for _ in range(options.repeats)
            ]
            compare(f"rmat{scale}", [*every[:1], *runs])
            every += runs
            lines.append(row(f"rmat{scale}", layout, min(runs, key=lambda run: run.seconds)))
            print(markdown(HEAD, lines[-1:]), flush=True)
    print(f"\nWhole runs, {options.device}, {options.threads} cores, best of {options.repeats}; stages in seconds:\n")
    print(markdown(HEAD, lines))
