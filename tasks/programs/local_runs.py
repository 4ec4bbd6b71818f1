"""Run a program on a graph in memory: in several blocks with a thread each, or in one block."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

import numpy as np

from ...kernels.runtime.sizes import Allocator
from ...kernels.runtime.threads import kernel_threads, layer
from ..device import MemorySpace
from ..errors import ClusterLost
from ..ids import order
from ..partition import Partitioner, RangePartitioner
from ..shards.carriers.carrier import Carrier, MemoryCarrier
from ..shards.peeling import results_of
from .batches import Progress, SourceProgram, run_batches
from .block import Entries, GraphBlock, build_block, entries_of
from .program import Program, View
from .running import Order, ProgramOutcome, run_program
from .streaming import share_of_room

AnyProgram: TypeAlias = Program | SourceProgram
"""A program over supersteps, or over batches of sources."""


def cut_blocks(edges: Entries, vertices: int, home: Partitioner, directed: bool, view: View) -> list[GraphBlock]:
    """The blocks of a graph with the vertices 0 … vertices - 1, one for each partition of `home`.

    Edges of an undirected graph are given once each, in either direction. An edge that is given twice counts twice.
    """
    entries = entries_of(edges, directed, view)
    targets = home(entries.target)
    number = order.shifted(np.arange(vertices), 0, vertices)
    homes = home(number)
    return [
        build_block(g, home.partitions, vertices, number[homes == g], entries.at(targets == g), directed, view)
        for g in range(home.partitions)
    ]


def run_blocks(
    program: AnyProgram,
    blocks: Sequence[GraphBlock],
    home: Partitioner,
    carriers: Sequence[Carrier],
    *,
    threads: int,
    space: MemorySpace = MemorySpace.HOST,
    most_steps: int | None = None,
    seconds: float | None = None,
    order: Order = "synchronous",
    before: Sequence[ProgramOutcome | None] | None = None,
    progress: Progress | None = None,
    topology_bytes: int | None = None,
    allocator: Allocator | None = None,
) -> list[ProgramOutcome]:
    """Run a program on the blocks of one process, which share its `threads` or its GPU; see `run_program` and
    `run_batches`.

    `topology_bytes` is for all blocks together, and so is `allocator`. For a program over batches of sources,
    `most_steps` is a number of batches, and the first block calls `progress`. `before` [blocks] are outcomes from which
    a program over supersteps goes on. If blocks fail, raises the error of the block that failed first, not the errors
    of blocks that lost it.
    """
    before = [None] * len(blocks) if before is None else before
    if len(blocks) == 1:
        limits = most_steps, seconds, order, before[0], progress, topology_bytes, allocator
        return [_run(program, blocks[0], home, carriers[0], space, *limits)]
    if layer() == "workqueue":
        raise ClusterLost(
            f"a process has {len(blocks)} blocks, and Numba's threading layer runs one at a time: install libgomp "
            "(libgomp1), and run again"
        )
    share = max(1, threads // len(blocks))
    room = share_of_room(blocks, space, topology_bytes)

    def run(at: int) -> ProgramOutcome:
        with kernel_threads(share):
            told = None if at else progress
            limits = most_steps, seconds, order, before[at], told, room, allocator
            return _run(program, blocks[at], home, carriers[at], space, *limits)

    with ThreadPoolExecutor(len(blocks), "blocks") as pool:
        running = [pool.submit(run, at) for at in range(len(blocks))]
    return results_of(running)


def _run(
    program: AnyProgram,
    block: GraphBlock,
    home: Partitioner,
    carrier: Carrier,
    space: MemorySpace,
    most: int | None = None,
    seconds: float | None = None,
    order: Order = "synchronous",
    before: ProgramOutcome | None = None,
    progress: Progress | None = None,
    topology: int | None = None,
    allocator: Allocator | None = None,
) -> ProgramOutcome:
    """Batches of sources run on the CPU, whatever the space."""
    if isinstance(program, SourceProgram):
        here = block.placed(MemorySpace.HOST)
        return run_batches(program, here, home, carrier, most_batches=most, seconds=seconds, progress=progress)
    return run_program(
        program,
        block,
        home,
        carrier,
        space=space,
        most_steps=most,
        seconds=seconds,
        order=order,
        before=before,
        topology_bytes=topology,
        allocator=allocator,
    )


def run_in_one_block(
    program: AnyProgram,
    edges: Entries,
    vertices: int,
    directed: bool,
    *,
    space: MemorySpace = MemorySpace.HOST,
    most_steps: int | None = None,
) -> ProgramOutcome:
    """Run a program on a whole graph in one block, with the caller's threads or on its GPU.

    See `cut_blocks` and `run_program`.
    """
    home = RangePartitioner()
    blocks = cut_blocks(edges, vertices, home, directed, program.view)
    return _run(program, blocks[0], home, MemoryCarrier.open(1)[0], space, most_steps)
