"""Run a program on a small graph, so that its kernels are compiled before its stage is timed."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np

from ...kernels.runtime.cache import compiling
from ...kernels.runtime.threads import kernel_threads
from ..device import MemorySpace, move_arrays
from ..partition import RangePartitioner
from ..shards.carriers.carrier import MemoryCarrier
from .batches import SourceProgram
from .block import Entries, build_whole_block
from .local_runs import AnyProgram, cut_blocks, run_blocks
from .orders.calls import Calls, takes_weights
from .program import EdgeProgram, GraphProgram, Program, State, Vertices
from .running import Order

_OURS = __name__.partition("tasks.")[0]
"""What the names of edgemill's modules begin with."""
_warmed: dict[str, int] = {}
"""Program and its way of running → supersteps, for the programs of edgemill that this process has run. Running all of
them takes a third of a second, which is more than a small graph takes.
"""
VERTICES = 600
"""Vertices of the graph. Enough that a superstep with few changed vertices pushes, and others pull."""


def warm_program(
    program: AnyProgram | EdgeProgram,
    space: MemorySpace = MemorySpace.HOST,
    *,
    blocks: int = 1,
    directed: bool = False,
    weighted: bool = False,
    order: Order = "synchronous",
    at_once: bool = False,
) -> int:
    """Run a program in `space`, in one block or two; one batch, if it searches from sources. Returns the number of
    supersteps. Then call `of_edges`, if the program has columns of edges. Supersteps are run one by one unless the
    program may run `at_once`.

    A program that can use weights gets some, if the edges of the run are `weighted`.
    The graph is a path with VERTICES vertices, and the vertex in its middle is joined to all that follow: from vertex
    0, a search changes one vertex in each superstep, and then half of all.

    One process of a machine compiles the kernels of a program of edgemill, and each of the others loads them once.
    Those of another program are not kept.
    """
    if isinstance(program, GraphProgram):
        space = MemorySpace.HOST if program.device_bytes(0, 0) is None else space
        blocks, order, at_once = 1, "synchronous", True
    how = space.name, blocks, directed, weighted, order, at_once
    kept = type(program).__module__.startswith(_OURS)
    part = f"program {' '.join(map(str, (type(program).__name__, *how)))}"
    once = f"{part} {program!r}"  # with its parameters, such as whether it reads weights
    if kept and once in _warmed:
        return _warmed[once]
    with compiling(part) if kept else nullcontext():
        steps = _call(program, space, blocks, directed, weighted, order, at_once)
    if kept:
        _warmed[once] = steps
    return steps


def _call(
    program: AnyProgram | EdgeProgram,
    space: MemorySpace,
    blocks: int,
    directed: bool,
    weighted: bool,
    order: Order,
    at_once: bool,
) -> int:
    number, middle = np.arange(VERTICES, dtype=np.int32), VERTICES // 2
    rest = number[middle + 2 :]
    source = np.concatenate((number[:-1], np.full_like(rest, middle)))
    target = np.concatenate((number[1:], rest))
    if isinstance(program, EdgeProgram):
        _call_of_edges(program, {})
        return 0
    weight = np.ones(len(source)) if takes_weights(program, weighted) else None
    most = 1 if isinstance(program, SourceProgram) else None if at_once else VERTICES
    if blocks == 1 and not directed:
        by = np.lexsort((target, source))
        edges = Entries(source[by], target[by], None if weight is None else weight[by], True)
        build_whole_block(VERTICES, [move_arrays(edges, space)], program.view)
    home = RangePartitioner(np.array([middle])) if blocks > 1 else RangePartitioner()
    made = cut_blocks(Entries(source, target, weight), VERTICES, home, directed, program.view)
    carriers = MemoryCarrier.open(len(made))
    with kernel_threads(1):
        (first, *_) = run_blocks(program, made, home, carriers, threads=1, space=space, most_steps=most, order=order)
    if isinstance(program, Program) and program.edges:
        state = first.placed(MemorySpace.HOST).state
        _call_of_edges(program, {name: np.resize(values, VERTICES) for name, values in state.items()})
    return first.steps


def _call_of_edges(program: Program | EdgeProgram, state: State) -> None:
    """For the edges of the path, as if none was in a triangle."""
    number = np.arange(VERTICES)
    arrays = {"number": number, "degree": np.full(VERTICES, 2), **state}
    low, high = (Vertices(arrays, VERTICES, 0, rows) for rows in (number[:-1], number[1:]))
    Calls(program).of_edges(low, high, np.zeros(VERTICES - 1, np.int32))
