"""Supports by shards on one GPU, each shard after the other: the slowest tells how long as many GPUs would take.

Edges lie in as many buckets as there are shards, scattered. Of each bucket and shard the slowest is told: sorting a
bucket's edges and sending them to shards; collecting those that a shard owns; counting the triangles of all edges that
pass by, in batches as in a run. What one partition takes to count its own is beside it. Medians of the repeats.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import cupy
import numpy as np

from benchmarks.gpu_graphs import rmat
from benchmarks.table import markdown, millions, seconds
from edgemill.kernels import to_device
from edgemill.kernels.gpu.rows import row_numbers
from edgemill.pipeline.sharding import batches_of
from edgemill.tasks.degrees import OrientedEdges
from edgemill.tasks.ingest import OwnedEdges
from edgemill.tasks.messages import collect
from edgemill.tasks.shards import streams, supports
from edgemill.tasks.shards.dealing import Dealing
from edgemill.tasks.shards.supports import ClosingEdges, Counted
from edgemill.tasks.triangulate import count_triangles

HEAD = ("scale", "edges, M", "shards", "bucket, s", "collect, s", "count, s", "of one shard", "one partition, s")


def timed(function: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    """Seconds until the device is done, and the result."""
    cupy.cuda.Device().synchronize()
    start = time.perf_counter()
    found = function(*arguments)
    cupy.cuda.Device().synchronize()
    return time.perf_counter() - start, found


def scattered(owned: OwnedEdges, buckets: int) -> list[OrientedEdges]:
    """The edges in so many buckets."""
    low, high = row_numbers(owned.offsets), owned.high
    nothing = cupy.zeros(0, np.bool_)
    return [OrientedEdges(b, low[b::buckets].copy(), high[b::buckets].copy(), nothing) for b in range(buckets)]


def prepared(oriented: OrientedEdges, dealing: Dealing) -> tuple[Any, Any]:
    """What a bucket does."""
    found = streams.sort_edges(oriented)
    return found, streams.send_edges(found, dealing)


def counted(closing: ClosingEdges, found: Sequence[Any], batches: Sequence[Sequence[int]]) -> tuple[Counted, Any]:
    """What a shard does with all that passes by, and the sum of the supports that it found."""
    state, total = None, 0
    for batch in batches:
        state = supports.count_streams(closing, [found[b].stream for b in batch], state)
        total = total + state.partial.sum(dtype=np.int64)
    assert state is not None
    return state, int(total + state.sums.sum(dtype=np.int64))


def sample(owned: OwnedEdges, shards: int) -> tuple[float, float, float, int]:
    """One pass: seconds of the slowest bucket, of collecting and of counting of the slowest shard; and triangles."""
    dealing = Dealing.of(len(owned.rank), shards, shards)
    ready = [timed(prepared, own, dealing) for own in scattered(owned, shards)]
    found, sent = [own[0] for _, own in ready], [own[1] for _, own in ready]
    batches = batches_of(list(map(len, found)), shards)
    collecting, counting, triangles = [], [], 0
    for group in range(shards):
        taken, closing = timed(supports.collect_closing, group, dealing, to_device, collect(group, sent))
        collecting.append(taken)
        taken, (state, total) = timed(counted, closing, found, batches)
        counting.append(taken)
        if total != 3 * state.triangles:
            raise ValueError(f"shard {group} of {shards} found {state.triangles} triangles, and supports of {total}")
        triangles += state.triangles
    return max(taken for taken, _ in ready), max(collecting), max(counting), triangles


def rows(scale: int, counts: Sequence[int], repeats: int) -> list[list[str]]:
    """Lines of the table. Raises ValueError where shards and one partition differ in the triangles."""
    owned, pool = rmat(scale), cupy.get_default_memory_pool()
    alone = [timed(count_triangles, owned, {}) for _ in range(repeats + 1)]
    known, first, lines = int(alone[-1][1].support.sum(dtype=np.int64)) // 3, 0.0, []
    one = median(taken for taken, _ in alone[1:])
    del alone
    for count in counts:
        pool.free_all_blocks()
        passes = [sample(owned, count) for _ in range(repeats + 1)]
        if any(triangles != known for *_, triangles in passes):
            raise ValueError(f"{count} shards found other triangles than the {known} of one partition")
        bucket, gathering, counting = (median(own[i] for own in passes[1:]) for i in range(3))
        first = first or counting
        times = [seconds(bucket), seconds(gathering), seconds(counting), f"{counting / first:.2f}", seconds(one)]
        lines.append([f"{scale}", millions(len(owned)), f"{count}", *times])
    return lines


def table(scales: Sequence[int], counts: Sequence[int], repeats: int) -> str:
    """The whole table."""
    return markdown(HEAD, [line for scale in scales for line in rows(scale, counts, repeats)])
