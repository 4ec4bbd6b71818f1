"""Fixpoint rounds: a partition lowers its bounds to a fixpoint, with ghost bounds fixed, then sends the lowered ones.

This is the iterative bounding of TriDN (Wang, Zhang, Tan and Tung, PVLDB 2010), with the h-index operator (Lü et al.,
2016; Sariyüce et al., PVLDB 2018) or with TriDN's decrement by one. For study: banding does less work.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels.graph import Adjacency
from ...kernels.runtime.sizes import SizedArrays
from ..graph.subgraph import Subgraph
from ..ids import order
from ..messages import Bundle, Payload, bundle
from .band import subscribers_of
from .intervals import Intervals, intervals

Operator = Literal["hindex", "tridn"]
"""How a bound is lowered: to the h-index of its triangles, or by one."""


@dataclass(frozen=True)
class FallenBounds(Payload):
    """Bounds that were lowered at their owner. `len()` is the number of edges."""

    number: NDArray[np.int32]
    """[edges] numbers at the owner, ascending."""

    bound: NDArray[np.int32]
    """[edges] the new bounds."""

    def __len__(self) -> int:
        return len(self.number)


@dataclass(frozen=True)
class FixpointReport:
    """Counts of one partition's round, for the driver."""

    evaluations: int
    """Number of edge evaluations."""

    messages: int
    """Number of bounds sent."""


@dataclass(frozen=True)
class Bounds(SizedArrays):
    """State of a partition between two rounds."""

    bound: NDArray[np.int32]
    """[local edges] upper bounds of λ."""

    rows: Adjacency

    def kept(self, subgraph: Subgraph, mail: Mapping[int, FallenBounds]) -> KeptBounds:
        """The part to store in a checkpoint, with the messages that are not delivered yet."""
        return KeptBounds(self.bound, mail)


@dataclass(frozen=True)
class KeptBounds(SizedArrays):
    """A partition's state in a checkpoint, with its undelivered messages."""

    bound: NDArray[np.int32]
    """[local edges] as in Bounds."""

    mail: Mapping[int, FallenBounds]
    """Receiver → undelivered message."""

    def resumed(self, subgraph: Subgraph) -> tuple[Bounds, Bundle[FallenBounds]]:
        """The state and the messages after a restart. Rows are rebuilt."""
        return Bounds(self.bound, kernels.adjacency(subgraph.topology)), bundle(subgraph.partition, self.mail)


def start_bounds(subgraph: Subgraph, highest: int) -> Bounds:
    """Initial bounds: the support of owned edges; for ghosts `highest`, which bounds every λ of the run."""
    bound = np.full_like(subgraph.support, highest, shape=(subgraph.topology.edges,))
    bound[subgraph.owned] = np.minimum(subgraph.support[subgraph.number], highest)
    return Bounds(bound, kernels.adjacency(subgraph.topology))


def fixpoint_exchange(
    subgraph: Subgraph, bounds: Bounds, operator: Operator, first: bool, parts: Mapping[int, FallenBounds]
) -> tuple[Bounds, Bundle[FallenBounds], FixpointReport]:
    """Apply the bounds lowered at other partitions, then evaluate until no owned bound changes.

    In the `first` round every owned edge is evaluated, and each bound below the initial bound of ghosts is sent.
    """
    bound = bounds.bound
    highest = order.largest(bound)
    known = np.full_like(bound, highest) if first else bound  # bounds of these edges as ghosts
    bound = bound.copy()
    lowered = [subgraph.owned[:0]]
    for owner, fallen in parts.items():
        start, stop = subgraph.ghost_offsets[owner], subgraph.ghost_offsets[owner + 1]
        edges = subgraph.ghost[start + np.searchsorted(subgraph.ghost_number[start:stop], fallen.number)]
        bound[edges] = fallen.bound
        lowered.append(edges)
    rounds = kernels.fixpoint(subgraph.topology, bounds.rows, subgraph.is_owned, highest)
    active = subgraph.owned if first else rounds.unsettle(bound, np.concatenate(lowered))
    evaluations = 0
    while len(active):
        evaluations += len(active)
        active = rounds.evaluate(bound, active, operator == "tridn")
    changed = subgraph.owned[bound[subgraph.owned] < known[subgraph.owned]]
    position, subscriber = subscribers_of(subgraph, changed)
    messages = {}
    for q in np.unique(subscriber).tolist():
        own = position[subscriber == q]
        messages[q] = FallenBounds(subgraph.number[own], bound[subgraph.owned[own]])
    sent = bundle(subgraph.partition, messages)
    return Bounds(bound, bounds.rows), sent, FixpointReport(evaluations, sum(sent.rows.values()))


def fixpoint_intervals(subgraph: Subgraph, bounds: Bounds, converged: bool) -> Intervals:
    """The interval of each owned edge. Its bound is λ once all rounds have converged, and an upper end before."""
    high = bounds.bound[subgraph.owned]
    return intervals(subgraph, high if converged else np.zeros_like(high), high)
