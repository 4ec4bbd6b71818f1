"""PageRank on several GPUs: a superstep with one block on each, compared with one block on one GPU.

    python -m benchmarks gpu_ranks --scales 24,26 --gpus 4 --repeats 3

R-MAT graphs, edge factor 16, as in `gpu_programs`; each process generates the graph and cuts its block from it, a range
of vertices with about equal work. A superstep is the difference of runs with many and with few, divided;
medians of the repeats, with compiled kernels, and of several processes the slowest. *MB received* are bytes that the
process with most received in a superstep. Ranks must have the same bits as those of one block. With fewer GPUs than
processes, several share one.
"""

from __future__ import annotations

import argparse
import os
from contextlib import closing
from dataclasses import replace
from statistics import median
from typing import Any

import cupy
import numpy as np

from benchmarks.common.table import markdown, millions
from benchmarks.gpus.gpu_programs import FEW, MANY, timed
from benchmarks.gpus.graphs import rmat_block
from benchmarks.gpus.processes import from_processes, own_device
from edgemill.kernels.graph import InRows
from edgemill.pipeline.programs.blocks import VERTEX_WORK
from edgemill.tasks.device import MemorySpace
from edgemill.tasks.partition import RangePartitioner
from edgemill.tasks.programs import GraphBlock, ProgramOutcome, run_program
from edgemill.tasks.programs.shipped.pagerank import PageRank
from edgemill.tasks.shards.carriers.carrier import Carrier, MemoryCarrier
from edgemill.tasks.shards.carriers.shared_memory import SharedMemoryCarrier

HEAD = ("scale", "entries, M", "GPUs", "superstep, ms", "one GPU, ms", "ratio", "MB received")
KEYS = ("scale", "GPUs")
"""Columns that identify a row in the record."""
RECORDED = ("superstep, ms", "one GPU, ms")
"""Columns whose figures are recorded."""


def own_block(whole: GraphBlock, rank: int, count: int) -> tuple[GraphBlock, RangePartitioner]:
    """The block of one of `count` groups, and the ranges of all groups."""
    offsets = whole.rows.offsets
    work = offsets + VERTEX_WORK * cupy.arange(len(offsets))
    targets = cupy.arange(1, count, dtype=np.int64) * work[-1] // count
    cuts = cupy.searchsorted(work, targets)
    first, last = (int(cupy.concatenate([offsets[:1], cuts, cupy.array([whole.vertices])])[rank + k]) for k in (0, 1))
    begin, end = int(offsets[first]), int(offsets[last])
    source = whole.rows.source[begin:end]
    present = cupy.zeros(whole.vertices, np.bool_)
    present[source] = True
    present[first:last] = True
    position = cupy.cumsum(present, dtype=np.int32) - np.int32(1)
    rows = InRows(offsets[first : last + 1] - begin, position[source])
    sources = cupy.flatnonzero(present).astype(np.int32)
    number = cupy.arange(first, last, dtype=np.int32)
    block = replace(whole, group=rank, number=number, rows=rows, sources=sources, symmetric=count == 1)
    return block, RangePartitioner(cuts.get())


def superstep(
    block: GraphBlock, home: RangePartitioner, carrier: Carrier, repeats: int
) -> tuple[float, ProgramOutcome, int]:
    """Seconds of a superstep, the outcome of many supersteps, and bytes received in a superstep."""

    def ranked(steps: int) -> tuple[float, ProgramOutcome]:
        program = PageRank(iterations=steps)
        return timed(lambda: run_program(program, block, home, carrier, space=MemorySpace.DEVICE))

    few_times, many_times = [], []
    for _ in range(repeats + 1):
        seconds, few = ranked(FEW)
        few_times.append(seconds)
        seconds, many = ranked(MANY)
        many_times.append(seconds)
    steps = MANY - FEW
    return (median(many_times[1:]) - median(few_times[1:])) / steps, many, (many.received - few.received) // steps


def in_own_process(rank: int, count: int, devices: int, scale: int, repeats: int, name: str, to: Any) -> None:
    """Rank the vertices of one block in its own process. `name` identifies the carrier's run."""
    own_device(rank, devices)
    whole = rmat_block(scale)
    alone, known, _ = superstep(whole, RangePartitioner(), MemoryCarrier.open(1)[0], repeats)
    block, home = own_block(whole, rank, count)
    entries = len(whole)
    del whole
    cupy.get_default_memory_pool().free_all_blocks()
    with closing(SharedMemoryCarrier.open(["/dev/shm"], name, rank, count, 300.0)) as carrier:
        taken, found, received = superstep(block, home, carrier, repeats)
    same = bool((known.state["rank"][block.number] == found.state["rank"]).all())
    to.put((same, taken, alone, received, entries))


def measured(scale: int, count: int, repeats: int) -> list[str]:
    """A line of the table."""
    name = f"gpu-ranks-{os.getpid()}-{scale}-{count}"
    found = from_processes(in_own_process, count, scale, repeats, name)
    if not all(same for same, *_ in found):
        raise ValueError(f"scale {scale}: ranks of {count} blocks differ from those of one")
    _, taken, alone, received, entries = (max(part) for part in zip(*found, strict=True))
    return [
        f"{scale}",
        millions(entries),
        f"{count}",
        f"{1e3 * taken:.2f}",
        f"{1e3 * alone:.2f}",
        f"{taken / alone:.2f}",
        f"{received / 1e6:.0f}",
    ]


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scales", default="24", help="R-MAT scales (24)")
    parser.add_argument("--gpus", default="2", help="processes, each with a GPU if there are enough (2)")
    parser.add_argument("--repeats", type=int, default=3, help="passes (3)")


def report(options: argparse.Namespace) -> list[list[str]]:
    """Measure and print; returns the rows of the table."""
    print(cupy.cuda.runtime.getDeviceProperties(0)["name"].decode(), f"CuPy {cupy.__version__}", flush=True)
    counts = [int(count) for count in options.gpus.split(",")]
    lines = [measured(int(scale), count, options.repeats) for scale in options.scales.split(",") for count in counts]
    print(markdown(HEAD, lines))
    return lines
