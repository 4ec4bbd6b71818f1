"""λ by shards on the GPU: one shard, and several on one device, against the peeling of one partition.

    python -m benchmarks gpu_shards --scales 22,24 --shards 1,2,4 --repeats 3

R-MAT graphs, edge factor 16, as in `gpu`; supports are counted, and edges dealt to shards, outside the clock. Times are
those of peeling, rows and hash tables included; medians of the repeats, and kernels are compiled. λ of every edge is
compared. With --profile the kernel measures what a round is made of, on one thread of the first shard.
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from statistics import median
from typing import Any

import cupy
import numpy as np

from benchmarks.gpu_graphs import rmat
from benchmarks.table import markdown, millions, seconds
from edgemill.kernels.cpu.shards import Cut
from edgemill.kernels.gpu import shard_rows, shards, source
from edgemill.tasks.bound.peel import peel
from edgemill.tasks.shards.edges import ShardEdges
from edgemill.tasks.shards.on_gpu import ShardOnGpu, check_sums, open_shard_mailbox, peel_shards_on_gpu
from edgemill.tasks.subgraph import Subgraph, build_subgraph
from edgemill.tasks.triangulate import count_triangles

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
)
PARTS = ("look", "write", "meet", "take in", "remove")


def dealt(subgraph: Subgraph, count: int) -> list[ShardEdges]:
    """What each of so many shards stores."""
    low, high = (end.astype(np.uint32) for end in (subgraph.topology.low, subgraph.topology.high))
    support, vertices, found = subgraph.first_counts(), subgraph.topology.vertices, []
    for own in range(count):
        part = shard_rows.Part(vertices, count, own)
        mine = cupy.flatnonzero(shard_rows.owned(part, high) | shard_rows.owned(part, low))
        ends = low[mine], high[mine], support[mine]
        found.append(ShardEdges(own, count, Cut(vertices, count), *ends, edges=len(low)))
    return found


def sample(edges: list[ShardEdges]) -> tuple[float, list[ShardOnGpu]]:
    """One pass: seconds, and what was found."""
    cupy.cuda.Device().synchronize()
    start = time.perf_counter()
    mailboxes = [open_shard_mailbox(one) for one in edges]
    states = peel_shards_on_gpu(edges, mailboxes, [mailbox.address() for mailbox in mailboxes])
    cupy.cuda.Device().synchronize()
    return time.perf_counter() - start, states


def compare(subgraph: Subgraph, edges: list[ShardEdges], states: list[ShardOnGpu], known: Any) -> None:
    """Raises ValueError where λ differs."""
    check_sums(states)
    high = subgraph.topology.high.astype(np.uint32)
    for one, state in zip(edges, states, strict=True):
        mine = known[shard_rows.owned(shard_rows.Part(one.cut.vertices, one.groups, one.group), high)]
        if not bool((mine == state.low).all() & (mine == state.high).all()):
            raise ValueError(f"shard {one.group} of {one.groups} has another λ")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scales", default="20,22,24", help="R-MAT scales (20,22,24)")
    parser.add_argument("--shards", default="1,2,4", help="shards (1,2,4)")
    parser.add_argument("--repeats", type=int, default=3, help="passes (3)")
    parser.add_argument("--profile", action="store_true", help="measure the parts of a round")


def report(options: argparse.Namespace) -> None:
    if options.profile:
        shards.source.kernel = partial(source.kernel, PROFILE=1)  # type: ignore[assignment]
    print(cupy.cuda.runtime.getDeviceProperties(0)["name"].decode(), f"CuPy {cupy.__version__}")
    pool, lines = cupy.get_default_memory_pool(), []
    for scale in map(int, options.scales.split(",")):
        owned = rmat(scale)
        subgraph = build_subgraph(owned, count_triangles(owned, {}), 1, {})
        del owned
        alone, known = [], None
        for _ in range(options.repeats + 1):
            cupy.cuda.Device().synchronize()
            start = time.perf_counter()
            known = peel(subgraph).low
            cupy.cuda.Device().synchronize()
            alone.append(time.perf_counter() - start)
        one = median(alone[1:])
        print(f"scale {scale}: one partition {one:.3f} s", flush=True)
        for count in map(int, options.shards.split(",")):
            edges = dealt(subgraph, count)
            pool.free_all_blocks()
            passes = []
            for _ in range(options.repeats + 1):
                taken, states = sample(edges)
                passes.append(taken)
            compare(subgraph, edges, states, known)
            sums = [state.sums for state in states]
            triangles, messages = sum(s.triangles for s in sums), sum(s.sent for s in sums)
            taken = median(passes[1:])
            lines.append(
                [
                    f"{scale}",
                    millions(edges[0].edges),
                    f"{count}",
                    seconds(taken),
                    f"{taken / one:.2f}",
                    f"{states[0].exchanges}",
                    f"{states[0].rounds}",
                    f"{sum(s.entries for s in sums) / triangles:.2f}",
                    f"{messages / edges[0].edges:.2f}",
                ]
            )
            print(markdown(HEAD, lines[-1:]), flush=True)
            if options.profile:
                print({name: round(ns / 1e9, 4) for name, ns in zip(PARTS, sums[0].spent, strict=True)}, flush=True)
            del edges, states
        del subgraph, known
        pool.free_all_blocks()
    print(markdown(HEAD, lines))
