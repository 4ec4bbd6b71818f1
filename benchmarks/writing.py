"""What the tables of a result take to be written, against Arrow alone, by threads that write a file each.

    python -m benchmarks writing --threads 16 --at-once 1,4,16 --repeats 5

Columns like those of an R-MAT graph's edges, row groups of a million rows. *Arrow* packs the same row groups, page
checksums included, into memory: what our files take beside that are hashes, the seal, and Python and the kernel under
the file.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.table import markdown, seconds, span
from edgemill.tasks.writing import layout, write_table

ROWS = 1_000_000
GROUPS = 4
"""Row groups that each thread writes."""
SCHEMA = pa.schema([("src", pa.int64()), ("dst", pa.int64()), ("support", pa.int32()), ("lambda", pa.int32())])


@dataclass(frozen=True)
class Writing:
    """Seconds of each repeat."""

    at_once: int
    rows: int
    ours: list[float]
    arrow: list[float]


def columns(rows: int) -> list[pa.Array]:
    """One row group: ascending sources, targets above them, supports and λ of a skewed distribution."""
    drawn = np.random.default_rng(1)
    source = np.sort(drawn.integers(0, 1 + rows // 16, rows))
    support = drawn.geometric(0.02, rows).astype(np.int32)
    lam = (support * 0.7).astype(np.int32)
    return [pa.array(column) for column in (source, source + drawn.integers(1, 1 << 24, rows), support, lam)]


def measure(at_once: int, repeats: int, rows: int = ROWS) -> Writing:
    """Write so many files `at_once`, our way and Arrow's by turns."""
    group = columns(rows)
    times: tuple[list[float], list[float]] = ([], [])
    with TemporaryDirectory() as folder, ThreadPoolExecutor(at_once) as threads:
        for _ in range(repeats):
            for write, own in zip((partial(_ours, Path(folder), group), partial(_arrow, group)), times, strict=True):
                own.append(_timed(threads, write, at_once))
    return Writing(at_once, at_once * GROUPS * rows, *times)


def _timed(threads: ThreadPoolExecutor, write: Callable[[int], None], at_once: int) -> float:
    start = time.perf_counter()
    list(threads.map(write, range(at_once)))
    return time.perf_counter() - start


def _ours(folder: Path, group: list[pa.Array], number: int) -> None:
    write_table(folder, f"edges/{number}.parquet", SCHEMA, 2, iter([group] * GROUPS), "zstd")


def _arrow(group: list[pa.Array], number: int) -> None:
    options = layout(SCHEMA, 2, "zstd")
    with pq.ParquetWriter(pa.BufferOutputStream(), SCHEMA, write_page_checksum=True, **options) as writer:
        for _ in range(GROUPS):
            writer.write_table(pa.table(group, schema=SCHEMA), row_group_size=len(group[0]))


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    parser.add_argument("--at-once", default="1,2", help="files at once, with commas between (1,2)")
    parser.add_argument("--repeats", type=int, default=5)


HEAD = ("files at once", "rows, M", "ours, s", "from to", "M rows/s", "Arrow, s", "M rows/s", "share of it")


def row(writing: Writing) -> list[str]:
    """A line of the table."""
    ours, arrow = median(writing.ours), median(writing.arrow)
    return [
        f"{writing.at_once}",
        f"{writing.rows / 1e6:g}",
        seconds(ours),
        span(writing.ours),
        f"{writing.rows / ours / 1e6:.1f}",
        seconds(arrow),
        f"{writing.rows / arrow / 1e6:.1f}",
        f"{arrow / ours:.2f}",
    ]


def report(options: argparse.Namespace) -> None:
    """Measure and print."""
    print(markdown(HEAD, [row(measure(int(n), options.repeats)) for n in options.at_once.split(",")]))
