"""What it costs to check the checksums of pages: reading both columns with and without.

    python -m benchmarks checksums --graphs rmat18,rmat20 --threads 1 --repeats 9

The files are those of `edgemill generate`: zstd, page checksums, row groups of a million rows. With and without take
turns. One thread, as a task that reads a block is one of several at once.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import pyarrow.parquet as pq

from benchmarks.graphs import Graph, graph
from benchmarks.table import markdown, mebibytes, millions, seconds, span


@dataclass(frozen=True)
class Reading:
    """Seconds of each repeat."""

    graph: str
    rows: int
    bytes: int
    unchecked: list[float]
    checked: list[float]


def measure(graph: Graph, repeats: int) -> Reading:
    """Read a graph's files `repeats` times each way; what is read is dropped."""
    files = sorted(Path(graph.path).glob("*.parquet"))
    times: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(repeats):
        for check, own in times.items():
            start = time.perf_counter()
            rows = sum(_rows(path, check) for path in files)
            own.append(time.perf_counter() - start)
    return Reading(graph.name, rows, sum(path.stat().st_size for path in files), times[False], times[True])


def _rows(path: Path, check: bool) -> int:
    with pq.ParquetFile(path, pre_buffer=True, page_checksum_verification=check) as file:
        return int(file.read(columns=["src", "dst"], use_threads=False).num_rows)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    parser.add_argument("--graphs", default="rmat18,rmat20", help="names, with commas between")
    parser.add_argument("--repeats", type=int, default=9)


HEAD = ("graph", "rows, M", "MiB", "unchecked, s", "from to", "checked, s", "from to", "more, %")


def row(reading: Reading) -> list[str]:
    """A line of the table."""
    unchecked, checked = median(reading.unchecked), median(reading.checked)
    return [
        reading.graph,
        millions(reading.rows),
        mebibytes(reading.bytes),
        seconds(unchecked),
        span(reading.unchecked),
        seconds(checked),
        span(reading.checked),
        f"{100 * (checked / unchecked - 1):.1f}",
    ]


def report(options: argparse.Namespace) -> None:
    """Measure and print."""
    graphs = [graph(name, options.cache) for name in options.graphs.split(",")]
    print(markdown(HEAD, [row(measure(one, options.repeats)) for one in graphs]))
