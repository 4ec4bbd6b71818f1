"""The graph in blocks: ranges of ids with about equal work, one for each worker that has enough work.

Where the entries of blocks do not fit memory, they are in files of the workers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...tasks import partition
from ...tasks.ingest.degrees import BucketDegrees
from ...tasks.partition import RangePartitioner
from ...tasks.programs import Entries, GraphBlock, delivery
from ...tasks.programs.program import View
from ...tasks.programs.streaming import collect_block_in_pieces, place_entries
from ...tasks.shards import FileAllocator
from ..cluster.engine import Engine, Future
from ..cluster.this_worker import scratch_folder
from ..stages.exchange import exchange, send
from ..stages.ingesting import Buckets
from ..stages.limits import FILL, SHARE_OF_PIECES, program_blocks


def task_bytes(engine: Engine) -> int | None:
    """Bytes of entries that a task of programs has in memory, if workers keep results in files; else None."""
    capacity = engine.capacity
    if not engine.execution.results_in_files or not capacity.memory_bytes:
        return None
    return int(FILL * capacity.memory_bytes * SHARE_OF_PIECES)


@contextmanager
def file_allocator(resident: int | None, blocks: Sequence[GraphBlock] = ()) -> Iterator[FileAllocator | None]:
    """Context with an allocator of arrays in files of the worker. About `resident` bytes of them, and of the entries of
    `blocks`, stay in memory; None without a limit.
    """
    if resident is None:
        yield None
        return
    with FileAllocator(scratch_folder(), resident) as allocator:
        for block in blocks:
            allocator.watch(block.rows.source)
            if block.rows.weight is not None:
                allocator.watch(block.rows.weight)
        yield allocator


VERTEX_WORK = 4
"""A superstep of PageRank takes as long for a vertex as for so many entries: 45 and 11 ps (NVIDIA H200, R-MAT 26)."""


@dataclass(frozen=True)
class GraphBlocks:
    """The graph in blocks."""

    view: View
    weighted: bool
    home: RangePartitioner
    blocks: list[Future]
    """[groups] GraphBlock"""
    by_support: bool = False
    """Whether the weights are the supports of edges."""


def place_blocks(engine: Engine, buckets: Buckets, degrees: Sequence[Future]) -> RangePartitioner:
    """Ranges of ids with about equal work, one for each worker that has enough work."""
    sizes = engine.peek(degrees, _sizes)
    groups = program_blocks(engine.refresh_workers(), sum(entries for entries, _ in sizes))
    targets = partition.cut_targets([entries + VERTEX_WORK * vertices for entries, vertices in sizes], groups)
    starts = buckets.starts.tolist()
    cuts = engine.map("cuts", _cuts, [(own, starts[b], targets[b]) for b, own in enumerate(degrees)])
    return partition.range_partitioner(engine.gather(cuts))


def cut_graph(
    engine: Engine,
    buckets: Buckets,
    home: RangePartitioner,
    directed: bool,
    view: View,
    weighted: bool,
    on_gpus: bool = False,
    topology_bytes: int | None = None,
    supports: Sequence[Future] | None = None,
) -> GraphBlocks:
    """A block for each of these ranges, in host memory. `on_gpus`, the only block of an undirected graph is on the GPU
    if its entries fit there, in `topology_bytes` if given. `supports` [buckets] BucketResults have the weights of a
    `weighted` undirected graph, if given.
    """
    groups, room = home.partitions, task_bytes(engine)
    engine = engine.for_tasks(groups)
    mirrored = groups == 1 and room is None and not directed and supports is None
    of_buckets = [None] * len(buckets.edges) if supports is None else supports
    own = [
        (edges, home, view, weighted, mirrored, found) for edges, found in zip(buckets.edges, of_buckets, strict=True)
    ]
    sent = send(engine, "send-entries", "entries", delivery.send_entries, own)
    what = int(buckets.starts[-1]), home, directed, view, weighted
    arguments = [(room, on_gpus, topology_bytes, g, *what) for g in range(groups)]
    blocks = exchange(engine, "entries", sent, _collect, arguments, list(range(groups)))
    engine.wait(blocks)
    return GraphBlocks(view, weighted, home, blocks, supports is not None)


def _collect(
    room: int | None,
    on_gpu: bool,
    topology_bytes: int | None,
    group: int,
    vertices: int,
    home: RangePartitioner,
    directed: bool,
    view: View,
    weighted: bool,
    parts: Mapping[int, Entries],
) -> GraphBlock:
    """Task: the block of a group; in pieces, if there is only `room` for some of its entries."""
    what = group, vertices, home, directed, view, weighted
    with file_allocator(room) as allocator:
        if room is None or allocator is None:
            parts = place_entries(parts, vertices, weighted, on_gpu, topology_bytes)
            return delivery.collect_block(*what, parts)
        return collect_block_in_pieces(*what, parts, allocator=allocator, most_bytes=room)


def _sizes(degrees: BucketDegrees) -> tuple[int, int]:
    return int(degrees.degree.sum()), len(degrees.degree)


def _cuts(degrees: BucketDegrees, first: int, targets: NDArray[np.int64]) -> NDArray[np.int64]:
    return partition.cuts_within(degrees.degree + VERTEX_WORK, first, targets)
