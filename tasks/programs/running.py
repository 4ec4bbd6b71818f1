"""The loop that every group runs: superstep after superstep, in step with the others.

Bulk-synchronous (Valiant, CACM 33(8), 1990; Malewicz et al., "Pregel", SIGMOD 2010). One exchange a superstep takes the
values of vertices to the groups that have edges from them; all that comes to a vertex is combined in one place, in the
order of the sources, so results are the same bits for every cut.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from ...kernels.held import Held
from ..order import Ints
from ..partition import Partitioner
from ..shards.carrier import Carrier
from .block import Block
from .closing import OfClosed
from .gathering import Gatherer, OfAll, OfMoved
from .mail import as_words, from_words
from .mirrors import Mirrors
from .program import Array, Program, Totals, Vertices
from .totals import Part, add_parts, part_of

__all__ = ["Outcome", "run_program"]


@dataclass(frozen=True)
class Outcome(Held):
    """What a program found for the vertices of one group. `len()` counts them."""

    group: int

    number: Ints
    """[own] numbers of the vertices."""

    state: dict[str, Array]
    """[own] arrays by name, as `Program.state` has them."""

    steps: int
    """Supersteps."""

    converged: bool
    """Whether the program came to its end; else a limit stopped it."""

    moved: float
    """How far all vertices moved in the last superstep, or how many moved."""

    entries: int
    """Entries of rows that this group read."""

    bytes: int
    """What this group gave its carrier."""

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
    """Run a program on the block of one group, together with the other groups, which all call this with the same.

    `home` gives the group of each vertex. After `most_steps` supersteps, or after `seconds` at any group, all stop
    after the same superstep, not converged unless the program was over. `progress(supersteps, moved)` is called after
    each. Raises ClusterLost when another group is lost, ValueError for a program whose arrays do not fit its vertices.
    """
    stop = None if seconds is None else time.monotonic() + seconds
    with _abandoning(carrier):
        return _Run(program, block, Mirrors(block, home, carrier)).to_the_end(most_steps, stop, progress)


@contextmanager
def _abandoning(carrier: Carrier) -> Iterator[None]:
    """Make the other groups fail, too, when this one does."""
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
            "out_degree": mirrors.out_degrees(self.gatherer.turned),
        }
        if program.weighs:
            facts["out_weight"] = mirrors.out_weights(self.gatherer.turned)
        self.facts = facts
        self.state: dict[str, Array] = {}
        state, moved = program.start(self._vertices(0))
        if set(state) != set(program.state):
            raise ValueError(f"{type(program).__name__}.start gives {sorted(state)}, not {sorted(program.state)}")
        self.state = {
            name: np.array(_fitting(program, name, state[name], len(block.number)), kind)
            for name, kind in program.state.items()
        }
        self.moved = _fitting(program, "moved", moved, len(block.number))
        self.rows = self._rows_of(self.moved)

    def to_the_end(
        self, most_steps: int | None, stop: float | None, progress: Callable[[int, float], None] | None
    ) -> Outcome:
        """All supersteps."""
        program, step = self.program, 0
        while True:
            vertices = self._vertices(step)
            speakers = vertices.at(self.rows) if program.heard == "moved" else vertices
            values = program.emit(speakers)
            parts = {name: part_of(part) for name, part in program.totals(vertices).items()}
            late = stop is not None and time.monotonic() >= stop
            common = as_words([part_of(self.moved), parts, late])
            letters = self.mirrors.exchange(common, self.gatherer.letters(values, self.rows))
            told: list[tuple[Part, dict[str, Part], bool]] = [from_words(letter.common) for letter in letters]
            moved = add_parts([part for part, _, _ in told])
            if step and progress is not None:
                progress(step, moved)
            over = step == program.steps or self._has_ended(step, moved)
            if over or step == most_steps or any(late for _, _, late in told):
                return self._outcome(step, over, moved)
            totals = Totals({name: add_parts([part[name] for _, part, _ in told]) for name in parts})
            rows, got = self.gatherer.gather(vertices, values, self.rows, letters)
            self._apply(vertices if rows is None else vertices.at(rows), rows, got, totals)
            step += 1

    def _has_ended(self, step: int, moved: float) -> bool:
        if self.program.heard == "moved":
            return moved == 0
        return step > 0 and self.program.converged(moved)

    def _apply(self, vertices: Vertices, rows: Array | None, got: object, totals: Totals) -> None:
        state, moved = self.program.apply(vertices, got, totals)
        count = len(self.block.number) if rows is None else len(rows)
        for name, kind in self.program.state.items():
            values = _fitting(self.program, name, state[name], count)
            if rows is None:
                self.state[name] = values.astype(kind, copy=False)
            else:
                self.state[name][rows] = values
        self.moved = _fitting(self.program, "moved", moved, count)
        self.rows = self._rows_of(self.moved) if rows is None else rows[self.moved]

    def _rows_of(self, moved: Array) -> Array:
        """Own vertices that moved, int32, ascending; looked at of programs that hear these alone."""
        if self.program.heard == "all":
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
    """The one for what a program combines. Raises ValueError for what does not go together."""
    name = type(program).__name__
    if program.along and (program.combine not in ("sum", "min", "max", "argmin") or block.rows.weight is None):
        raise ValueError(f"{name}.along is {program.along!r}, for combine {program.combine!r} or edges without weights")
    if program.heard == "moved":
        if program.combine not in ("min", "max", "argmin", "first"):
            raise ValueError(f"{name}.heard is 'moved', but what is combined by {program.combine!r} needs all values")
        return OfMoved(program, block, mirrors)
    if program.combine == "first":
        raise ValueError(f"{name}.combine is 'first', which is for heard 'moved'")
    return OfClosed(program, block, mirrors) if program.combine == "closed" else OfAll(program, block, mirrors)


def _fitting(program: Program, name: str, values: Array, count: int) -> Array:
    if getattr(values, "shape", None) != (count,):
        raise ValueError(
            f"{type(program).__name__} gives an array of shape {getattr(values, 'shape', ())} for {name!r}, "
            f"not one value for each of {count} vertices"
        )
    return values
