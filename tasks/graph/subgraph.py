"""The subgraph of a partition: owned edges with triangles, ghost edges that share these triangles, and subscribers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels.graph import MAX_LOCAL_EDGES, UNCOUNTED, Topology
from ...kernels.runtime.sizes import SizedArrays
from ..errors import OutOfRoom
from ..ids import order
from ..ingest import OwnedEdges
from .triangulate import Counted, GhostEdges, Reply, supports


@dataclass(frozen=True)
class PartitionCounts:
    """Edge and vertex counts of one partition, for the manifest."""

    partition: int
    owned: int
    ghost: int
    inner: int
    peripheral: int
    cut: int
    vertices: int
    """Ends of owned edges."""
    local: int
    """Owned edges with triangles, which need bounding."""


@dataclass(frozen=True)
class Subgraph(SizedArrays):
    """The graph that one partition bounds. Local edges, owned or ghost, are sorted by (low, high) in degree order."""

    partition: int

    partitions: int
    """Number of partitions of the run."""

    support: NDArray[np.int32]
    """[owned edges] triangles of each edge, 0 included; in the order of OwnedEdges."""

    topology: Topology
    """Local vertices and edges."""

    is_owned: NDArray[np.bool_]
    """[local edges] true for owned edges."""

    owned: NDArray[np.int32]
    """[owned local edges] local edge numbers, ascending."""

    number: NDArray[np.int32]
    """[owned local edges] positions in OwnedEdges, ascending. Messages refer to edges by these numbers."""

    ghost: NDArray[np.int32]
    """[ghosts] local edge numbers, sorted by (owner, number at the owner)."""

    ghost_number: NDArray[np.int32]
    """[ghosts] numbers at their owners, ascending within each owner."""

    ghost_offsets: NDArray[np.int64]
    """[partitions + 1] start of each owner's ghosts."""

    subscriber_offsets: NDArray[np.int64]
    """[owned local edges + 1] start of each edge's subscribers."""

    subscriber: NDArray[np.int16]
    """[subscriptions] partitions in which the edge is a ghost."""

    counts: PartitionCounts

    def first_counts(self) -> NDArray[np.int32]:
        """[local edges] triangles of owned edges; UNCOUNTED for ghosts, which their owners count."""
        count = np.full_like(self.support, UNCOUNTED, shape=(self.topology.edges,))
        count[self.owned] = self.support[self.number]
        return count


def build_subgraph(owned: OwnedEdges, counted: Counted, partitions: int, parts: Mapping[int, Reply]) -> Subgraph:
    """Build a subgraph from the triangles counted in the partition and the replies to its lists.

    Raises OutOfRoom for more than 2^31 - 2 local edges.
    """
    support, outer = supports(counted, parts), counted.outer.copy()
    for reply in parts.values():
        outer[reply.edge] = True
    number = kernels.nonzero(support)
    ghosts = _ghosts(owned, counted, parts, partitions)
    ghost_number = np.concatenate([number[:0], *(g.edge for g in ghosts)])
    ghost_offsets = order.offsets(np.array([len(g) for g in ghosts] or [0] * partitions, np.int64))
    edges = len(number) + len(ghost_number)
    if edges > MAX_LOCAL_EDGES:
        raise OutOfRoom(
            f"partition {owned.partition} holds {edges:,} edges with its ghosts, over the {MAX_LOCAL_EDGES:,} allowed; "
            f"raise partitioning.count (now {partitions})"
        )
    low_vertex = kernels.row_numbers(owned.offsets)
    low, high = (kernels.take(ends, number) for ends in (low_vertex, owned.high))
    vertices = len(owned.rank)
    del low_vertex
    if ghosts:
        # Code the vertices, not the ends of owned edges, which are many more.
        rank, (vertex, *ends) = order.encode(owned.rank, *(g.low for g in ghosts), *(g.high for g in ghosts))
        del ghosts  # ghosts can take most of the memory here
        low = np.concatenate([vertex[low], *ends[:partitions]])
        high = np.concatenate([vertex[high], *ends[partitions:]])
        vertices = len(rank)
        del rank, vertex, ends
        by_pair = order.order_pairs(low, high, vertices, vertices)
        low, high = low[by_pair], high[by_pair]
        local = np.empty_like(low)
        local[by_pair] = np.arange(edges, dtype=np.int32, like=low)
        is_owned = np.zeros_like(low, np.bool_)
        is_owned[local[: len(number)]] = True
    else:
        local, is_owned = np.arange(edges, dtype=np.int32, like=low), np.ones_like(low, np.bool_)
    offsets, subscriber = _subscribers(number, counted, parts)
    return Subgraph(
        owned.partition,
        partitions,
        support,
        Topology(low, high, vertices),
        is_owned,
        local[: len(number)],
        number,
        local[len(number) :],
        ghost_number,
        ghost_offsets,
        offsets,
        subscriber,
        PartitionCounts(
            owned.partition,
            len(owned),
            len(ghost_number),
            *_by_kind(owned, outer, partitions),
            len(owned.rank),
            len(number),
        ),
    )


def _by_kind(owned: OwnedEdges, outer: NDArray[np.bool_], partitions: int) -> tuple[int, int, int]:
    """The numbers of inner, peripheral and cut edges."""
    if partitions == 1:
        return len(owned), 0, 0
    cut = owned.part[owned.high] != owned.partition
    return kernels.total(~cut & ~outer), kernels.total(~cut & outer), kernels.total(cut)


def _ghosts(owned: OwnedEdges, counted: Counted, parts: Mapping[int, Reply], partitions: int) -> list[GhostEdges]:
    """The distinct ghosts of each owner: from its lists and from its reply. Empty for a single partition."""
    merged = []
    for owner in range(partitions if partitions > 1 else 0):
        found = [counted.ghosts[owner]] if owner in counted.ghosts else []
        if owner in parts:
            found.append(parts[owner].ghosts)
        if not found:
            none = owned.rank[:0]
            merged.append(GhostEdges(none.astype(np.int32), none, none))
            continue
        edge = np.concatenate([g.edge for g in found])
        ascending = order.order_by(edge, order.largest(edge) + 1)
        first = ascending[order.heads(edge[ascending])]
        low, high = (np.concatenate([getattr(g, name) for g in found])[first] for name in ("low", "high"))
        merged.append(GhostEdges(edge[first], low, high))
    return merged


def _subscribers(
    number: NDArray[np.int32], counted: Counted, parts: Mapping[int, Reply]
) -> tuple[NDArray[np.int64], NDArray[np.int16]]:
    """Subscribers of each owned local edge, ascending: partitions whose lists it closed, and partitions that found
    triangles with it in a list of this partition.
    """
    senders, edges = [], []
    for q in sorted(set(counted.subscribed) | set(parts)):
        known = [counted.subscribed[q]] if q in counted.subscribed else []
        if q in parts:
            known.append(parts[q].edge)
        edges.append(order.distinct(np.concatenate(known)))
        senders.append(np.full_like(number, q, np.int16, shape=(len(edges[-1]),)))
    if not edges:
        no_offsets = np.broadcast_to(np.zeros(1, np.int64, like=number), len(number) + 1)
        return no_offsets, np.zeros(0, np.int16, like=number)
    index = order.lookup(number, np.concatenate(edges))
    by_edge = order.order_by(index, len(number))
    return order.offsets(kernels.bincount(index, len(number))), np.concatenate(senders)[by_edge]
