"""No order at all: a program on a graph in one block, from start to end in compiled functions, or in few launches.

On 16 cores, supersteps of breadth-first search on R-MAT 20 took 17 times as long as GAP's code, and of components 9
times: nearly all of that was between kernels. Only programs of edgemill have such functions, and those for one block
give the same bits as their supersteps.
"""

from __future__ import annotations

from ....kernels import programs as gathers
from ....kernels.chunked import ChunkedRows
from ....kernels.graph import InRows
from ...partition import Partitioner
from ...shards.carriers.carrier import Carrier
from ..block import Block
from ..program import Found, Program, WholeGraph
from .calls import is_shipped
from .state import BlockState, check_weights
from .synchronous import Limits, run_in_step
from .windows import facts_of

ENTRY_SECONDS = 1e-7
"""The most time of an entry in one thread; 2 to 20 ns were measured, in breadth-first search and shortest paths."""


def find_at_once(
    program: Program, block: Block, home: Partitioner, carrier: Carrier, seconds: float | None
) -> Found | None:
    """The result of a program whose only group has the block; None if it has to run supersteps, also because it may
    take more than `seconds`. Raises ProgramError if it needs weights that the edges do not have.
    """
    if not is_shipped(program) or (block.on_device and not program.at_once_on_gpus):
        return None
    rows, streamed = block.rows, block.rows if isinstance(block.rows, ChunkedRows) else None
    if streamed is not None:
        if not (block.on_device and block.symmetric and program.at_once_in_place):
            return None
        rows = streamed.in_place()
    if seconds is not None and seconds < ENTRY_SECONDS * len(block):
        return None
    check_weights(program, block)

    def out() -> InRows:
        return rows if block.symmetric else gathers.transpose_rows(rows, len(block.sources))

    found = program.at_once(WholeGraph(block.number, rows, out, block.symmetric, lambda: facts_of(block)))
    if found is not None and streamed is not None:
        streamed.feed.bytes_direct += streamed.entry_bytes * found.entries
    if found is None or found.then is None:
        return found
    run = BlockState(found.then, block, home, carrier, found.state)
    run_in_step(run, Limits())
    return Found(run.state, found.steps + run.all_steps, found.entries + run.entries)
