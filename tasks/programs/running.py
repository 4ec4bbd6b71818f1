"""What every group runs, in step with the other groups: a program in an order of supersteps.

A program on a graph in one block needs no order if it has compiled functions for that (`find_at_once`): it then runs
from start to end in these, or in few launches. Only programs of edgemill have such functions. They give the same bits
as their supersteps. A `GraphProgram` has nothing else, and always one block.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from ...kernels import programs as gathers
from ...kernels.chunked import ChunkedRows
from ...kernels.graph import InRows
from ...kernels.runtime.device import free_bytes, to_host
from ...kernels.runtime.sizes import Allocator, SizedArrays
from ..device import MemorySpace
from ..errors import InternalError, OutOfRoom
from ..partition import Partitioner
from ..shards.carriers.carrier import Carrier
from ..shards.carriers.gpu_memory import between_gpus
from .block import GraphBlock, PairTable
from .orders.asynchronous import run_to_silence
from .orders.calls import is_shipped, name_of
from .orders.state import BlockState, check_weights
from .orders.synchronous import Limits, facts_of, run_in_step
from .program import Array, Found, GraphProgram, GroupsBefore, OneBlockGraph, PairRows, Program, level_names
from .streaming import FILL, place_block

ENTRY_SECONDS = 1e-7
"""An upper bound of the time for an entry in one thread. Breadth-first search and shortest paths took 2 to 20 ns."""


def find_at_once(
    program: Program, block: GraphBlock, home: Partitioner, carrier: Carrier, seconds: float | None
) -> Found | None:
    """The result of a program on a graph in one block, by its compiled functions (`Program.at_once`).

    None if the program must run supersteps: it has no such function for this block, or the function might take more
    than `seconds`. Raises ProgramError if the program needs weights that the edges do not have.
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
    found = program.at_once(_graph_of(block, rows))
    if found is not None and streamed is not None:
        streamed.feed.bytes_direct += streamed.entry_bytes * found.entries
    if found is None or found.then is None:
        return found
    run = BlockState(found.then, block, home, carrier, found.state)
    run_in_step(run, Limits())
    return Found(run.state, found.steps + run.all_steps, found.entries + run.entries)


def _graph_of(block: GraphBlock, rows: InRows) -> OneBlockGraph:
    def out() -> InRows:
        return rows if block.symmetric else gathers.transpose_rows(rows, len(block.sources))

    return OneBlockGraph(block.number, rows, out, block.symmetric, lambda: facts_of(block))


def _run_on_graph(
    program: GraphProgram, block: GraphBlock, space: MemorySpace, carrier: Carrier, before: ProgramOutcome | None
) -> ProgramOutcome:
    if carrier.groups > 1:
        raise InternalError(f"{name_of(program)} needs one block, and there are {carrier.groups}")
    here = block.placed(space if _fits_gpu(program, block, space) else MemorySpace.HOST)
    if isinstance(here.rows, ChunkedRows):
        raise OutOfRoom(f"{name_of(program)} needs all edges in the memory of one worker, which has no room for them")
    check_weights(program, here)
    number = to_host(here.number)
    graph = replace(_graph_of(here, here.rows), number=number)
    if before is not None:
        graph = replace(graph, before=_groups_before(before))
    found = program.at_once(graph)
    levels = len(found.levels)
    state = dict(found.state) | dict(zip(level_names(levels), found.levels, strict=True))
    return ProgramOutcome(
        block.group,
        number,
        state,
        found.steps,
        True,
        found.moved,
        found.entries,
        bytes=0,
        facts=found.facts,
        levels=levels,
        similar=found.similar,
    )


def _fits_gpu(program: GraphProgram, block: GraphBlock, space: MemorySpace) -> bool:
    """Whether the program runs on the GPU, if `space` is the memory of one."""
    if space is MemorySpace.HOST or isinstance(block.rows, ChunkedRows):
        return False
    needed = program.device_bytes(len(block.rows), block.rows.rows)
    return needed is not None and needed <= FILL * free_bytes()


