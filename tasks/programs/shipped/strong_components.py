"""Strongly connected components."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ....kernels.cpu.programs.components import strong_components
from ...verify.program_checks import CheckByArcs, check_strong_components
from ..program import Array, Column, Cost, Found, OneBlockGraph, Program, State, Totals, Vertices

_LABEL_BITS = 31
_LABELS = 2**_LABEL_BITS - 1
_NOTHING = np.iinfo(np.int64).max
"""What vertices with a component send: no label of an open vertex is larger."""


@dataclass(frozen=True)
class StrongComponents(Program):
    """Strongly connected components: vertices that reach each other along edges.

    *Source.* The smallest labels along and against edges: Yan, Cheng, Xing, Lu, Ng and Bu, "Pregel algorithms for graph
    connectivity problems with performance guarantees", PVLDB 7(14), 2014. Trimming: McLendon, Hendrickson, Plimpton and
    Rauchwerger, "Finding strongly connected components in distributed graphs", J. Parallel Distrib. Comput. 65(8),
    2005. The separation of groups without messages of their own is ours, see below.

    *Semantics.* `component`, int64: the smallest dense number in the vertex's component; -1 if it was not known when a
    limit ended the program. Loops change nothing.

    *Method.* A vertex is open until its component is known. In a round, open vertices learn by turns `above`, the
    smallest number of open vertices that reach them, and `below`, the smallest number of those that they reach. If both
    are equal, the vertex is in the component of that one. A vertex without open neighbours on one side is a component
    alone. Every second round separates vertices by the numbers of the round before: against edges only those
    with equal `above` exchange, and along edges only those with equal `below`, as all vertices of a component have.
    Along an edge `below` does not decrease and `above` does not increase, so the neighbour with the best number of the
    round before is the only one to look at: both numbers are in one value, and the smallest value decides.

    *Ties.* None. *Precision.* Exact, for fewer than 2^31 vertices. *Convergence.* Each round finds the component of the
    smallest open vertex, and mostly many others. It takes two supersteps for each edge on the longest of the paths by
    which labels come, and a few more. *Cost.* A superstep reads every entry.
    """

    state: ClassVar = {
        "component": "id",
        "above": "int64",
        "below": "int64",
        "above_before": "int64",
        "below_before": "int64",
        "recent": "int32",
    }
    columns: ClassVar = {
        "component": Column("The smallest id in the strongly connected component of the vertex.", "strong_component")
    }
    check = CheckByArcs(check_strong_components)
    cost = Cost(5e-9, threads=0.0, in_all=True)
    combine = "min"
    alternates = True

    def start(self, v: Vertices) -> tuple[State, Array]:
        """All vertices are open, with their own numbers."""
        if v.total >= _LABELS:
            raise ValueError(
                f"{v.total:,} vertices are too many: strongly connected components are for fewer than 2^31"
            )
        number, none, two = v.number.astype(np.int64), v.full(-1, "int64"), v.full(2, "int32")
        state = {"component": none, "above": number, "below": number, "above_before": none, "below_before": none}
        return state | {"recent": two}, v.full(True, "bool")

    def at_once(self, graph: OneBlockGraph) -> Found:
        """By depth-first search, which reads each entry once. Of the state, only `component` is there."""
        component = graph.numbers_of(strong_components(graph.rows))
        return Found({"component": component}, min(len(component), 1), len(graph.rows))

    def _label(self, v: Vertices) -> tuple[Array, Array]:
        """[vertices] the number of the last round by which vertices are separated, descending, and that of this one."""
        before, label = (v.above_before, v.below) if v.step % 2 else (v.below_before, v.above)
        return v.total - before, label

    def emit(self, v: Vertices) -> Array:
        """Both numbers of an open vertex."""
        group, label = self._label(v)
        return np.where(v.component < 0, (group << _LABEL_BITS) | label, _NOTHING)

    def totals(self, v: Vertices) -> Mapping[str, Array]:
        """Vertices that changed in the last superstep in either direction."""
        return {"recent": v.recent > 0}

    def apply(self, v: Vertices, got: Array, t: Totals) -> tuple[State, Array]:
        """The smaller label, or the end of a round when no label changed in both directions."""
        is_open = v.component < 0
        if not t.recent:
            return self._end_round(v, is_open)
        group, label = self._label(v)
        same = (got >> _LABEL_BITS) == group
        lower = is_open & same & ((got & _LABELS) < label)
        alone = is_open & ~same
        label = np.where(lower, got & _LABELS, label)
        component = np.where(alone, v.number, v.component)
        state = {"component": component, "above_before": v.above_before, "below_before": v.below_before}
        state |= {"above": v.above, "below": label} if v.step % 2 else {"above": label, "below": v.below}
        recent = np.where(lower | alone, 2, np.maximum(v.recent - 1, 0)).astype(np.int32)
        return state | {"recent": recent}, component < 0

    def _end_round(self, v: Vertices, is_open: Array) -> tuple[State, Array]:
        component = np.where(is_open & (v.above == v.below), v.above, v.component)
        number, separated = v.number.astype(np.int64), v.above_before >= 0
        state = {
            "component": component,
            "above": number,
            "below": number,
            "above_before": np.where(separated, -1, v.above),
            "below_before": np.where(separated, -1, v.below),
            "recent": np.where(component < 0, 2, 0).astype(np.int32),
        }
        return state, component < 0
