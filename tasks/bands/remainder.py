"""The remaining edges of shards that stopped. Groups send them to one worker that can hold them, and get their λ back.

Shards stop between two levels. Each group then knows λ of the removed edges, and for each remaining edge the number of
its triangles among the remaining edges. Nothing else is needed: λ of a remaining edge depends on the remaining edges
alone.

group → one worker   remaining_edges: merge_remaining
one worker → groups  intervals_of_group: handed_intervals
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels.graph import MAX_LOCAL_EDGES, MAX_LOCAL_VERTICES, Topology
from ...kernels.runtime.sizes import SizedArrays
from ..bound.intervals import Intervals
from ..bound.peel import Peeled
from ..errors import InternalError
from ..graph import PartitionCounts, Subgraph
from ..messages import Payload
from ..shards.assignment import ShardAssignment
from ..shards.group_edges import ShardEdges
from ..shards.peeling import Figures, ShardState
from .peeling import BandState


@dataclass(frozen=True)
class HandedOver(SizedArrays):
    """The state of a group of shards that stopped for good and, in group 0, that of peeling the remaining edges."""

    group: int
    groups: int
    first_level: int
    """The level at which shards stopped: a lower bound of λ of the edges that remained."""
    handed: int
    """Edges of the whole graph that remained."""
    low: NDArray[np.int32]
    """[owned edges, in the order of `ShardEdges`] λ; `first_level` for edges that remained."""
    count: NDArray[np.int32]
    """[owned edges that remained] triangles among the edges that remained."""
    figures: Figures
    found: BandState | Peeled | None = None
    """In group 0, the state of peeling all remaining edges; None before it begins, and in all other groups."""

    @classmethod
    def of(cls, state: ShardState) -> HandedOver:
        """From the state of shards that stopped between two levels: there the upper bound of a remaining edge's λ is
        the number of its remaining triangles.
        """
        count = state.high[state.low >= state.level]
        return cls(state.group, state.groups, state.level, state.left, state.low, count, state.figures)

    @classmethod
    def untouched(cls, edges: ShardEdges) -> HandedOver:
        """From edges that shards have not begun to peel."""
        own = _owned(edges)
        count = edges.support[own]
        shards = ShardAssignment(edges.cut, edges.groups).shards(edges.group)
        figures = Figures(entries=(0,) * shards, triangles=(0,) * shards)
        return cls(edges.group, edges.groups, 0, edges.edges, np.zeros(len(count), np.int32), count, figures)

    # Properties that every state of peeling has. Only group 0 counts the remaining edges.

    @property
    def level(self) -> int:
        """A level below which λ of all edges is known."""
        return self.first_level if self.found is None else max(self.first_level, self.found.level)

    @property
    def levels(self) -> int:
        """Levels of the shards, and bands or levels after them."""
        return self.figures.levels + (0 if self.found is None else self.found.levels)

    @property
    def evaluations(self) -> int:
        """Edges removed by this group and, in group 0, remaining edges whose λ is known."""
        return self.figures.edges + (0 if self.found is None else self.found.evaluations)

    @property
    def left(self) -> int:
        """Edges of the graph whose λ is not known."""
        if self.group:
            return 0
        return self.handed if self.found is None else self.found.left

    @property
    def exchanges(self) -> int:
        """Exchanges between all groups, and sums over all workers after them."""
        return self.figures.exchanges + (0 if self.found is None else self.found.exchanges)


@dataclass(frozen=True)
class RemainingEdges(Payload):
    """The remaining edges that a group owns, sorted by (low, high). `len()` is the number of edges."""

    low: NDArray[np.uint32]
    """[edges] rank of the low endpoint."""
    high: NDArray[np.uint32]
    """[edges] rank of the high endpoint."""
    count: NDArray[np.int32]
    """[edges] triangles among the edges that remain in all groups."""
    handed: int
    """Edges that remain in all groups."""
    vertices: int
    """Vertices of the graph."""

    def __len__(self) -> int:
        return len(self.low)


@dataclass(frozen=True)
class Remainder(SizedArrays):
    """The remaining edges of all groups, as a graph of its own."""

    graph: Subgraph
    """Its `support` has the triangles of each edge. Vertices keep their order."""
    group: NDArray[np.int16]
    """[edges] the group that owns each edge."""


def remaining_edges(edges: ShardEdges, state: HandedOver) -> RemainingEdges:
    """The edges that the group owns and that remained. Raises InternalError if the state is of other edges."""
    own = _owned(edges)
    if np.count_nonzero(own) != len(state.low):
        raise InternalError(f"group {edges.group} owns {np.count_nonzero(own):,} edges and has λ of {len(state.low):,}")
    own[own] = state.low >= state.first_level
    return RemainingEdges(edges.low[own], edges.high[own], state.count, state.handed, edges.cut.vertices)


def _owned(edges: ShardEdges) -> NDArray[np.bool_]:
    """[edges] whether the group owns each edge."""
    owned: NDArray[np.bool_] = ShardAssignment(edges.cut, edges.groups).group_of(edges.high) == edges.group
    return owned


def merge_remaining(parts: Sequence[RemainingEdges]) -> Remainder:
    """Bring the remaining edges of all groups together; `parts` is by group.

    There may be at most MAX_LOCAL_EDGES of them, in a graph of at most MAX_LOCAL_VERTICES. Beside the memory of the
    edges, this takes 5 bytes for each vertex of the graph. Raises InternalError unless all edges arrive.
    """
    vertices, handed = parts[0].vertices, parts[0].handed
    runs = np.cumsum([0, *map(len, parts)], dtype=np.int64)
    if runs[-1] != handed or handed > MAX_LOCAL_EDGES or vertices > MAX_LOCAL_VERTICES:
        raise InternalError(f"{handed:,} edges remained in shards of {vertices:,} vertices, and {runs[-1]:,} arrived")
    low, high, count = (np.concatenate([getattr(part, name) for part in parts]) for name in ("low", "high", "count"))
    rows = kernels.merge_rows(low, high, runs, vertices)
    origin = rows.origin.view(np.int32)
    ends = kernels.take(low.view(np.int32), origin), rows.high.view(np.int32)
    count = kernels.take(count, origin)
    group = np.repeat(np.arange(len(parts), dtype=np.int16), np.diff(runs))[origin]
    del low, high, rows, origin
    used = np.zeros(vertices, np.bool_)
    for end in ends:
        used[end] = True
    number = kernels.number_marked(used)
    topology = Topology(kernels.take(number, ends[0]), kernels.take(number, ends[1]), kernels.total(used))
    return Remainder(_graph_of(topology, count), group)


def _graph_of(topology: Topology, support: NDArray[np.int32]) -> Subgraph:
    """A graph whose edges all have triangles, as the only partition of a run."""
    edges = topology.edges
    counts = PartitionCounts(0, edges, edges, 0, topology.vertices)
    return Subgraph(support, topology, np.arange(edges, dtype=np.int32), counts)


def intervals_of_group(found: Intervals, owner: NDArray[np.int16], group: int) -> Intervals:
    """The intervals of one group's edges, from those of all remaining edges; `owner` is `Remainder.group`."""
    own = owner == group
    low = found.low[own]
    return Intervals(low, low if found.high is found.low else found.high[own])


def handed_intervals(state: HandedOver, found: Intervals | None) -> Intervals:
    """The intervals of all edges that a group owns; `found` are those of the edges that remained.

    If `found` is None, λ of such an edge is between the level at which shards stopped and the number of its triangles.
    Raises InternalError unless there is an interval for each remaining edge, and none ends below that level.
    """
    remained = state.low >= state.first_level
    if found is None:
        found = Intervals(np.full(len(state.count), state.first_level, np.int32), state.count)
    if len(found.low) != len(state.count) or (found.high < state.first_level).any():
        raise InternalError(
            f"group {state.group} left {len(state.count):,} edges at level {state.first_level}, and got λ of "
            f"{len(found.low):,}, at least {found.high.min(initial=state.first_level)}"
        )
    low = state.low.copy()
    low[remained] = np.maximum(found.low, np.int32(state.first_level))
    if found.high is found.low:
        return Intervals(low, low)
    high = state.low.copy()
    high[remained] = found.high
    return Intervals(low, high)
