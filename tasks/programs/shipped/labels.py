"""Community detection by label propagation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..program import Array, Program, State, Totals, Vertices


@dataclass(frozen=True)
class LabelPropagation(Program):
    """Communities: in each superstep a vertex takes the label that most of its neighbours have.

    *Source.* Raghavan, Albert and Kumara, "Near linear time algorithm to detect community structures in large-scale
    networks", Phys. Rev. E 76, 2007, in the deterministic and synchronous form of LDBC Graphalytics (CDLP; Iosup et
    al., PVLDB 9(13), 2016).

    *Semantics.* `label`, int64: at the start a vertex's own number. A neighbour with an edge each way counts twice. A
    vertex without edges keeps its label.

    *Ties.* Of several labels that are as frequent, the least. *Precision.* Exact.

    *Convergence.* After `iterations` supersteps, 10 as in Graphalytics, or before, when no label changes; labels may
    swap for ever. *Cost.* A superstep reads every entry; late ones, rows with a neighbour whose label has changed.
    """

    iterations: int = 10

    state: ClassVar = {"label": "int64"}
    combine = "mode"
    view = "both"

    @property
    def steps(self) -> int | None:
        """Those that are wanted."""
        return self.iterations

    def start(self, v: Vertices) -> tuple[State, Array]:
        """Each for itself."""
        return {"label": v.number}, v.full(True, "bool")

    def emit(self, v: Vertices) -> Array:
        """The label, as short as a number of this graph."""
        return v.label.astype(v.number.dtype)

    def apply(self, v: Vertices, got: Array, t: Totals) -> tuple[State, Array]:
        """The most frequent label."""
        label = np.where(v.in_degree > 0, got, v.label)
        return {"label": label}, label != v.label
