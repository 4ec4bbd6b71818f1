"""λ by shards on GPUs: one shard or several on one device or several, compared with peeling one partition.

    python -m benchmarks gpu_shards --scales 22,24 --shards 1,2,4 --repeats 3

R-MAT graphs, edge factor 16, as in `gpu`; supports are counted and edges assigned to shards before the time is taken.
Times are those of peeling, including rows and hash tables; medians of the repeats, with compiled kernels. λ of every
edge is compared. With --profile the kernel measures the parts of a round, on one thread of the first shard. With
--processes each shard has a process, and its own device if there are enough; each process generates the graph, and
prints the share of one partition's memory that its arrays take at most, without mailboxes. Messages
go to the memory of each other's GPUs ("mailboxes"), through shared memory of the host ("shared-memory"), or by NCCL
("nccl").
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from statistics import median
from typing import Any

import cupy
import numpy as np

from benchmarks.common.table import markdown, millions, seconds
from benchmarks.gpus.gpu import Peak
from benchmarks.gpus.graphs import rmat
from benchmarks.gpus.processes import from_processes, own_device
from edgemill.kernels.cpu.shards import Cut
from edgemill.kernels.gpu.runtime import source
from edgemill.kernels.gpu.shards import rows as shard_rows
from edgemill.tasks.bound.peel import peel
from edgemill.tasks.graph import Subgraph, build_subgraph, count_triangles
from edgemill.tasks.shards.carriers.shared_memory import SharedMemoryCarrier
from edgemill.tasks.shards.gpu.groups import peel_groups_on_gpu
from edgemill.tasks.shards.gpu.shard import (
    ShardOnGpu,
    check_totals,
    direct_mail,
    open_shard_mailbox,
    peel_shards_on_gpu,
)
from edgemill.tasks.shards.group_edges import ShardEdges

HEAD = (
    "scale",
    "edges, M",
    "shards",
    "λ, s",
    "of one partition",
    "exchanges",
    "rounds",
    "entries/triangle",
    "messages/edge",
    "mail",
)
KEYS = ("scale", "shards", "mail")
"""Columns that identify a row in the record."""
RECORDED = ("λ, s", "exchanges")
"""Columns whose figures are recorded."""
WAYS = ("auto", "mailboxes", "shared-memory", "nccl")
PARTS = ("look", "write", "meet", "take in", "remove")


def assigned(subgraph: Subgraph, count: int, owns: Sequence[int]) -> list[ShardEdges]:
    """The edges that the shards `owns` of `count` store."""
    low, high = (end.astype(np.uint32) for end in (subgraph.topology.low, subgraph.topology.high))
    support, vertices, found = subgraph.first_counts(), subgraph.topology.vertices, []
    for own in owns:
        part = shard_rows.Part(vertices, count, own)
        mine = cupy.flatnonzero(shard_rows.owned(part, high) | shard_rows.owned(part, low))
        ends = low[mine], high[mine], support[mine]
        found.append(ShardEdges(own, count, Cut(vertices, count), *ends, edges=len(low)))
    return found


def sample(edges: list[ShardEdges]) -> tuple[float, list[ShardOnGpu]]:
    """One pass: seconds, and the states at its end."""
    cupy.cuda.Device().synchronize()
    start = time.perf_counter()
    mailboxes = [open_shard_mailbox(one) for one in edges]
    with direct_mail(edges, mailboxes, [mailbox.address() for mailbox in mailboxes]) as mails:
        states = peel_shards_on_gpu(edges, mails)
    cupy.cuda.Device().synchronize()
    return time.perf_counter() - start, states


def compare(subgraph: Subgraph, edges: list[ShardEdges], states: list[ShardOnGpu], known: Any) -> None:
    """Raises ValueError if λ of an edge differs."""
    check_totals([state.totals for state in states])
    high = subgraph.topology.high.astype(np.uint32)
    for one, state in zip(edges, states, strict=True):
        mine = known[shard_rows.owned(shard_rows.Part(one.cut.vertices, one.groups, one.group), high)]
        if not bool((mine == state.low).all() & (mine == state.high).all()):
            raise ValueError(f"shard {one.group} of {one.groups} has a different λ")


def made(scale: int) -> Subgraph:
    """The graph, with the supports of its edges."""
    owned = rmat(scale)
    return build_subgraph(owned, count_triangles(owned))


def timed_alone(subgraph: Subgraph, repeats: int) -> tuple[float, Any]:
    """Seconds of one partition's peeling, and its λ."""
    times, known = [], None
    for _ in range(repeats + 1):
        cupy.cuda.Device().synchronize()
        start = time.perf_counter()
        known = peel(subgraph).low
        cupy.cuda.Device().synchronize()
        times.append(time.perf_counter() - start)
    return median(times[1:]), known


