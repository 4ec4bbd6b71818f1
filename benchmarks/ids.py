"""Numbering of many ids by workers whose memory is far below what the ids take, and by DuckDB on the same rows.

    python -m benchmarks ids --rows 10_000_000 --kinds sparse,string --memory 1.2GiB --threads 1
    python -m benchmarks ids --rows 100_000_000 --kinds string --memory 2GiB --partitions 128 --threads 1

The rows are made on first use (id_rows.py): 0.3 ids a row and no triangles: λ is a small part. One `edgemill run`
with that many worker processes of a thread each, in which Dask spills what exceeds their memory, and then DuckDB, which
does what the stages read and number do. Memory is looked at five times a second: *a process* is the most that one had,
*all* the most that all had together; *CPU* is what all had of the cores, which neighbours change less than the seconds.
That both find as many vertices and edges is checked.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from dask.utils import parse_bytes

from benchmarks import ROOT
from benchmarks.graphs import WrongAnswer
from benchmarks.id_rows import KINDS, id_rows
from benchmarks.processes import Watch, watched
from benchmarks.table import markdown, mebibytes, millions, seconds
from edgemill.pipeline.manifest import read_manifest

STAGES = ("read", "number", "partition", "triangulate", "bound", "publish")


@dataclass(frozen=True)
class Part:
    """A stage, or all of them."""

    name: str
    seconds: float
    cpu_seconds: float
    """That all processes had of the cores: a busy machine changes it less."""
    largest_bytes: int
    """The most that one process had."""
    all_bytes: int
    """The most that all had at one moment."""


@dataclass(frozen=True)
class Numbered:
    """What became of the rows, and what it took."""

    way: str
    vertices: int
    edges: int
    parts: Sequence[Part]
    """The first one is the whole."""
    disk_bytes: int
    """The most that was spilled at one moment."""


def by_edgemill(path: Path, workers: int, memory_bytes: int, partitions: int, scratch: Path) -> Numbered:
    """The command; CalledProcessError if it fails."""
    with tempfile.TemporaryDirectory(dir=scratch) as name:
        out, spilled = Path(name, "out"), Path(name, "spilled")
        settings = {
            "cluster.workers": workers,
            "cluster.threads_per_worker": 1,
            "cluster.memory_limit_bytes": memory_bytes,
            "cluster.local_directory": spilled,
            "cluster.device": "cpu",
            "partitioning.count": partitions or "auto",
            "checkpoint.every_seconds": "null",
        }
        command = [sys.executable, "-m", "edgemill.pipeline", "run", "--input", str(path), "--output", str(out)]
        for key, value in settings.items():
            command += ["--set", f"{key}={value}"]
        _, watch = _run(command, spilled)
        manifest = read_manifest(out)
        times = _stage_times(out / "log.jsonl")
    whole = _part("all", manifest.seconds, watch)
    found = [_part(stage, _seconds(*times[stage]), watch.between(*times[stage])) for stage in STAGES]
    return Numbered("edgemill", manifest.counts.vertices, manifest.counts.edges, [whole, *found], watch.disk_bytes)


def by_duckdb(path: Path, threads: int, memory_bytes: int, scratch: Path) -> Numbered:
    """DuckDB in a process of its own; CalledProcessError if it fails."""
    with tempfile.TemporaryDirectory(dir=scratch) as name:
        arguments = [str(path), name, str(memory_bytes), str(threads)]
        said, watch = _run([sys.executable, "-m", "benchmarks.duckdb_ids", *arguments], Path(name, "spilled"))
    found = json.loads(said)
    steps = {name: tuple(map(datetime.fromisoformat, times)) for name, times in found["steps"].items()}
    parts = [_part(name, _seconds(*times), watch.between(*times)) for name, times in steps.items()]
    whole = _part("all", sum(part.seconds for part in parts), watch)
    return Numbered("DuckDB", found["vertices"], found["edges"], [whole, *parts], watch.disk_bytes)


def check(found: Sequence[Numbered]) -> None:
    """Raises WrongAnswer unless all found as many vertices and edges."""
    if len({(one.vertices, one.edges) for one in found}) > 1:
        raise WrongAnswer(f"not the same graph: {[(one.way, one.vertices, one.edges) for one in found]}")


def _part(name: str, seconds: float, seen: Watch) -> Part:
    return Part(name, seconds, seen.busy_seconds, seen.largest_bytes, seen.all_bytes)


def _run(command: Sequence[str], folder: Path) -> tuple[str, Watch]:
    environment = {**os.environ, "PYTHONSAFEPATH": "1", "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        with watched(process.pid, folder) as watch:
            said, _ = process.communicate()
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, command)
    return said, watch


def _stage_times(log: Path) -> dict[str, tuple[datetime, datetime]]:
    """When each stage began and ended."""
    started, times = {}, {}
    for line in log.read_text().splitlines():
        event = json.loads(line)
        if event["event"] == "stage_started":
            started[event["stage"]] = datetime.fromisoformat(event["time"])
        if event["event"] == "stage_finished":
            times[event["stage"]] = (started[event["stage"]], datetime.fromisoformat(event["time"]))
    return times


def _seconds(start: datetime, end: datetime) -> float:
    return (end - start).total_seconds()


def _names(text: str) -> list[str]:
    names = text.split(",")
    if not set(names) <= KINDS.keys():
        raise ValueError(text)
    return names


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--kinds", type=_names, default=list(KINDS), help="sparse, string, or both: sparse,string")
    parser.add_argument("--workers", type=int, default=2, help="worker processes, of a thread each (2)")
    parser.add_argument("--memory", type=parse_bytes, default="1.2GiB", help="of each worker (1.2GiB)")
    parser.add_argument("--partitions", type=int, default=0, help="left out: as the plan chooses")
    parser.add_argument("--by", default="edgemill,duckdb", help="edgemill, duckdb, or both: edgemill,duckdb")
    parser.add_argument("--duckdb-memory", type=parse_bytes, help="left out: that of all workers")


HEAD = ("ids", "rows, M", "distinct, M", "by", "what", "s", "CPU, s", "a process, MiB", "all, MiB", "spilled, MiB")


def lines(kind: str, rows: int, found: Numbered) -> list[list[str]]:
    """Lines of the table: the whole, then its parts."""
    head = [kind, millions(rows), millions(found.vertices), found.way]
    return [
        [
            *head,
            part.name,
            seconds(part.seconds),
            seconds(part.cpu_seconds),
            mebibytes(part.largest_bytes),
            mebibytes(part.all_bytes),
            "" if number else mebibytes(found.disk_bytes),
        ]
        for number, part in enumerate(found.parts)
    ]


def report(options: argparse.Namespace) -> None:
    """Measure and print."""
    rows = []
    for kind in options.kinds:
        path, found = id_rows(kind, options.rows, options.cache), []
        if "edgemill" in options.by:
            found.append(by_edgemill(path, options.workers, options.memory, options.partitions, options.cache))
        if "duckdb" in options.by:
            memory = options.duckdb_memory or options.workers * options.memory
            found.append(by_duckdb(path, options.threads, memory, options.cache))
        check(found)
        rows += [line for one in found for line in lines(kind, options.rows, one)]
    print(markdown(HEAD, rows))
