"""Supports and ghosts by a push of oriented lists; every triangle is found once, by the owner of its edge (b, c).

In order:

    exchange 1   send_lists       partitions → partitions
                 count_triangles  own lists and those that came; its `replies` are
    exchange 2                    partitions → partitions: subgraph.build_subgraph

For a triangle a < b < c in degree order, edges (a, b) and (a, c) belong to the owner of a and (b, c) to the owner of
b: at most two partitions. The owner of a sends N⁺(a); the owner of b intersects it with N⁺(b), keeps (a, b) and (a, c)
as ghosts, and answers how many triangles each entry of the list took part in, and which of its own edges are ghosts
there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .. import kernels
from ..kernels.graph import MOST_TRIANGLES, MOST_TRIANGLES_ON_GPU
from ..kernels.held import Held
from . import order
from .errors import OutOfRoom
from .ingest import OwnedEdges
from .messages import Bundle, bundle


@dataclass(frozen=True)
class Lists(Held):
    """Oriented lists on their way to another partition. `len()` counts their entries."""

    starts: NDArray[np.int64]
    """[lists + 1] where each list starts; a list is the tail of some N⁺(a), ascending."""

    low: NDArray[np.int64]
    """[lists] rank of a."""

    member: NDArray[np.int64]
    """[entries] rank of the other end."""

    edge: NDArray[np.int32]
    """[entries] number of the edge (a, member) at its owner."""

    def __len__(self) -> int:
        return len(self.member)


@dataclass(frozen=True)
class GhostEdges(Held):
    """Edges of another partition that share a triangle with an edge here. `len()` counts them."""

    edge: NDArray[np.int32]
    """[ghosts] number at the owner, ascending."""

    low: NDArray[np.int64]
    """[ghosts] rank of the low end."""

    high: NDArray[np.int64]
    """[ghosts] rank of the high end."""

    def __len__(self) -> int:
        return len(self.edge)


@dataclass(frozen=True)
class Reply(Held):
    """What the receiver of lists found in them. `len()` counts the entries that it answers."""

    edge: NDArray[np.int32]
    """[entries] the edges of the list's owner that have a triangle there."""

    triangles: NDArray[np.int32]
    """[entries] how many."""

    ghosts: GhostEdges
    """Edges of the replying partition that are ghosts at the list's owner."""

    def __len__(self) -> int:
        return len(self.edge)


@dataclass(frozen=True)
class Counted(Held):
    """What one partition knows after intersecting all lists."""

    support: NDArray[np.int32]
    """[owned edges] triangles found here."""

    outer: NDArray[np.bool_]
    """[owned edges] true if a triangle found here has its third vertex elsewhere."""

    ghosts: Mapping[int, GhostEdges]
    """Owner → its edges (a, b), (a, c) of triangles found here."""

    subscribed: Mapping[int, NDArray[np.int32]]
    """Partition → own edges (b, c), ascending, that are ghosts there by its lists."""

    replies: Bundle[Reply]


def send_lists(owned: OwnedEdges, partitions: int) -> Bundle[Lists]:
    """Partition → partitions: every oriented list, to the partitions that own a member which is not its last."""
    if partitions == 1:
        return bundle(owned.partition, {})
    low = owned.rank[kernels.row_numbers(owned.offsets)]
    packed = kernels.pack_lists(owned.offsets, owned.high, owned.part, owned.partition, partitions)
    lists = {}
    for q, (starts, edge) in packed.items():
        lists[q] = Lists(starts, low[edge[starts[:-1]]], owned.rank[owned.high[edge]], edge)
    return bundle(owned.partition, lists)


def count_triangles(owned: OwnedEdges, parts: Mapping[int, Lists]) -> Counted:
    """Find the triangles of the partition's own lists and of those sent by others.

    Raises OutOfRoom as `check_supports` does.
    """
    home = owned.part == owned.partition
    support, gain, outer = kernels.intersect(owned.offsets, owned.high, owned.offsets, owned.high, home)
    support += gain
    check_supports(support)
    low = kernels.row_numbers(owned.offsets) if parts else None
    ghosts, subscribed, replies = {}, {}, {}
    for sender in sorted(parts):
        lists = parts[sender]
        members = kernels.lookup(owned.rank, lists.member)
        closed, gain, _ = kernels.intersect(lists.starts, members, owned.offsets, owned.high, home)
        support += closed
        check_supports(support)
        hit = np.flatnonzero(gain)
        if not len(hit):
            continue
        assert low is not None
        shared = np.flatnonzero(closed).astype(np.int32)
        outer[shared] = True
        # One edge of the sender stands in one list only, so the entries hit are distinct edges, ascending.
        of_list = np.searchsorted(lists.starts, hit, side="right") - 1
        ghosts[sender] = GhostEdges(lists.edge[hit], lists.low[of_list], lists.member[hit])
        subscribed[sender] = shared
        mine = GhostEdges(shared, owned.rank[low[shared]], owned.rank[owned.high[shared]])
        replies[sender] = Reply(lists.edge[hit], gain[hit], mine)
    return Counted(support, outer, ghosts, subscribed, bundle(owned.partition, replies))


def supports(counted: Counted, parts: Mapping[int, Reply]) -> NDArray[np.int32]:
    """The triangles of each owned edge, int32 [owned edges], from those found here and the replies to its lists.

    Raises OutOfRoom as `check_supports` does.
    """
    support = counted.support.copy()
    for reply in parts.values():
        support[reply.edge] += reply.triangles
        check_supports(support[reply.edge])
    return support


def check_supports(support: NDArray[np.int32]) -> None:
    """Raises OutOfRoom if an edge has more triangles than kernels tell from their marks of edges that fell and ghosts.

    To be called after each addition of two int32, whose sum wraps below zero at most: as uint32 it is too large then.
    """
    most = MOST_TRIANGLES if kernels.on_host(support) else MOST_TRIANGLES_ON_GPU
    found = order.largest(support.view(np.uint32))
    if found > most:
        change = "" if most == MOST_TRIANGLES else "use cluster.device=cpu, or "
        raise OutOfRoom(
            f"an edge is in {found:,} triangles, over the {most:,} that can be counted here: "
            f"{change}leave out the vertices of the highest degree"
        )
