"""Runs whose edges do not fit in the memory that their workers have.

    python -m benchmarks waves --graphs rmat20,actor-collaboration --partitions 32 --workers 2 --limit 1024

A fresh process for each line starts its worker processes with so many MiB each, and mines. *Peak* is the most that any
of them had resident, the code of its libraries included; *ended* counts those that exceeded the limit and were ended
for it, *in files* is the most that all of them had in their scratch folders at a time, files without a name left out.
*Times* is what the partitions or shards would take in memory together, as `edgemill plan` counts it from their real
sizes, over what the workers have. On the CPU; the threads are shared out over the workers. λ is checked against the
catalogue; of R-MAT, with `--check`, against a run on one partition without a limit.

Where rows of shards lie in files: *rows* is the size of these files, for each edge with triangles; *least* is twice
that, as each byte is written once and read once; *mapped* is what came into memory of them, from the page cache or from
the disk, the same page as often as it came. *Disk* is what the workers' whole run read from the disk, for each edge
with triangles. With `--cold` pages that are unmapped leave the page cache, too, as where memory has no room for them.
"""

from __future__ import annotations

import argparse
import mmap
import os
import pickle
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from benchmarks import ROOT, machine
from benchmarks.command import Layout, run_command
from benchmarks.graphs import Answers, Graph, graph
from benchmarks.table import markdown, mebibytes, millions, seconds
from edgemill.pipeline import mine, shard_peeling
from edgemill.pipeline.cluster import connect
from edgemill.pipeline.manifest import Manifest
from edgemill.pipeline.plan import WORKER_COPY_BYTES, WORKER_EDGE_BYTES
from edgemill.pipeline.settings import ClusterSettings
from edgemill.pipeline.shard_memory import ShardMemory
from edgemill.tasks.shards import FileRoom

_LOOK_SECONDS = 0.5
"""Between two looks at the scratch folders."""
_PAGE_OUT = 21
"""MADV_PAGEOUT of Linux 5.4, which Python has no name for."""


@dataclass(frozen=True)
class Waves:
    """One run."""

    graph: str
    answers: Answers
    layout: Layout
    workers: int
    limit_bytes: int
    """Of each worker."""
    peak_bytes: tuple[int, ...]
    """Of each worker that was there at the end."""
    ended: int
    """Workers that exceeded their limit."""
    file_bytes: int
    """The most that lay in scratch at a time."""
    local_edges: int
    """Owned edges and ghosts of all partitions; of shards, edges with triangles."""
    needed_bytes: int
    """What all partitions or shards would take in memory."""
    row_bytes: int
    """Size of the files that rows of shards lay in."""
    mapped_bytes: int
    """What came into memory of them."""
    disk_bytes: int
    """What the workers read from the disk."""
    stages: Mapping[str, float]
    """Seconds."""
    exchanges: int
    seconds: float

    @property
    def times(self) -> float:
        """What all partitions would take in memory, over what the workers have."""
        return self.needed_bytes / (self.workers * self.limit_bytes)


class _Counted(FileRoom):
    """A room that leaves its counts with the worker."""

    found: ClassVar[list[tuple[int, int]]] = []
    cold: ClassVar[bool] = False

    def _unmap(self, maps: Sequence[mmap.mmap]) -> None:
        for mapped in maps if self.cold else ():
            mapped.flush()
            mapped.madvise(_PAGE_OUT)
        super()._unmap(maps)

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self.found.append((self.given_bytes, self.mapped_bytes))


def _count_rooms(cold: bool) -> None:
    """On a worker, before it peels."""
    _Counted.cold = cold
    vars(shard_peeling)["FileRoom"] = _Counted


def _counted() -> tuple[int, int, int]:
    """On a worker: bytes of its rooms, of what came into memory of them, and what it read from the disk."""
    lines = Path("/proc/self/io").read_text().splitlines()
    (disk,) = (int(line.split()[1]) for line in lines if line.startswith("read_bytes"))
    given, mapped = (sum(own) for own in zip((0, 0), *_Counted.found, strict=True))
    return given, mapped, disk


def _needed_bytes(manifest: Manifest) -> int:
    """What all partitions would take in memory, or all groups of shards."""
    counts, local = manifest.counts, _local_edges(manifest)
    how = manifest.bounding.shards
    if how is None:
        return local * (WORKER_EDGE_BYTES + WORKER_COPY_BYTES)
    told = ShardMemory(counts.edges, local / counts.edges, counts.vertices, how.groups, how.shards, in_process=False)
    return how.groups * told.in_memory


def _local_edges(manifest: Manifest) -> int:
    return sum(part.owned + part.ghost for part in manifest.partitions)


