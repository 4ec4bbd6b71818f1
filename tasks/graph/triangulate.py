"""Supports and ghosts by sending oriented lists. The owner of edge (b, c) finds each triangle a < b < c, once.

In order:

    exchange 1   send_lists   partitions → partitions: count_triangles, over own and received lists
    exchange 2   Counted.replies   partitions → partitions: subgraph.build_subgraph

For a triangle a < b < c in degree order, edges (a, b) and (a, c) belong to the owner of a and (b, c) to the owner of
b: at most two partitions. The owner of a sends N⁺(a). The owner of b intersects it with N⁺(b) and keeps (a, b) and
(a, c) as ghosts. It replies with the number of triangles of each list entry, and with its own edges that are ghosts at
the owner of a.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels.graph import MAX_TRIANGLES, MAX_TRIANGLES_ON_GPU
from ...kernels.runtime.sizes import SizedArrays
from ..errors import OutOfRoom
from ..ids import order
from ..ingest import OwnedEdges
from ..messages import Bundle, Payload, bundle


@dataclass(frozen=True)
class Lists(Payload):
    """Oriented lists sent to another partition. `len()` is the number of entries."""

    starts: NDArray[np.int64]
    """[lists + 1] start of each list. A list is a tail of N⁺(a) for some a, ascending."""

    low: NDArray[np.int64]
    """[lists] rank of a."""

    member: NDArray[np.int64]
    """[entries] rank of the other end."""

    edge: NDArray[np.int32]
    """[entries] number of edge (a, member) at its owner."""

    def __len__(self) -> int:
        return len(self.member)


@dataclass(frozen=True)
class GhostEdges(Payload):
    """Edges of another partition that share a triangle with an edge of this one. `len()` is the number of edges."""

    edge: NDArray[np.int32]
    """[ghosts] number at the owner, ascending."""

    low: NDArray[np.int64]
    """[ghosts] rank of the low end."""

    high: NDArray[np.int64]
    """[ghosts] rank of the high end."""

    def __len__(self) -> int:
        return len(self.edge)


@dataclass(frozen=True)
class Reply(Payload):
    """The triangles that a receiver of lists found in them. `len()` is the number of list entries with triangles."""

    edge: NDArray[np.int32]
    """[entries] edge numbers at the list's owner."""

    triangles: NDArray[np.int32]
    """[entries] triangles found."""

    ghosts: GhostEdges
    """Edges of the replying partition, which become ghosts at the list's owner."""

    def __len__(self) -> int:
        return len(self.edge)


@dataclass(frozen=True)
class Counted(SizedArrays):
    """The triangles and ghosts of one partition after intersecting all lists."""

    support: NDArray[np.int32]
    """[owned edges] triangles found in this partition."""

    outer: NDArray[np.bool_]
    """[owned edges] true if the third vertex of a triangle found here belongs to another partition."""

    ghosts: Mapping[int, GhostEdges]
    """Owner → its edges (a, b), (a, c) of triangles found here."""

    subscribed: Mapping[int, NDArray[np.int32]]
    """Partition → owned edges (b, c), ascending, that closed triangles of its lists and become ghosts there."""

    replies: Bundle[Reply]


def send_lists(owned: OwnedEdges, partitions: int) -> Bundle[Lists]:
    """Partition → partitions: each oriented list, to the partitions that own a member other than the last."""
    if partitions == 1:
        return bundle(owned.partition, {})
    low = owned.rank[kernels.row_numbers(owned.offsets)]
    packed = kernels.pack_lists(owned.offsets, owned.high, owned.part, owned.partition, partitions)
    lists = {}
    for q, (starts, edge) in packed.items():
        lists[q] = Lists(starts, low[edge[starts[:-1]]], owned.rank[owned.high[edge]], edge)
    return bundle(owned.partition, lists)


def count_alone(owned: OwnedEdges) -> NDArray[np.int32]:
    """The triangles of each edge of the only partition, int32 [edges]."""
    return count_triangles(owned, {}).support


def counted_before(owned: OwnedEdges, support: NDArray[np.int32]) -> Counted:
    """As `count_triangles` of the only partition, whose `support` [owned edges] is known. Raises OutOfRoom as that."""
    check_supports(support)
    return Counted(support, np.zeros(len(owned), np.bool_), {}, {}, bundle(owned.partition, {}))


def count_triangles(owned: OwnedEdges, parts: Mapping[int, Lists]) -> Counted:
    """Find the triangles of the partition's own lists and of received lists.

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
        # Each edge of the sender is in one list only, so the entries are distinct edges, ascending.
        of_list = np.searchsorted(lists.starts, hit, side="right") - 1
        ghosts[sender] = GhostEdges(lists.edge[hit], lists.low[of_list], lists.member[hit])
        subscribed[sender] = shared
        mine = GhostEdges(shared, owned.rank[low[shared]], owned.rank[owned.high[shared]])
        replies[sender] = Reply(lists.edge[hit], gain[hit], mine)
    return Counted(support, outer, ghosts, subscribed, bundle(owned.partition, replies))


def supports(counted: Counted, parts: Mapping[int, Reply]) -> NDArray[np.int32]:
    """The triangles of each owned edge, int32 [owned edges]: those found here plus the replies to its lists.

    Raises OutOfRoom as `check_supports` does.
    """
    support = counted.support.copy()
    for reply in parts.values():
        support[reply.edge] += reply.triangles
        check_supports(support[reply.edge])
    return support


def check_supports(support: NDArray[np.int32]) -> None:
    """Raise OutOfRoom for an edge with more triangles than kernels can tell from marks of removed edges or ghosts.

    Must be called after each addition of two int32: a sum that overflows is negative, and too large as uint32.
    """
    most = MAX_TRIANGLES if kernels.on_host(support) else MAX_TRIANGLES_ON_GPU
    found = order.largest(support.view(np.uint32))
    if found > most:
        change = "" if most == MAX_TRIANGLES else "use cluster.device=cpu, or "
        raise OutOfRoom(
            f"an edge is in {found:,} triangles, over the {most:,} that can be counted here: "
            f"{change}leave out the vertices of the highest degree"
        )
