"""Hubs and authorities (HITS)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from ...verify.program_checks import CheckByArcs, check_hits
from ..program import Array, Column, Cost, Program, State, Totals, Vertices


@dataclass(frozen=True)
class Hits(Program):
    """Hubs and authorities: hubs have edges to good authorities, and authorities have edges from good hubs.

    *Source.* Kleinberg, "Authoritative sources in a hyperlinked environment", Journal of the ACM 46(5), 1999.

    *Semantics.* `authority`: the sum of the `hub` of the sources of the vertex's in-edges; `hub`: the sum of the
    `authority` of the targets of its out-edges; each scaled so that the sum over all vertices is 1. These are the left
    and right singular vectors of the largest singular value of the adjacency matrix; of several such vectors, the
    projection of the start, where all vertices with out-edges are equal hubs. Without edges all values are 0.

    *Ties.* None. *Precision.* float64; bitwise equal for every partitioning.

    *Convergence.* When authorities or hubs, which are computed in turn, change by less than `tolerance` in one
    superstep, in total. The change decreases by the square of the ratio of the two largest singular values every two
    supersteps; where they are nearly equal this takes long. With `iterations`, after computing both as many times.

    *Cost.* A superstep reads every entry.
    """

    tolerance: Annotated[float, Field(ge=1e-14)] = 1e-8
    """Stop when the sum of all changes in a superstep is below this."""
    iterations: Annotated[int | None, Field(ge=1)] = None
    """Stop after computing authorities and hubs this many times, two supersteps each; null stops by `tolerance`."""

    state: ClassVar = {"hub": "float64", "authority": "float64"}
    columns: ClassVar = {
        "hub": Column("The share of the vertex in all hubs; the sum over all vertices is 1.", "hub"),
        "authority": Column("The share of the vertex in all authorities; the sum over all vertices is 1.", "authority"),
    }
    check = CheckByArcs(check_hits)
    cost = Cost(8e-10, 2e-9)
    combine = "sum"
    alternates = True

    @property
    def steps(self) -> int | None:
        return None if self.iterations is None else 2 * self.iterations

    def start(self, v: Vertices) -> tuple[State, Array]:
        """All vertices with out-edges are equal hubs."""
        return {"hub": (v.out_degree > 0) / max(v.total, 1), "authority": v.full(0.0)}, v.full(1.0)

    def emit(self, v: Vertices) -> Array:
        """What its neighbours add up: the hub along edges, the authority against them."""
        return v.authority if v.step % 2 else v.hub

    def totals(self, v: Vertices) -> Mapping[str, Array]:
        """What all vertices receive together."""
        return {"sent": v.authority * v.in_degree if v.step % 2 else v.hub * v.out_degree}

    def apply(self, v: Vertices, got: Array, t: Totals) -> tuple[State, Array]:
        """The share of what all vertices receive."""
        value = got / (t.sent or 1.0)
        if v.step % 2:
            return {"hub": value, "authority": v.authority}, np.abs(value - v.hub)
        return {"hub": v.hub, "authority": value}, np.abs(value - v.authority)

    def converged(self, moved: float) -> bool:
        """Whether values changed by less than the tolerance."""
        return self.iterations is None and moved < self.tolerance