def measure(
    graph: Graph, layout: Layout, workers: int, threads: int, limit_bytes: int, scratch: Path, cold: bool = False
) -> Waves:
    """Mine. Do it in a fresh process: `measure_apart`."""
    how: dict[str, Any] = {"device": "cpu", **layout.settings}
    how["checkpoint"] = {"every_seconds": None, "every_exchanges": None}
    with tempfile.TemporaryDirectory(dir=scratch) as name:
        own: dict[str, Any] = {
            "workers": workers,
            "threads_per_worker": threads,
            "memory_limit_bytes": limit_bytes,
            "device": "cpu",
        }
        cluster = ClusterSettings(**own, local_directory=f"{name}/scratch")
        with connect(cluster) as client, _largest(Path(name) / "scratch") as largest:
            client.run(_count_rooms, cold)
            before = sum(disk for _, _, disk in client.run(_counted).values())
            manifest = mine(graph.path, f"{name}/out", client=client, **how).manifest
            peaks = client.run(machine.peak_bytes).values()
            ended = len(client.get_events("worker-restart-memory"))
            rows, mapped, disk = (sum(own) for own in zip(*client.run(_counted).values(), strict=True))
    counts = manifest.counts
    answers = Answers(counts.vertices, counts.edges, counts.triangles, manifest.lam.max, manifest.lam.sum)
    graph.check(answers)
    return Waves(
        graph.name,
        answers,
        layout,
        workers,
        limit_bytes,
        tuple(peaks),
        ended,
        largest[0],
        _local_edges(manifest),
        _needed_bytes(manifest),
        rows,
        mapped,
        disk - before,
        {stage.stage: stage.seconds for stage in manifest.stages},
        len(manifest.exchanges),
        manifest.seconds,
    )


@contextmanager
def _largest(folder: Path) -> Iterator[list[int]]:
    """Look at a folder now and then; the one number is the most bytes that it held."""
    done, most = threading.Event(), [0]

    def look() -> None:
        while not done.wait(_LOOK_SECONDS):
            most[0] = max(most[0], _size(folder))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield most
    finally:
        done.set()
        thread.join()


def _size(folder: Path) -> int:
    size = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                size += os.stat(f"{parent}/{name}").st_size
            except FileNotFoundError:
                continue
    return size


def measure_apart(
    graph: Graph, layout: Layout, workers: int, threads: int, limit_bytes: int, scratch: Path, cold: bool = False
) -> Waves:
    """`measure` in a process of its own; raises CalledProcessError if it fails."""
    call = f"import sys; sys.path.append({str(ROOT)!r}); from benchmarks.waves import _serve; _serve()"
    done = subprocess.run(
        [sys.executable, "-c", call],
        env={**os.environ, "PYTHONSAFEPATH": "1"},
        input=pickle.dumps((graph, layout, workers, threads, limit_bytes, scratch, cold)),
        stdout=subprocess.PIPE,
        check=True,
    )
    found: Waves = pickle.loads(done.stdout)
    return found


def _serve() -> None:
    """The other end of `measure_apart`."""
    sys.stdout.buffer.write(pickle.dumps(measure(*pickle.load(sys.stdin.buffer))))


def with_answers(graph: Graph, scratch: Path) -> Graph:
    """The graph with the answers of a run on one partition without a limit, if none are known."""
    if graph.answers is not None:
        return graph
    return replace(graph, answers=run_command(graph.path, Layout(1), scratch).answers)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    parser.add_argument("--graphs", default="rmat20,actor-collaboration", help="names, with commas between")
    parser.add_argument("--layouts", default="32", help="partitions and partitioner, with commas between")
    parser.add_argument("--workers", default="2", help="numbers of worker processes, with commas between")
    parser.add_argument("--limit", type=int, default=1024, help="MiB of each worker")
    parser.add_argument("--cold", action="store_true", help="rows in files come from the disk each time")
    parser.add_argument("--check", action="store_true", help="run R-MAT on one partition first, to know its answers")


STAGES = ("read", "number", "partition", "triangulate", "bound", "publish")
HEAD = (
    "graph",
    "edges, M",
    "λ max",
    "λ sum",
    "layout",
    "workers",
    "limit, MiB",
    "peak, MiB",
    "ended",
    "copies",
    "times",
    "in files, MiB",
    "rows, bytes an edge",
    "least",
    "mapped",
    "disk",
    *STAGES,
    "run, s",
    "exchanges",
)


def row(waves: Waves) -> list[str]:
    """A line of the table."""
    return [
        waves.graph,
        millions(waves.answers.edges),
        str(waves.answers.lambda_max),
        str(waves.answers.lambda_sum),
        str(waves.layout),
        str(waves.workers),
        mebibytes(waves.limit_bytes),
        ", ".join(mebibytes(peak) for peak in waves.peak_bytes),
        str(waves.ended),
        f"{waves.local_edges / waves.answers.edges:.2f}",
        f"{waves.times:.1f}",
        mebibytes(waves.file_bytes),
        *(
            f"{size / max(1, waves.local_edges):.0f}"
            for size in (waves.row_bytes, 2 * waves.row_bytes, waves.mapped_bytes, waves.disk_bytes)
        ),
        *(seconds(waves.stages.get(stage, 0.0)) for stage in STAGES),
        seconds(waves.seconds),
        str(waves.exchanges),
    ]


def report(options: argparse.Namespace) -> None:
    """Measure and print."""
    options.cache.mkdir(parents=True, exist_ok=True)
    graphs = [graph(name, options.cache, files=16) for name in options.graphs.split(",")]
    if options.check:
        graphs = [with_answers(one, options.cache) for one in graphs]
    found = [
        measure_apart(
            one,
            layout,
            workers,
            max(1, options.threads // workers),
            options.limit * 2**20,
            options.cache,
            options.cold,
        )
        for one in graphs
        for layout in map(Layout.parse, options.layouts.split(","))
        for workers in map(int, options.workers.split(","))
    ]
    print(markdown(HEAD, map(row, found)))