def _groups_before(outcome: ProgramOutcome) -> GroupsBefore:
    levels = [outcome.state[name] for name in level_names(outcome.levels)]
    alone = np.arange(len(outcome)) + 1 + max((int(own.max(initial=0)) for own in levels), default=0)
    numbered = (np.unique(np.where(own < 0, alone, own), return_inverse=True)[1] for own in levels)
    return GroupsBefore(levels[0], tuple(own.astype(np.int32) for own in numbered), outcome.facts)


Order: TypeAlias = Literal["auto", "synchronous", "asynchronous"]

EXCHANGE_ENTRIES = {"memory": 5e4, "shared memory": 2e5, "nccl": 2e5}
"""The entries that a group reads in the time of one exchange, by the name of the carrier."""
DASK_EXCHANGE_ENTRIES = 5e6
"""The same for exchanges over Dask's connections, between hosts."""


@dataclass(frozen=True)
class Pending(SizedArrays):
    """What a program that a limit stopped needs besides its state to go on."""

    rows: Array
    """[changed] own vertices that send next, int32, ascending; empty for programs in which all vertices send."""
    moved: Array
    """How much the vertices of the last superstep changed, or whether."""
    state: dict[str, Array] | None = None
    """[own] arrays by name; None if they are the arrays of the outcome. They differ if a program of `Program.then` has
    run since.
    """

    def placed(self, space: MemorySpace) -> Pending:
        """The same with its arrays in `space`."""
        state = self.state and {name: space.place(values) for name, values in self.state.items()}
        return Pending(space.place(self.rows), space.place(self.moved), state)


@dataclass(frozen=True)
class ProgramOutcome(SizedArrays):
    """The result of a program for the vertices of one group. `len()` is the number of vertices."""

    group: int

    number: Array
    """[own] dense numbers of the vertices."""

    state: dict[str, Array]
    """[own] arrays by name, with the types of `Program.state`."""

    steps: int
    """Number of supersteps."""

    converged: bool
    """Whether the program ended by itself; false if a limit stopped it."""

    moved: float
    """The total change of all vertices in the last superstep, or the number of changed vertices."""

    entries: int
    """Entries of rows that this group read."""

    bytes: int
    """Bytes that this group sent."""

    facts: Mapping[str, Any] = field(default_factory=dict)
    """Facts of the whole graph by name, JSON values; of programs that search from many sources."""

    exchanges: int = 0
    """Exchanges within supersteps."""

    order: str = "synchronous"
    """The order in which the program ended."""

    received: int = 0
    """Bytes that this group received."""

    pairs: PairTable | None = None
    """Distances to own vertices (rows) from the sources (columns), of a program that keeps them."""

    similar: PairRows | None = None
    """Pairs, of a program that `finds_similar`."""

    pending: Pending | None = None
    """What `run_program` needs to go on; None if the program has ended, or has to begin anew."""

    levels: int = 0
    """Number of the arrays of `Found.levels` in the state."""

    def __len__(self) -> int:
        return len(self.number)

    def placed(self, space: MemorySpace) -> ProgramOutcome:
        """The outcome with its arrays in `space`."""
        state = {name: space.place(values) for name, values in self.state.items()}
        pending = self.pending and self.pending.placed(space)
        return replace(self, number=space.place(self.number), state=state, pending=pending)


