"""Fixpoint rounds: one partition solves to its own greatest fixpoint, ghost bounds held still, then tells what fell.

The iterative bounding of the source (TriDN of Wang, Zhang, Tan and Tung, PVLDB 2010), with the h-index operator (Lü et
al., 2016; Sariyüce et al., PVLDB 2018) or with its own decrement by one. For study: banding does less work.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels.graph import Adjacency
from ...kernels.held import Held
from .. import order
from ..messages import Bundle, bundle
from ..subgraph import Subgraph
from .band import subscribers_of
from .intervals import Intervals, intervals

Operator = Literal["hindex", "tridn"]
"""How a bound falls: to the h-index of its triangles, or by one."""


@dataclass(frozen=True)
class FallenBounds(Held):
    """Bounds that fell at their owner. `len()` counts them."""

    number: NDArray[np.int32]
    """[edges] numbers at the owner, ascending."""

    bound: NDArray[np.int32]
    """[edges] the new bounds."""

    def __len__(self) -> int:
        return len(self.number)


@dataclass(frozen=True)
class FixpointReport:
    """What the driver learns of one partition's round."""

    evaluations: int
    """Edges evaluated, each time counted."""

    messages: int
    """Bounds sent."""


@dataclass(frozen=True)
class Bounds(Held):
    """State of a partition between two rounds."""

    bound: NDArray[np.int32]
    """[local edges] no λ exceeds it."""

    rows: Adjacency

    def kept(self, subgraph: Subgraph, mail: Mapping[int, FallenBounds]) -> KeptBounds:
        """What is to be kept of it and of the mail under way."""
        return KeptBounds(self.bound, mail)


@dataclass(frozen=True)
class KeptBounds(Held):
    """What a later run needs of a partition's state and of the mail it has under way."""

    bound: NDArray[np.int32]
    """[local edges] as in Bounds."""

    mail: Mapping[int, FallenBounds]
    """Receiver → what it has not been told yet."""

    def resumed(self, subgraph: Subgraph) -> tuple[Bounds, Bundle[FallenBounds]]:
        """The state and the mail that they were; rows are built anew."""
        return Bounds(self.bound, kernels.adjacency(subgraph.topology)), bundle(subgraph.partition, self.mail)


def start_bounds(subgraph: Subgraph, highest: int) -> Bounds:
    """First bounds: the support of owned edges, and `highest`, which no λ exceeds, for ghosts."""
    bound = np.full_like(subgraph.support, highest, shape=(subgraph.topology.edges,))
    bound[subgraph.owned] = np.minimum(subgraph.support[subgraph.number], highest)
    return Bounds(bound, kernels.adjacency(subgraph.topology))


def fixpoint_exchange(
    subgraph: Subgraph, bounds: Bounds, operator: Operator, first: bool, parts: Mapping[int, FallenBounds]
) -> tuple[Bounds, Bundle[FallenBounds], FixpointReport]:
    """Take in bounds that fell elsewhere and evaluate until no owned bound falls.

    In the `first` round every owned edge is evaluated, and every bound that lies below a ghost's first bound is mailed.
    """
    bound = bounds.bound
    highest = order.largest(bound)
    known = np.full_like(bound, highest) if first else bound  # what ghosts elsewhere have
    bound = bound.copy()
    told = [subgraph.owned[:0]]
    for owner, fallen in parts.items():
        start, stop = subgraph.ghost_offsets[owner], subgraph.ghost_offsets[owner + 1]
        edges = subgraph.ghost[start + np.searchsorted(subgraph.ghost_number[start:stop], fallen.number)]
        bound[edges] = fallen.bound
        told.append(edges)
    rounds = kernels.fixpoint(subgraph.topology, bounds.rows, subgraph.is_owned, highest)
    active = subgraph.owned if first else rounds.unsettle(bound, np.concatenate(told))
    evaluations = 0
    while len(active):
        evaluations += len(active)
        active = rounds.evaluate(bound, active, operator == "tridn")
    fell = subgraph.owned[bound[subgraph.owned] < known[subgraph.owned]]
    place, subscriber = subscribers_of(subgraph, fell)
    mail = {}
    for q in np.unique(subscriber).tolist():
        mine = place[subscriber == q]
        mail[q] = FallenBounds(subgraph.number[mine], bound[subgraph.owned[mine]])
    posted = bundle(subgraph.partition, mail)
    return Bounds(bound, bounds.rows), posted, FixpointReport(evaluations, sum(posted.rows.values()))


def fixpoint_intervals(subgraph: Subgraph, bounds: Bounds, converged: bool) -> Intervals:
    """The interval of each owned edge: its bound is λ once all rounds are silent, and an upper end before."""
    high = bounds.bound[subgraph.owned]
    return intervals(subgraph, high if converged else np.zeros_like(high), high)
