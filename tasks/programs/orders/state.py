"""A program with its state on one block."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ....kernels.graph import InRows
from ...errors import ProgramError
from ...partition import Partitioner
from ...shards.carriers.carrier import Carrier
from ..block import GraphBlock
from ..gathering import Gatherer, gatherer_of
from ..mirrors import Mirrors, mirrors_of
from ..program import Array, Program, Totals, Vertices
from .calls import Calls, check_declaration, is_shipped, name_of, needs_weights

NO_STATE: Mapping[str, Array] = {}


class BlockState:
    """The state of the vertices of one block while programs run, one after the other."""

    def __init__(
        self,
        program: Program,
        block: GraphBlock,
        home: Partitioner,
        carrier: Carrier,
        state: Mapping[str, Array] = NO_STATE,
    ) -> None:
        """All groups must create theirs at the same time. `state` is what `Program.start` of the program can read."""
        self.block, self._ways = block, mirrors_of(block, home, carrier, program.alternates)
        self.exchanges = 0
        """Exchanges within supersteps."""
        self.facts: dict[str, Array] = {"number": block.number, "in_degree": np.diff(block.rows.offsets)}
        self.state: dict[str, Array] = dict(state)
        self.step = 0
        """Completed supersteps of the program."""
        self.steps_before = 0
        """Supersteps of the programs before."""
        self.entries_before = 0
        """Entries that were read before the present program began or resumed."""
        self._begin(program, None)

    @property
    def _way(self) -> int:
        """The direction of the next superstep: 0 along the edges, 1 against them."""
        return self.step % len(self._gatherers)

    @property
    def mirrors(self) -> Mirrors:
        """The mirrors of the next superstep."""
        return self._ways[self._way]

    @property
    def gatherer(self) -> Gatherer:
        """The gatherer of the next superstep."""
        return self._gatherers[self._way]

    @property
    def entries(self) -> int:
        """Entries of rows that were read."""
        return self.entries_before + sum(own.entries for own in self._gatherers)

    @property
    def words(self) -> int:
        """Words sent."""
        return sum(own.words for own in self._ways)

    @property
    def words_received(self) -> int:
        """Words received."""
        return sum(own.words_received for own in self._ways)

    @property
    def all_steps(self) -> int:
        """Supersteps of all programs."""
        return self.steps_before + self.step

    def vertices(self) -> Vertices:
        """All vertices of the block."""
        guarded = not is_shipped(self.program) and self.block.on_device
        return Vertices({**self.facts, **self.state}, self.block.vertices, self.step, guarded=guarded)

    def emit(self, vertices: Vertices) -> Array:
        """What the vertices that send now emit, of all `vertices`; for 'first', which ignores it, their rows."""
        if self.program.combine == "first":
            return self.rows
        whole = self.program.senders == "all" or len(self.rows) == len(self.block.number)
        return self.calls.emit(vertices if whole else vertices.at(self.rows))

    def continue_with(self, program: Program) -> None:
        """Hand the state over to another program: a `relaxed` form, or the one that comes then."""
        self.entries_before = self.entries
        self._begin(program, self.gatherer.transposed)
        self.steps_before, self.step = self.all_steps, 0

    def resume(self, state: Mapping[str, Array], rows: Array, moved: Array, step: int) -> None:
        """Continue the program after `step` supersteps. `rows` send next, and `moved` is the last change."""
        self.state = {name: values.copy() for name, values in state.items()}
        self.rows, self.moved, self.step = rows, moved, step

    def _begin(self, program: Program, transposed: InRows | None) -> None:
        check_declaration(program)
        self.program, self.calls = program, Calls(program)
        check_weights(program, self.block)
        if program.alternates and len(self._ways) == 1 and not self.block.mutual:
            raise ProgramError(
                f"program {name_of(program)}: `alternates` is for a program that does not come by `then`"
            )
        ways = self._ways if program.alternates else self._ways[:1]
        self._gatherers: list[Gatherer] = [gatherer_of(self.calls, own.block, own) for own in ways]
        self.gatherer.transposed = transposed
        if "out_degree" not in self.facts and self.block.mutual:
            self.facts["out_degree"] = self.facts["in_degree"]
        if "out_degree" not in self.facts:
            if program.senders == "changed":
                self.gatherer.transpose()
            self.facts["out_degree"] = self.mirrors.out_degrees(self.gatherer.transposed)
        if program.weighs and "out_weight" not in self.facts:
            self.facts["out_weight"] = self.mirrors.out_weights(self.gatherer.transposed)
        v = self.vertices()
        if is_shipped(program) and (v.on_host or program.forms_on_gpus):
            self.calls.forms = program.forms(v)
        self.state, self.moved = self.calls.start(v)
        self.rows = self._rows_of(self.moved)
        if program.combine in ("mode", "hindex") and program.senders == "changed" and len(self.rows) < len(v.number):
            self.calls.refuse("start", v, f"all vertices must send first, since combine is {program.combine!r}")

    def apply(self, rows: Array | None, got: Any, totals: Totals) -> None:
        """Compute the new state of the vertices `rows`, or of all, from what they received. Sets `moved` and `rows`,
        the vertices that changed.
        """
        vertices = self.vertices()
        vertices = vertices if rows is None else vertices.at(rows)
        self.moved = self.calls.apply(vertices, got, totals, self.state, rows)
        if rows is None:
            self.rows = self._rows_of(self.moved)
        elif int(np.count_nonzero(self.moved)) < len(rows):
            self.rows = rows[self.moved]
        else:
            self.rows = rows

    def _rows_of(self, moved: Array) -> Array:
        """Own vertices that changed, int32, ascending; empty for programs in which all vertices send."""
        if self.program.senders == "all":
            return np.zeros_like(moved, shape=(0,), dtype=np.int32)
        return np.flatnonzero(moved).astype(np.int32)


def check_weights(program: Program, block: GraphBlock) -> None:
    """Raises ProgramError if the program needs weights that the edges do not have."""
    if (needs_weights(program) or program.by_support) and block.rows.weight is None:
        raise ProgramError(f"program {name_of(program)} needs weights, and the edges have none")
