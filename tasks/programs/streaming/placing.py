"""Where the arrays of a block lie while a program runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ....kernels import chunked
from ....kernels import programs as gathers
from ....kernels.graph import InRows
from ....kernels.runtime.device import free_bytes
from ....kernels.runtime.sizes import NUMPY_ALLOCATOR, Allocator
from ...device import MemorySpace, move_arrays
from ..block import Block, Entries
from ..program import Program

VERTEX_BYTES = 128
"""GPU memory of an own vertex: its row, numbers and degrees, and the state and scratch arrays of a program."""
FILL = 0.9
"""Share of the free GPU memory that blocks may take."""
TRANSPOSING_BYTES = 24
"""Scratch of an entry without a weight while rows are transposed on the GPU."""
BUILD_BYTES = 56
"""GPU memory of an edge, with that of its rows, while rows of both directions are built on the GPU."""
WEIGHTED_BUILD_BYTES = 104
"""The same with weights."""
LINKS_BYTES = 40
"""Scratch of an entry while links are counted on the GPU."""


def entry_bytes(rows: InRows) -> int:
    """Bytes of an entry."""
    return 4 if rows.weight is None else 12


def topology_bytes(program: Program, block: Block) -> int:
    """GPU memory of the entries of a block while the program runs, with the scratch of its preparation."""
    entry = entry_bytes(block.rows)
    if program.combine == "links":
        entry += LINKS_BYTES
    elif not block.symmetric and (program.senders == "changed" or program.weighs):
        entry += entry + TRANSPOSING_BYTES
    return entry * len(block)


def share_of_room(blocks: Sequence[Block], space: MemorySpace, most_bytes: int | None = None) -> int | None:
    """The GPU memory for the entries of each of several blocks in one process: of `most_bytes`, or of what is free."""
    if space is MemorySpace.HOST:
        return None
    if most_bytes is None:
        own = sum(len(block.number) for block in blocks)
        most_bytes = max(0, int(FILL * free_bytes()) - VERTEX_BYTES * own)
    return most_bytes // len(blocks)


def place_entries(
    parts: Mapping[int, Entries], vertices: int, weighted: bool, on_gpu: bool, most_bytes: int | None
) -> dict[int, Entries]:
    """Mirrored entries where their block is built: on the GPU, if there is one, and all arrays fit there while it is
    built, and the entries of the block `most_bytes`. Other entries stay in host memory.
    """
    edges = sum(len(part) for part in parts.values())
    space = MemorySpace.HOST
    if on_gpu and all(part.mirrored for part in parts.values()):
        built = (WEIGHTED_BUILD_BYTES if weighted else BUILD_BYTES) * edges + VERTEX_BYTES * vertices
        kept = 2 * edges * (12 if weighted else 4)
        if built <= FILL * free_bytes() and (most_bytes is None or kept <= most_bytes):
            space = MemorySpace.DEVICE
    return {sender: move_arrays(part, space) for sender, part in parts.items()}


def place_block(
    program: Program,
    block: Block,
    space: MemorySpace,
    most_bytes: int | None = None,
    allocator: Allocator | None = None,
) -> Block:
    """The block with its arrays in `space`. On a GPU at most about `most_bytes` hold entries, or as many as are free.

    Entries of which more are needed stay in pinned host memory and are streamed. A program that counts links runs on
    the CPU then, since it holds arrays of edges. Entries that lie in mapped files stay there, and are read in sequence;
    rows by source are then from the `allocator`.
    """
    if isinstance(block.rows, chunked.ChunkedRows):
        return block
    if block.on_device:  # built there, with room for the entries alone
        links = program.combine == "links" and LINKS_BYTES * len(block) > FILL * free_bytes()
        return block.placed(MemorySpace.HOST) if links or space is MemorySpace.HOST else block
    if space is MemorySpace.HOST:
        if not chunked.is_mapped(block.rows):
            return block
        return replace(block, rows=chunked.rows_in_files(block.rows, allocator=allocator or NUMPY_ALLOCATOR))
    room = share_of_room([block], space, most_bytes) or 0
    if topology_bytes(program, block) <= room:
        return block.placed(space)
    if program.combine == "links":
        return place_block(program, block, MemorySpace.HOST, None, allocator)
    return replace(move_arrays(block, space), rows=gathers.stream_rows(block.rows, room))
