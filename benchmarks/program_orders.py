"""Both orders of supersteps: exchanges, entries read and seconds, for programs for which the order does not matter.

    python -m benchmarks program_orders --graphs cnr-2000,grid300,rmat16 --groups 1,4,16

The graph is in memory, in groups of ranges of vertices with about equally many edges, each in a thread of this process.
So an exchange costs little here: the counts are the result, and seconds are for orientation. `bfs` and `distances` (the
smallest sums of weights from 1 to 255, near vertices first) start from the vertex with the most edges. `components`
spreads labels within a group in both orders. Both orders must give the same bits.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from benchmarks.common.graphs import WrongAnswer, graph
from benchmarks.common.table import markdown, millions, seconds
from benchmarks.programs import block_of, weighted
from edgemill.kernels import row_numbers
from edgemill.tasks.partition import RangePartitioner
from edgemill.tasks.programs import (
    Entries,
    GraphBlock,
    Order,
    Program,
    ProgramOutcome,
    Vertices,
    cut_blocks,
    run_blocks,
)
from edgemill.tasks.programs.shipped.bfs import BreadthFirst
from edgemill.tasks.programs.shipped.components import Components
from edgemill.tasks.programs.shipped.coreness import Coreness
from edgemill.tasks.shards import MemoryCarrier

GRAPHS = "cnr-2000,uk-2007-05_100000,ego-Twitter_combined,grid300,rmat16"


@dataclass(frozen=True)
class Distances(Program):
    """The smallest sum of weights on a path from a vertex."""

    source: int = 0

    state: ClassVar = {"distance": "float64"}
    combine = "min"
    along = "add"
    senders = "changed"
    monotone = True

    def start(self, v: Vertices) -> Any:
        """Only the source is reached."""
        here = v.number == self.source
        return {"distance": np.where(here, 0.0, np.inf)}, here

    def emit(self, v: Vertices) -> Any:
        """The distance to the vertex."""
        return v.distance

    def apply(self, v: Vertices, got: Any, t: Any) -> Any:
        """The smaller distance."""
        return {"distance": np.minimum(got, v.distance)}, got < v.distance

    def priority(self, v: Vertices) -> Any:
        """Near vertices first."""
        return v.distance


PROGRAMS: Mapping[str, Callable[[int], Program]] = {
    "bfs": BreadthFirst,
    "distances": Distances,
    "components": lambda _: Components(),
    "coreness": lambda _: Coreness(),
}


@dataclass(frozen=True)
class OrderCounts:
    """One run."""

    exchanges: int
    entries: int
    """Read by all groups."""
    most_entries: int
    """Read by the group that read most."""
    seconds: float
    order: str
    state: Mapping[str, bytes]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    parser.add_argument("--graphs", default=GRAPHS, help="names, with commas between")
    parser.add_argument("--programs", default=",".join(PROGRAMS), help="names, with commas between")
    parser.add_argument("--groups", default="1,4,16", help="numbers of groups, with commas between")


HEAD = (
    *("graph", "entries, M", "program", "groups", "exchanges in step", "alone", "auto", "order of auto"),
    *("entries read in step, M", "alone, M", "auto, M", "seconds in step", "alone, s", "auto, s"),
)
KEYS = ("graph", "program", "groups")
"""Columns that identify a row in the record."""
RECORDED = ("exchanges in step", "alone", "entries read in step, M", "alone, M")
"""Columns whose figures are recorded."""


def blocks_of(whole: GraphBlock, groups: int) -> tuple[RangePartitioner, list[GraphBlock]]:
    """The graph in groups of ranges of vertices that have about equally many entries."""
    target = row_numbers(whole.rows.offsets)
    cuts = np.searchsorted(whole.rows.offsets, np.arange(1, groups) * len(whole) // groups)
    home = RangePartitioner(np.maximum.accumulate(cuts).astype(np.int64))
    once = whole.rows.source < target  # an edge has an entry for each end, and there are no loops
    weight = None if whole.rows.weight is None else whole.rows.weight[once]
    edges = Entries(whole.rows.source[once], target[once], weight)
    return home, cut_blocks(edges, len(whole.number), home, False, "both")


def run(
    program: Program, home: RangePartitioner, blocks: Sequence[GraphBlock], threads: int, order: Order
) -> OrderCounts:
    """Run a program once."""
    own = [replace(block, view=program.view) for block in blocks]
    start = time.perf_counter()
    found: list[ProgramOutcome] = run_blocks(
        program, own, home, MemoryCarrier.open(len(own)), threads=threads, order=order
    )
    taken = time.perf_counter() - start
    state = {name: b"".join(one.state[name].tobytes() for one in found) for name in program.state}
    read = [one.entries for one in found]
    return OrderCounts(found[0].exchanges, sum(read), max(read), taken, found[0].order, state)


def report(options: argparse.Namespace) -> list[list[str]]:
    """Measure and print; returns the rows of the table."""
    names = options.programs.split(",")
    if unknown := [name for name in names if name not in PROGRAMS]:
        raise LookupError(f"no program {', '.join(unknown)}; there are {', '.join(PROGRAMS)}")
    rows = []
    for name in options.graphs.split(","):
        whole = weighted(block_of(graph(name, options.cache).path))
        for groups in map(int, options.groups.split(",")):
            home, blocks = blocks_of(whole, groups)
            rows += [measure(name, one, whole, groups, home, blocks, options.threads) for one in names]
            print(markdown(HEAD, rows[-len(names) :]), flush=True)
    print(f"\nOrders of supersteps, {options.threads} threads:\n")
    print(markdown(HEAD, rows))
    return rows


def measure(
    graph: str,
    name: str,
    whole: GraphBlock,
    groups: int,
    home: RangePartitioner,
    blocks: Sequence[GraphBlock],
    threads: int,
) -> list[str]:
    """A line of the table. Raises WrongAnswer if the orders differ."""
    program = PROGRAMS[name](int(np.diff(whole.rows.offsets).argmax()))
    own = blocks if program.along else [replace(one, rows=replace(one.rows, weight=None)) for one in blocks]
    in_step, alone, auto = (
        run(program, home, own, threads, order) for order in ("synchronous", "asynchronous", "auto")
    )
    if not in_step.state == alone.state == auto.state:
        raise WrongAnswer(f"{graph}: {name} differs with {groups} groups")
    runs = (in_step, alone, auto)
    return [
        *(graph, millions(len(whole)), name, str(groups)),
        *(str(one.exchanges) for one in runs),
        auto.order,
        *(millions(one.entries) for one in runs),
        *(seconds(one.seconds) for one in runs),
    ]
