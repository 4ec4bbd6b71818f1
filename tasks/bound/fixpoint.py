"""Fixpoint iterations: all bounds go down from the supports until none is too high for its triangles.

This is the iterative bounding of TriDN (Wang, Zhang, Tan and Tung, PVLDB 2010), with the h-index operator (Lü et al.,
2016; Sariyüce et al., PVLDB 2018) or with TriDN's decrement by one. For study: peeling does less work.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ... import kernels
from ...kernels.graph import IntArray, Topology
from ..bands.sums import WorkerSums
from ..graph import Subgraph
from .bisection import highest_lambda
from .intervals import Intervals, intervals
from .iterations import Clock, Iterated, Iteration, Progress, any_passed, record, share_of

Operator = Literal["hindex", "tridn"]
"""How a bound is lowered: to the h-index of its triangles, or by one."""


@dataclass(frozen=True)
class Bounds(Iterated):
    """The bounds between two iterations."""

    bound: IntArray
    """[edges] upper bounds of λ."""
    active: IntArray
    """The edges to evaluate next, ascending. Without any, the bounds are λ."""

    @property
    def level(self) -> int:
        """The lowest level of edges whose λ is not known: no λ is, until all are."""
        return 0

    @property
    def left(self) -> int:
        """Edges whose λ is not known."""
        return len(self.bound) if len(self.active) else 0


def start_bounds(support: IntArray) -> Bounds:
    """The first bounds: the `support` [edges] of each edge, at most the highest λ that the supports allow."""
    highest = highest_lambda(support)
    edges = np.asarray(np.arange(len(support), dtype=np.int32), like=support)
    return Bounds(record([]), np.minimum(support, np.int32(highest)), edges)


def lower_bounds(
    topology: Topology,
    before: Bounds,
    operator: Operator,
    sums: WorkerSums | None = None,
    most: int | None = None,
    seconds: float | None = None,
    progress: Progress | None = None,
) -> Bounds:
    """Iterate until no bound can be lowered: for `most` iterations at most, and until `seconds` have passed.

    In an iteration each worker evaluates its share of the active edges, and tells which bounds fell and which edges
    that concerns; `sums` adds up over all workers, None for one alone. Raises as `WorkerSums.add`.
    """
    deadline = None if seconds is None else time.monotonic() + seconds
    bound, active, by_one = before.bound.copy(), before.active, operator == "tridn"
    rounds = kernels.fixpoint(topology, kernels.adjacency(topology), int(bound.max()) if len(bound) else 0)
    done: list[Iteration] = []
    while len(active) and (most is None or len(done) < most):
        if progress is not None:
            progress(0, len(bound))
        clock, evaluated = Clock(sums), len(active)
        if sums is None:
            active = rounds.evaluate(bound, active, by_one)
        else:
            share = share_of(active, sums)
            held = kernels.take(bound, share)
            again = rounds.evaluate(bound, share, by_one)
            fallen, marked = np.zeros_like(bound), np.zeros_like(bound)
            kernels.store(fallen, share, held - kernels.take(bound, share))
            kernels.store(bound, share, held)  # all workers lower the bounds by the same sums
            sums.add(kernels.changes(bound, fallen))
            kernels.store(marked, again, np.ones_like(again))
            marks = kernels.changes(np.zeros_like(bound), marked)
            sums.add(marks)
            active = kernels.nonzero(marks.count)
        done.append(clock.ended(evaluated, 0, len(bound) if len(active) else 0))
        if any_passed(sums, deadline):
            break
    return replace(before, bound=bound, active=active, iterations=record(done, before.iterations))


def fixpoint_intervals(subgraph: Subgraph, bounds: Bounds) -> Intervals:
    """The interval of each edge. A bound is λ once no edge is active, and an upper end before."""
    high = bounds.bound
    return intervals(subgraph, np.zeros_like(high) if bounds.left else high, high)
