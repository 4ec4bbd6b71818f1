"""A partition's subgraph: its owned edges that have triangles, the ghosts that share them, and its subscribers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .. import kernels
from ..kernels.graph import MAX_LOCAL_EDGES, UNCOUNTED, Topology
from ..kernels.held import Held
from . import order
from .errors import OutOfRoom
from .ingest import OwnedEdges
from .triangulate import Counted, GhostEdges, Reply, supports


@dataclass(frozen=True)
class PartitionCounts:
    """Sizes of one partition, for the manifest."""

    partition: int
    owned: int
    ghost: int
    inner: int
    peripheral: int
    cut: int
    vertices: int
    """Vertices touched by owned edges."""
    local: int
    """Owned edges that have triangles: those that need bounding."""


@dataclass(frozen=True)
class Subgraph(Held):
    """What one partition bounds. Local edges are sorted by (low, high) in degree order, owned and ghosts mixed."""

    partition: int

    partitions: int
    """Partitions of the run."""

    support: NDArray[np.int32]
    """[owned edges] triangles, those without any included; numbered as in OwnedEdges."""

    topology: Topology
    """Local vertices and edges."""

    is_owned: NDArray[np.bool_]
    """[local edges] true for owned edges."""

    owned: NDArray[np.int32]
    """[owned local edges] local numbers, ascending."""

    number: NDArray[np.int32]
    """[owned local edges] numbers as in OwnedEdges, ascending: the names of these edges in messages."""

    ghost: NDArray[np.int32]
    """[ghosts] local numbers, by (owner, number at the owner)."""

    ghost_number: NDArray[np.int32]
    """[ghosts] numbers at their owners, ascending within each owner."""

    ghost_offsets: NDArray[np.int64]
    """[partitions + 1] where each owner's ghosts start."""

    subscriber_offsets: NDArray[np.int64]
    """[owned local edges + 1] where each edge's subscribers start."""

    subscriber: NDArray[np.int16]
    """[subscriptions] partitions that hold the edge as a ghost."""

    counts: PartitionCounts

    def first_counts(self) -> NDArray[np.int32]:
        """[local edges] triangles of owned edges; UNCOUNTED for ghosts, whose owners count them."""
        count = np.full_like(self.support, UNCOUNTED, shape=(self.topology.edges,))
        count[self.owned] = self.support[self.number]
        return count


def build_subgraph(owned: OwnedEdges, counted: Counted, partitions: int, parts: Mapping[int, Reply]) -> Subgraph:
    """Put together a subgraph from what the partition counted and the replies to its lists.

    Raises OutOfRoom if it would hold more than 2^31 - 2 edges.
    """
    support, outer = supports(counted, parts), counted.outer.copy()
    for reply in parts.values():
        outer[reply.edge] = True
    number = np.flatnonzero(support).astype(np.int32)
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
    low, high, vertices = low_vertex[number], owned.high[number], len(owned.rank)
    del low_vertex
    if ghosts:
        # Vertices are coded, and not the ends of owned edges, of which there are many more.
        rank, (vertex, *ends) = order.encode(owned.rank, *(g.low for g in ghosts), *(g.high for g in ghosts))
        del ghosts  # where there are many, they are most of what is in memory here
        low = np.concatenate([vertex[low], *ends[:partitions]])
        high = np.concatenate([vertex[high], *ends[partitions:]])
        vertices = len(rank)
        del rank, vertex, ends
        by_pair = order.order_pairs(low, high, vertices, vertices)
        low, high = low[by_pair], high[by_pair]
        place = np.empty_like(low)
        place[by_pair] = np.arange(edges, dtype=np.int32, like=low)
    else:
        place = np.arange(edges, dtype=np.int32, like=low)
    is_owned = np.zeros(edges, np.bool_, like=low)
    is_owned[place[: len(number)]] = True
    offsets, subscriber = _subscribers(number, counted, parts)
    cut = owned.part[owned.high] != owned.partition
    return Subgraph(
        owned.partition,
        partitions,
        support,
        Topology(low, high, vertices),
        is_owned,
        place[: len(number)],
        number,
        place[len(number) :],
        ghost_number,
        ghost_offsets,
        offsets,
        subscriber,
        PartitionCounts(
            owned.partition,
            len(owned),
            len(ghost_number),
            int(np.count_nonzero(~cut & ~outer)),
            int(np.count_nonzero(~cut & outer)),
            int(np.count_nonzero(cut)),
            len(owned.rank),
            len(number),
        ),
    )


def _ghosts(owned: OwnedEdges, counted: Counted, parts: Mapping[int, Reply], partitions: int) -> list[GhostEdges]:
    """Each owner's ghosts, once: those of its lists, and those it named in its reply. Empty for a single partition."""
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
    """Subscribers of each owned local edge, ascending: those whose lists it closed, and those that took it from a
    list.
    """
    senders, edges = [], []
    for q in sorted(set(counted.subscribed) | set(parts)):
        known = [counted.subscribed[q]] if q in counted.subscribed else []
        if q in parts:
            known.append(parts[q].edge)
        edges.append(order.distinct(np.concatenate(known)))
        senders.append(np.full_like(number, q, np.int16, shape=(len(edges[-1]),)))
    if not edges:
        nowhere = np.broadcast_to(np.zeros(1, np.int64, like=number), len(number) + 1)
        return nowhere, np.zeros(0, np.int16, like=number)
    index = order.lookup(number, np.concatenate(edges))
    by_edge = order.order_by(index, len(number))
    return order.offsets(np.bincount(index, minlength=len(number))), np.concatenate(senders)[by_edge]