def run_program(
    program: Program,
    block: GraphBlock,
    home: Partitioner,
    carrier: Carrier,
    *,
    space: MemorySpace = MemorySpace.HOST,
    most_steps: int | None = None,
    seconds: float | None = None,
    progress: Callable[[int, float], None] | None = None,
    order: Order = "synchronous",
    before: ProgramOutcome | None = None,
    topology_bytes: int | None = None,
    allocator: Allocator | None = None,
) -> ProgramOutcome:
    """Run a program on the block of one group. All groups must call this with the same program, limits and order.

    `home` maps vertices to groups. The block is copied to `space`, where the program runs and the outcome lies, and
    from where values go to other groups (see `between_gpus`). A program that `alternates` runs in host memory.
    On a GPU, `topology_bytes` limits the memory that holds entries, see
    `place_block`; by default it is the memory that is free. Entries in mapped files stay there, and `allocator`
    has arrays of entries that are made from them. After `most_steps` supersteps, or when `seconds` have
    passed at any group, all groups stop after the same superstep; the result is not converged unless the program had
    ended. Calls `progress(supersteps, moved)` after each superstep. Programs without a `relaxed` form run in the
    synchronous order whatever `order` is. With `before`, a `pending` outcome of this group, the program goes on from
    there. Raises ClusterLost if another group is lost, and ProgramError for an error of the program.
    """
    stop = None if seconds is None else time.monotonic() + seconds
    with abandoning(carrier), ExitStack() as stack:
        if isinstance(program, GraphProgram):
            held = MemorySpace.HOST if topology_bytes is not None and not block.on_device else space
            return _run_on_graph(program, block, held, carrier, before)
        if program.alternates:
            block = block.placed(MemorySpace.HOST)
        else:
            if space is MemorySpace.DEVICE:
                carrier = stack.enter_context(between_gpus(carrier))
            block = place_block(program, block, space, topology_bytes, allocator)
        exchange_entries = _exchange_entries(program, carrier, order)
        if before is None and most_steps is None and exchange_entries is None:
            found = find_at_once(program, block, home, carrier, seconds) if carrier.groups == 1 else None
            if found is not None:
                if progress is not None:
                    progress(found.steps, found.moved)
                state = dict(found.state)
                return ProgramOutcome(
                    block.group, block.number, state, found.steps, True, found.moved, found.entries, bytes=0
                )
        run = BlockState(program, block, home, carrier)
        if before is not None and before.pending is not None:
            _go_on(run, before.placed(MemorySpace.DEVICE if block.on_device else MemorySpace.HOST))
        limits = Limits(most_steps, stop, progress, exchange_entries)
        ending, moved = run_in_step(run, limits)
        relaxed, ran = run.program.relaxed, "synchronous"
        if ending == "switched" and relaxed is not None:
            if relaxed is not run.program:
                run.continue_with(relaxed)
            ran = "asynchronous"
            ending, moved = run_to_silence(run, limits)
        pending = None if ending == "ended" or run.program is not program else _pending(run, ran)
        steps = run.all_steps
        while (then := run.program.then) is not None:
            run.continue_with(then)
            run_in_step(run, Limits())
        return ProgramOutcome(
            block.group,
            block.number,
            run.state,
            run.all_steps if ending == "ended" else steps,
            ending == "ended",
            moved,
            run.entries,
            4 * run.words,
            exchanges=run.exchanges,
            order=ran,
            received=4 * run.words_received,
            pending=pending,
        )


def can_pause(program: Program, order: Order = "synchronous") -> bool:
    """Whether an outcome of the program, if a limit stops it, is `pending`."""
    if isinstance(program, GraphProgram):
        return False
    return order == "synchronous" or program.relaxed is None or program.relaxed is program


def _pending(run: BlockState, order: str) -> Pending:
    state = None if run.program.then is None else {name: values.copy() for name, values in run.state.items()}
    if run.program.senders == "all":
        return Pending(run.rows, run.moved, state)
    everyone = np.arange(len(run.block.number), dtype=np.int32, like=run.block.number)
    if order == "asynchronous":  # the vertices that changed and did not send are not known
        return Pending(everyone, np.ones_like(everyone, np.bool_), state)
    # Modes and h-indices also need the values of the others, which a new gatherer does not have.
    return Pending(everyone if run.program.combine in ("mode", "hindex") else run.rows, run.moved, state)


def _go_on(run: BlockState, before: ProgramOutcome) -> None:
    assert before.pending is not None
    run.resume(before.pending.state or before.state, before.pending.rows, before.pending.moved, before.steps)
    run.entries_before, run.exchanges = before.entries, before.exchanges
    run.mirrors.words += before.bytes // 4
    run.mirrors.words_received += before.received // 4


def _exchange_entries(program: Program, carrier: Carrier, order: Order) -> float | None:
    """See `Limits`."""
    if program.relaxed is None or order == "synchronous" or (order == "auto" and carrier.groups == 1):
        return None
    return math.inf if order == "asynchronous" else EXCHANGE_ENTRIES.get(carrier.name, DASK_EXCHANGE_ENTRIES)


@contextmanager
def abandoning(carrier: Carrier) -> Iterator[None]:
    """Make the other groups fail if this one fails."""
    try:
        yield
    except BaseException:
        carrier.abandon()
        raise
