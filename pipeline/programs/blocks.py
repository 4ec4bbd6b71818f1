"""The graph in blocks: ranges of ids with about equally many edges, one for each worker that has enough work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...tasks.ingest import range_cuts
from ...tasks.ingest.degrees import BucketDegrees
from ...tasks.partition import RangePartitioner
from ...tasks.programs import Block, Entries, delivery
from ...tasks.programs.program import View
from ...tasks.programs.streaming import collect_block_in_pieces
from ..cluster.engine import Engine, Future
from ..plan.limits import program_blocks
from ..stages.exchange import exchange, send
from ..stages.ingesting import Buckets
from .files import file_allocator, task_bytes


@dataclass(frozen=True)
class GraphBlocks:
    """The graph in blocks."""

    view: View
    weighted: bool
    home: RangePartitioner
    blocks: list[Future]
    """[groups] Block"""


def place_blocks(engine: Engine, buckets: Buckets, degrees: Sequence[Future]) -> RangePartitioner:
    """Ranges of ids with about equally many edges, one for each worker that has enough work."""
    entries = engine.peek(degrees, _sum)
    groups = program_blocks(engine.refresh_workers(), sum(entries))
    targets = range_cuts.cut_targets(entries, groups)
    starts = buckets.starts.tolist()
    cuts = engine.map("cuts", _cuts, [(own, starts[b], targets[b]) for b, own in enumerate(degrees)])
    return range_cuts.range_partitioner(engine.gather(cuts))


def cut_graph(
    engine: Engine, buckets: Buckets, home: RangePartitioner, directed: bool, view: View, weighted: bool
) -> GraphBlocks:
    """A block for each of these range_cuts."""
    groups, room = home.partitions, task_bytes(engine)
    engine = engine.for_tasks(groups)
    own = [(edges, home, view, weighted) for edges in buckets.edges]
    sent = send(engine, "send-entries", "entries", delivery.send_entries, own)
    arguments = [(room, g, int(buckets.starts[-1]), home, directed, view, weighted) for g in range(groups)]
    blocks = exchange(engine, "entries", sent, _collect, arguments, list(range(groups)))
    engine.wait(blocks)
    return GraphBlocks(view, weighted, home, blocks)


def _collect(
    room: int | None,
    group: int,
    vertices: int,
    home: RangePartitioner,
    directed: bool,
    view: View,
    weighted: bool,
    parts: Mapping[int, Entries],
) -> Block:
    """Task: the block of a group; in pieces, if there is only `room` for some of its entries."""
    what = group, vertices, home, directed, view, weighted, parts
    with file_allocator(room) as allocator:
        if room is None or allocator is None:
            return delivery.collect_block(*what)
        return collect_block_in_pieces(*what, allocator=allocator, most_bytes=room)


def _sum(degrees: BucketDegrees) -> int:
    return int(degrees.degree.sum())


def _cuts(degrees: BucketDegrees, first: int, targets: NDArray[np.int64]) -> NDArray[np.int64]:
    return range_cuts.cuts_within(degrees.degree, first, targets)
