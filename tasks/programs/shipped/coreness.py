"""Coreness."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...verify.program_checks import CheckByEdges, check_coreness
from ..program import Array, Column, Program, State, Totals, Vertices


@dataclass(frozen=True)
class Coreness(Program):
    """Core number: the largest k for which a vertex is in a subgraph in which every vertex has k neighbours.

    *Source.* Repeated h-index of the neighbours' bounds, starting with degrees: Lü, Zhou, Zhang and Stanley, "The
    H-index of a network node and its relation to degree and coreness", Nature Communications 7, 2016; Montresor, De
    Pellegrini and Miorandi, "Distributed k-core decomposition", TPDS 24(2), 2013. Cores: Seidman, Social Networks 5,
    1983.

    *Semantics.* `core`, int32. Directions, repeated edges and loops are ignored.

    *Ties.* None. *Precision.* Exact. *Convergence.* When no bound decreases: tens of supersteps on social graphs, up
    to V on a path. *Cost.* In each superstep, rows with a neighbour whose bound decreased.
    """

    state: ClassVar = {"core": "int32"}
    columns: ClassVar = {"core": Column("The largest k for which the vertex is in the k-core.", "coreness")}
    check = CheckByEdges(check_coreness)
    combine = "hindex"
    view = "either"
    senders = "changed"
    monotone = True

    def start(self, v: Vertices) -> tuple[State, Array]:
        """The degree is the first bound."""
        return {"core": v.in_degree}, v.full(True, "bool")

    def emit(self, v: Vertices) -> Array:
        return v.core

    def apply(self, v: Vertices, got: Array, t: Totals) -> tuple[State, Array]:
        """The smaller of the old bound and the h-index."""
        return {"core": np.minimum(got, v.core)}, got < v.core
