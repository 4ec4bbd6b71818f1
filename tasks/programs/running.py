"""The loop of supersteps that every group runs, synchronised with the other groups.

Bulk-synchronous (Valiant, CACM 33(8), 1990; Malewicz et al., "Pregel", SIGMOD 2010). One exchange per superstep sends
values of vertices to the groups that have edges from them. All values for a vertex are combined in one group, in the
order of their sources, so results are bitwise equal for every partitioning.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...kernels.runtime.sizes import SizedArrays
from ..ids.order import Ints
from ..partition import Partitioner
from ..shards.carriers.carrier import Carrier
from .block import Block
from .gathering import GatherAll, GatherChanged, Gatherer
from .links import GatherLinks
from .mirrors import Mirrors
from .program import Array, Program, Totals, Vertices
from .spreading import GatherSpread
from .totals import Part, add_parts, part_of
from .words import json_to_words, words_to_json


@dataclass(frozen=True)
class Outcome(SizedArrays):
    """The result of a program for the vertices of one group. `len()` is the number of vertices."""

    group: int

    number: Ints
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

    def __len__(self) -> int:
        return len(self.number)


def run_program(
    program: Program,
    block: Block,
    home: Partitioner,
    carrier: Carrier,
    *,
    most_steps: int | None = None,
    seconds: float | None = None,
    progress: Callable[[int, float], None] | None = None,
) -> Outcome:
    """Run a program on the block of one group. All groups must call this with the same program and limits.

    `home` maps vertices to groups. After `most_steps` supersteps, or when `seconds` have passed at any group, all
    groups stop after the same superstep; the result is not converged unless the program had ended. Calls
    `progress(supersteps, moved)` after each superstep. Raises ClusterLost if another group is lost, and ValueError for
    a program whose arrays do not have one value per vertex.
    """
    stop = None if seconds is None else time.monotonic() + seconds
    with abandoning(carrier):
        return _Run(program, block, Mirrors(block, home, carrier)).run(most_steps, stop, progress)


@contextmanager
def abandoning(carrier: Carrier) -> Iterator[None]:
    """Make the other groups fail if this one fails."""
    try:
        yield
    except BaseException:
        carrier.abandon()
        raise


class _Run:
    """A program on one block."""

    def __init__(self, program: Program, block: Block, mirrors: Mirrors) -> None:
        self.program, self.block, self.mirrors = program, block, mirrors
        self.gatherer = _gatherer(program, block, mirrors)
        facts: dict[str, Array] = {
            "number": block.number,
            "in_degree": np.diff(block.rows.offsets),
            "out_degree": mirrors.out_degrees(self.gatherer.transposed),
        }
        if program.weighs:
            facts["out_weight"] = mirrors.out_weights(self.gatherer.transposed)
        self.facts = facts
        self.state: dict[str, Array] = {}
        state, moved = program.start(self._vertices(0))
        if set(state) != set(program.state):
            raise ValueError(f"{type(program).__name__}.start gives {sorted(state)}, not {sorted(program.state)}")
        self.state = {
            name: np.array(_checked(program, name, state[name], len(block.number)), kind)
            for name, kind in program.state.items()
        }
        self.moved = _checked(program, "moved", moved, len(block.number))
        self.rows = self._rows_of(self.moved)

    def run(self, most_steps: int | None, stop: float | None, progress: Callable[[int, float], None] | None) -> Outcome:
        """Run all supersteps."""
        program, step = self.program, 0
        while True:
            vertices = self._vertices(step)
            senders = vertices.at(self.rows) if program.senders == "changed" else vertices
            values = program.emit(senders)
            parts = {name: part_of(part) for name, part in program.totals(vertices).items()}
            late = stop is not None and time.monotonic() >= stop
            common = json_to_words([part_of(self.moved), parts, late])
            packets = self.mirrors.exchange(common, self.gatherer.packets(values, self.rows))
            received: list[tuple[Part, dict[str, Part], bool]] = [words_to_json(packet.common) for packet in packets]
            moved = add_parts([part for part, _, _ in received])
            if step and progress is not None:
                progress(step, moved)
            ended = step == program.steps or self._has_ended(step, moved)
            if ended or step == most_steps or any(late for _, _, late in received):
                return self._outcome(step, ended, moved)
            totals = Totals({name: add_parts([part[name] for _, part, _ in received]) for name in parts})
            rows, got = self.gatherer.gather(vertices, values, self.rows, packets)
            self._apply(vertices if rows is None else vertices.at(rows), rows, got, totals)
            step += 1

    def _has_ended(self, step: int, moved: float) -> bool:
        if self.program.senders == "changed":
            return moved == 0
        return step > 0 and self.program.converged(moved)

    def _apply(self, vertices: Vertices, rows: Array | None, got: object, totals: Totals) -> None:
        state, moved = self.program.apply(vertices, got, totals)
        count = len(self.block.number) if rows is None else len(rows)
        for name, kind in self.program.state.items():
            values = _checked(self.program, name, state[name], count)
            if rows is None:
                self.state[name] = values.astype(kind, copy=False)
            else:
                self.state[name][rows] = values
        self.moved = _checked(self.program, "moved", moved, count)
        self.rows = self._rows_of(self.moved) if rows is None else rows[self.moved]

    def _rows_of(self, moved: Array) -> Array:
        """Own vertices that changed, int32, ascending; empty for programs in which all vertices send."""
        if self.program.senders == "all":
            return np.empty(0, np.int32)
        return np.flatnonzero(moved).astype(np.int32)

    def _vertices(self, step: int) -> Vertices:
        return Vertices({**self.facts, **self.state}, self.block.vertices, step)

    def _outcome(self, step: int, converged: bool, moved: float) -> Outcome:
        return Outcome(
            self.block.group,
            self.block.number,
            self.state,
            step,
            converged,
            moved,
            self.gatherer.entries,
            4 * self.mirrors.words,
        )


def _gatherer(program: Program, block: Block, mirrors: Mirrors) -> Gatherer:
    """The gatherer for a program. Raises ValueError for attributes that cannot be combined."""
    name = type(program).__name__
    if program.along and (program.combine not in ("sum", "min", "max", "argmin") or block.rows.weight is None):
        raise ValueError(f"{name}.along is {program.along!r}, for combine {program.combine!r} or edges without weights")
    if program.senders == "changed":
        if program.combine not in ("min", "max", "argmin", "first"):
            raise ValueError(
                f"{name}.senders is 'changed', but combine {program.combine!r} needs the values of all vertices"
            )
        return (GatherSpread if program.spreads else GatherChanged)(program, block, mirrors)
    if program.combine == "first":
        raise ValueError(f"{name}.combine is 'first', which needs senders 'changed'")
    return GatherLinks(program, block, mirrors) if program.combine == "links" else GatherAll(program, block, mirrors)


def _checked(program: Program, name: str, values: Array, count: int) -> Array:
    if getattr(values, "shape", None) != (count,):
        raise ValueError(
            f"{type(program).__name__} gives an array of shape {getattr(values, 'shape', ())} for {name!r}, "
            f"not one value for each of {count} vertices"
        )
    return values
