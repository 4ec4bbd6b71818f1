"""PageRank."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, log
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from ....kernels.graph import RankState
from ....kernels.pagerank import ranks
from ....kernels.programs import next_ranks, rank_shares
from ...verify.program_checks import CheckByArcs, check_pagerank
from ..program import Array, Column, Cost, Forms, Found, OneBlockGraph, Program, State, Totals, VertexIds, Vertices
from ..totals import exact_sum

STEPS_SHARE = 0.62
"""Supersteps as a share of the most that the tolerance needs: 0.23 to 0.92 for eleven graphs."""


@dataclass(frozen=True)
class PageRank(Program):
    """PageRank: how often a random walk with restarts visits a vertex.

    *Source.* Brin and Page, "The anatomy of a large-scale hypertextual web search engine", WWW 1998; personalised:
    Page, Brin, Motwani and Winograd, "The PageRank citation ranking", 1999.

    *Semantics.* Ranks are the probabilities of vertices in a walk that follows an edge, or restarts with the
    probability 1 - `damping`. They sum to 1. A walk at a vertex without out-edges restarts. It restarts at a uniformly
    random vertex, or vertex of `personal`. With `weighted` it follows edges in proportion to their weights.

    *Ties.* None. *Precision.* float64; bitwise equal for every partitioning.

    *Convergence.* When the ranks change by less than `tolerance` in one superstep, in total; then they are within
    `tolerance` × damping / (1 - damping) of the limit. With `iterations`, after that many supersteps, as in
    Graphalytics.

    *Cost.* A superstep reads every entry. It takes about log(tolerance) / log(damping) supersteps.
    """

    damping: Annotated[float, Field(ge=0, lt=1)] = 0.85
    """Probability that a random walk follows an edge and does not restart."""
    tolerance: Annotated[float, Field(ge=1e-14)] = 1e-9
    """Stop when the sum of all rank changes in a superstep is below this."""
    iterations: Annotated[int | None, Field(ge=1)] = None
    """Stop after this many supersteps; null stops by `tolerance`."""
    weighted: bool = False
    """Walks follow edges in proportion to their weights, `input.weight_column`, which must be at least 0."""
    personal: VertexIds = ()
    """Ids at which walks restart: `a,b`, `@FILE` (an id a line) or `@FILE:COLUMN` (Parquet); none: all vertices."""

    state: ClassVar = {"rank": "float64"}
    columns: ClassVar = {
        "rank": Column("The share of a random walk that is at the vertex; the sum of all is 1.", "pagerank")
    }
    check = CheckByArcs(check_pagerank)
    cost = Cost(4.5e-10, 5e-10)
    combine = "sum"
    nonnegative = True
    at_once_on_gpus = True
    forms_on_gpus = True

    @property
    def along(self) -> str:  # type: ignore[override]
        """Weights are used if `weighted`."""
        return "multiply" if self.weighted else ""

    @property
    def weighs(self) -> bool:
        return self.weighted

    @property
    def steps(self) -> int | None:
        return self.iterations

    @property
    def most_steps(self) -> int | None:
        """What the tolerance needs at the latest."""
        if self.steps is not None:
            return self.steps
        return max(1, ceil(log(self.tolerance) / log(self.damping))) if self.damping else 2

    @property
    def likely_steps(self) -> int | None:
        """On most graphs the tolerance is reached sooner."""
        return self.steps or ceil(STEPS_SHARE * (self.most_steps or 1))

    def _starts(self, v: Vertices) -> Array | float:
        """[vertices] the probability that a walk starts there; a number if it is the same for all."""
        if not self.personal:
            return 1 / max(v.total, 1)
        starts: Array = np.isin(v.number, np.asarray(np.array(self.personal), like=v.number)) / len(set(self.personal))
        return starts

    def start(self, v: Vertices) -> tuple[State, Array]:
        """The distribution of starts."""
        return {"rank": v.full(0.0) + self._starts(v)}, v.full(1.0)

    def _out(self, v: Vertices) -> Array:
        return v.out_weight if self.weighted else v.out_degree

    def emit(self, v: Vertices) -> Array:
        """The rank that each edge carries, per unit of its weight."""
        if self.weighted:
            return np.where(v.out_weight > 0, v.rank, 0) / np.where(v.out_weight > 0, v.out_weight, 1)
        with np.errstate(divide="ignore", invalid="ignore"):  # without out-edges, no vertex receives the value
            share: Array = v.rank / v.out_degree
        return share

    def totals(self, v: Vertices) -> Mapping[str, Array]:
        """The rank of vertices without out-edges."""
        return {"dangling": np.where(self._out(v) > 0, 0.0, v.rank)}

    def apply(self, v: Vertices, got: Array, t: Totals) -> tuple[State, Array]:
        """The rank received over edges and by restarts."""
        restarts = 1 - self.damping + self.damping * t.dangling
        rank = self.damping * got + restarts * self._starts(v)
        return {"rank": rank}, np.abs(rank - v.rank)

    def forms(self, v: Vertices) -> Forms:
        """For uniform restarts and edges without weights, in one pass. NumPy's passes over pieces of the vertices took
        two thirds of the time on 16 cores: several Python threads wait for each other after each operation. Those of
        CuPy move three times as many bytes.
        """
        if self.personal or self.weighted:
            return {}
        ranks = _UniformRanks(self.damping, v)
        return {"emit": ranks.emit, "totals": ranks.totals, "apply": ranks.apply}

    def at_once(self, graph: OneBlockGraph) -> Found | None:
        """For uniform restarts and edges without weights: a superstep is one pass, which sums and computes ranks."""
        if self.personal or self.weighted or not graph.rows.rows:
            return None
        lengths = np.diff(graph.rows.offsets)
        degree = lengths if graph.symmetric else np.bincount(graph.rows.source, minlength=graph.rows.rows)
        rank, steps, moved = ranks(graph.rows, degree, self.damping, self.iterations, self.tolerance, exact_sum)
        return Found({"rank": rank}, steps, steps * len(graph.rows), moved=moved)

    def converged(self, moved: float) -> bool:
        """Whether ranks changed by less than the tolerance."""
        return self.iterations is None and moved < self.tolerance


class _UniformRanks:
    """See `PageRank.forms`."""

    def __init__(self, damping: float, v: Vertices) -> None:
        self._damping, self._sinks = damping, np.flatnonzero(v.out_degree == 0)
        # No vertex receives the share of one without out-edges. As floats, degrees divide by vectors.
        self._degree = np.maximum(v.out_degree, 1).astype(np.float64)
        self._shares, self._moved = v.full(0.0), v.full(0.0)
        self._shared: int | None = None
        """The superstep whose shares are computed."""

    def emit(self, v: Vertices) -> Array:
        if self._shared != v.step:
            rank_shares(self._with(v.rank))
        return self._shares

    def _with(self, rank: Array) -> RankState:
        return RankState(rank, self._degree, self._moved, self._shares)

    def totals(self, v: Vertices) -> State:
        return {"dangling": v.rank[self._sinks]}

    def apply(self, v: Vertices, got: Array, t: Totals, state: State, rows: None) -> Array:
        restarts = (1 - self._damping + self._damping * t.dangling) * (1 / max(v.total, 1))
        next_ranks(got, self._damping, restarts, self._with(state["rank"]))
        self._shared = v.step + 1
        return self._moved
