"""Community detection by label propagation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from ...verify.program_checks import CheckByArcs, check_labels
from ..program import Array, Column, Program, State, Totals, Vertices


@dataclass(frozen=True)
class LabelPropagation(Program):
    """Communities by label propagation: each vertex repeatedly takes the most frequent label of its neighbours.

    *Source.* Raghavan, Albert and Kumara, "Near linear time algorithm to detect community structures in large-scale
    networks", Phys. Rev. E 76, 2007, in the deterministic and synchronous form of LDBC Graphalytics (CDLP; Iosup et
    al., PVLDB 9(13), 2016).

    *Semantics.* `label`, int64, is initially the vertex's dense number. A neighbour with edges in both directions
    counts twice. A vertex without edges keeps its label.

    *Ties.* The smallest of the most frequent labels. *Precision.* Exact.

    *Convergence.* After `iterations` supersteps (10 as in Graphalytics), or when no label changes. Labels can alternate
    forever. *Cost.* A superstep reads every entry; if few labels have changed, only the rows with these neighbours.
    """

    iterations: Annotated[int, Field(ge=1)] = 10
    """Most supersteps; it stops earlier once no label changes."""

    state: ClassVar = {"label": "id"}
    columns: ClassVar = {"label": Column("The label of the vertex's community: an id.", "label")}
    check = CheckByArcs(check_labels, repeats_supersteps=True)
    combine = "mode"
    view = "both"
    senders = "changed"

    @property
    def steps(self) -> int | None:
        return self.iterations

    def start(self, v: Vertices) -> tuple[State, Array]:
        return {"label": v.number}, v.full(True, "bool")

    def emit(self, v: Vertices) -> Array:
        """The label, with the integer width of dense numbers of this graph."""
        return v.label.astype(v.number.dtype)

    def apply(self, v: Vertices, got: Array, t: Totals) -> tuple[State, Array]:
        label = np.where(v.in_degree > 0, got, v.label)
        return {"label": label}, label != v.label