class Row:
    """A line of the table, from the shards' sums."""

    def __init__(self, scale: int, edges: ShardEdges, taken: float, alone: float, states: list[ShardOnGpu]) -> None:
        sums = [state.sums for state in states]
        entries, triangles, messages = (
            sum(getattr(one, name) for one in sums) for name in ("entries", "triangles", "sent")
        )
        self.cells = [
            f"{scale}",
            millions(edges.edges),
            f"{edges.groups}",
            seconds(taken),
            f"{taken / alone:.2f}",
            f"{states[0].exchanges}",
            f"{states[0].rounds}",
            f"{entries / triangles:.2f}",
            f"{messages / edges.edges:.2f}",
            f"{states[0].way} ({states[0].why})" if states[0].why else states[0].way,
        ]
        self.spent = {name: round(ns / 1e9, 4) for name, ns in zip(PARTS, sums[0].spent, strict=True)}


def in_own_process(
    rank: int, count: int, devices: int, scale: int, repeats: int, profile: bool, way: str, name: str, to: Any
) -> None:
    """Peel one shard in its own process, on one of `devices` devices. `name` identifies the carrier's run."""
    own_device(rank, devices)
    measure(profile)
    subgraph = made(scale)
    with Peak() as of_one:
        alone, known = timed_alone(subgraph, repeats)
    (edges,) = assigned(subgraph, count, [rank])
    subgraph = replace(subgraph, support=subgraph.support[:0])
    pool = cupy.get_default_memory_pool()
    pool.free_all_blocks()
    others = pool.used_bytes() - sum(one.nbytes for one in (edges.low, edges.high, edges.support))
    times, states = [], []
    with Peak() as of_shard:
        for turn in range(repeats + 1):
            carrier = SharedMemoryCarrier.open(["/dev/shm"], f"{name}-{turn}", rank, count, 300.0)
            with closing(carrier):
                start = time.perf_counter()
                states = peel_groups_on_gpu([edges], [carrier], way=way)
                cupy.cuda.Device().synchronize()
                times.append(time.perf_counter() - start)
    print(f"shard {rank}: {(of_shard.most - others) / of_one.most:.2f} of the memory of one partition", flush=True)
    high = subgraph.topology.high.astype(np.uint32)
    mine = known[shard_rows.owned(shard_rows.Part(edges.cut.vertices, count, rank), high)]
    right = bool((mine == states[0].low).all() & (mine == states[0].high).all())
    nothing = np.empty(0, np.int32)
    slim = replace(states[0], count=nothing, low=nothing, high=nothing)
    to.put((rank, right, median(times[1:]), alone, replace(edges, low=nothing, high=nothing, support=nothing), slim))


def in_processes(scale: int, count: int, repeats: int, profile: bool, way: str) -> Row:
    """Peel with a process for each shard."""
    name = f"gpu-shards-{os.getpid()}-{scale}-{count}"
    found = from_processes(in_own_process, count, scale, repeats, profile, way, name)
    found.sort(key=lambda one: one[0])
    if not all(one[1] for one in found):
        raise ValueError(f"{count} shards have another λ")
    return Row(scale, found[0][4], max(one[2] for one in found), found[0][3], [one[5] for one in found])


def measure(profile: bool) -> None:
    """Have the kernels measure themselves."""
    if profile:
        source.kernel = partial(source.kernel, PROFILE=1)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scales", default="20,22,24", help="R-MAT scales (20,22,24)")
    parser.add_argument("--shards", default="1,2,4", help="shards (1,2,4)")
    parser.add_argument("--repeats", type=int, default=3, help="passes (3)")
    parser.add_argument(
        "--processes", action="store_true", help="one process per shard, each with a device if possible"
    )
    parser.add_argument("--way", default="auto", choices=WAYS, help="transport of messages (auto)")
    parser.add_argument("--profile", action="store_true", help="measure the parts of a round")


def report(options: argparse.Namespace) -> list[list[str]]:
    """Measure and print; returns the rows of the table."""
    print(cupy.cuda.runtime.getDeviceProperties(0)["name"].decode(), f"CuPy {cupy.__version__}")
    counts, rows = [int(count) for count in options.shards.split(",")], []
    if not options.processes:
        measure(options.profile)
    for scale in map(int, options.scales.split(",")):
        if options.processes:
            how = options.repeats, options.profile, options.way
            rows += [in_processes(scale, count, *how) for count in counts]
        else:
            rows += on_one_device(scale, counts, options.repeats)
        if options.profile:
            print(*(row.spent for row in rows[-len(counts) :]), sep="\n", flush=True)
    cells = [row.cells for row in rows]
    print(markdown(HEAD, cells))
    return cells


def on_one_device(scale: int, counts: Sequence[int], repeats: int) -> list[Row]:
    """Peel with all shards in this process."""
    subgraph, pool, rows = made(scale), cupy.get_default_memory_pool(), []
    alone, known = timed_alone(subgraph, repeats)
    for count in counts:
        edges = assigned(subgraph, count, range(count))
        pool.free_all_blocks()
        passes = [sample(edges) for _ in range(repeats + 1)]
        compare(subgraph, edges, passes[-1][1], known)
        rows.append(Row(scale, edges[0], median(taken for taken, _ in passes[1:]), alone, passes[-1][1]))
    return rows
