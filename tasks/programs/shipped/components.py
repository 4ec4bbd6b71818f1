"""Weakly connected components."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ....kernels.cpu.programs.components import components
from ....kernels.cpu.programs.push_pull import lower
from ....kernels.graph import IntArray
from ...verify.program_checks import CheckByEdges, check_components
from ..program import Array, Column, Cost, Forms, Found, OneBlockGraph, Program, State, Totals, Vertices


@dataclass(frozen=True)
class Components(Program):
    """Connected components, ignoring directions.

    *Source.* Within a block, union-find with sampling: Sutton, Ben-Nun and Barak, "Optimizing parallel graph
    connectivity computation via subgraph sampling" (Afforest), IPDPS 2018. Between blocks, propagation of the smallest
    label: Hash-Min of Rastogi et al., "Finding connected components in map-reduce in logarithmic rounds", ICDE 2013.

    *Semantics.* `component`, int64: the smallest dense number in the vertex's component. A vertex without edges has its
    own number.

    *Ties.* None. *Precision.* Exact. *Convergence.* After two supersteps in one block. With several, labels take one
    superstep for each block that they reach one after the other, and one more. *Cost.* At most every edge once, and the
    vertices of components whose label decreases in a superstep.
    """

    state: ClassVar = {"component": "id"}
    columns: ClassVar = {
        "component": Column("The smallest id in the connected component of the vertex.", "weak_component")
    }
    check = CheckByEdges(check_components)
    cost = Cost(7e-10, in_all=True)
    combine = "min"
    view = "both"
    senders = "changed"
    spreads = True
    monotone = True

    def start(self, v: Vertices) -> tuple[State, Array]:
        return {"component": v.number}, v.full(True, "bool")

    def emit(self, v: Vertices) -> Array:
        """The label, with the integer width of dense numbers of this graph."""
        return v.component.astype(v.number.dtype)

    def forms(self, v: Vertices) -> Forms:
        """NumPy's passes over all vertices take longer than union-find with several threads."""
        start = {"component": v.number.astype(np.int64)}, v.full(True, "bool")
        return {"start": lambda v: start, "emit": self.emit, "apply": _lower}

    def at_once(self, graph: OneBlockGraph) -> Found:
        """Union-find alone."""
        component, lowered = components(graph.rows, graph.number, graph.symmetric)
        steps = 2 if lowered else min(len(component), 1)
        return Found({"component": component}, steps, len(graph.rows))

    def apply(self, v: Vertices, got: Array, t: Totals) -> tuple[State, Array]:
        return {"component": np.minimum(got, v.component)}, got < v.component


def _lower(v: Vertices, got: Array, t: Totals, state: State, rows: IntArray) -> Array:
    return lower(rows, got, state["component"])
