"""PageRank."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..program import Array, Program, State, Totals, Vertices


@dataclass(frozen=True)
class PageRank(Program):
    """How often a walk is at each vertex that follows an edge, or starts anew with probability 1 - `damping`.

    *Source.* Brin and Page, "The anatomy of a large-scale hypertextual web search engine", WWW 1998; personalised:
    Page, Brin, Motwani and Winograd, "The PageRank citation ranking", 1999.

    *Semantics.* Ranks add up to 1. A walk that is at a vertex without edges to follow starts anew, so what such
    vertices hold goes to all. It starts at any vertex, or at one of `personal`, each as likely. With `weighted` it
    follows an edge as often as its weight says.

    *Ties.* None. *Precision.* float64; the same bits for every cut.

    *Convergence.* When the ranks moved less than `tolerance` in one superstep, all added up; then they are within
    `tolerance` × damping / (1 - damping) of the limit. With `iterations` after so many supersteps, as in Graphalytics.

    *Cost.* A superstep reads every entry: about log(tolerance) / log(damping) of them.
    """

    damping: float = 0.85
    tolerance: float = 1e-9
    iterations: int | None = None
    personal: tuple[int, ...] = ()
    """Numbers of vertices."""
    weighted: bool = False

    state: ClassVar = {"rank": "float64"}
    combine = "sum"

    @property
    def along(self) -> str:  # type: ignore[override]
        """Weights count where they are wanted."""
        return "multiply" if self.weighted else ""

    @property
    def weighs(self) -> bool:
        """Where weights are wanted."""
        return self.weighted

    @property
    def steps(self) -> int | None:
        """Those that are wanted."""
        return self.iterations

    def _starts(self, v: Vertices) -> Array:
        """[vertices] how likely a walk starts there."""
        if not self.personal:
            return v.full(1 / max(v.total, 1))
        starts: Array = np.isin(v.number, np.asarray(np.array(self.personal), like=v.number)) / len(set(self.personal))
        return starts

    def start(self, v: Vertices) -> tuple[State, Array]:
        """Walks are where they start."""
        return {"rank": self._starts(v)}, v.full(1.0)

    def _out(self, v: Vertices) -> Array:
        return v.out_weight if self.weighted else v.out_degree

    def emit(self, v: Vertices) -> Array:
        """What goes along each edge, for each unit of its weight."""
        out = self._out(v)
        return np.where(out > 0, v.rank, 0) / np.where(out > 0, out, 1)

    def totals(self, v: Vertices) -> Mapping[str, Array]:
        """What is at vertices without edges to follow."""
        return {"dangling": np.where(self._out(v) > 0, 0.0, v.rank)}

    def apply(self, v: Vertices, got: Array, t: Totals) -> tuple[State, Array]:
        """The walks that come, and those that start anew."""
        starts = self._starts(v)
        rank = (1 - self.damping) * starts + self.damping * (got + t.dangling * starts)
        return {"rank": rank}, np.abs(rank - v.rank)

    def converged(self, moved: float) -> bool:
        """Whether ranks moved less than the tolerance."""
        return self.iterations is None and moved < self.tolerance
