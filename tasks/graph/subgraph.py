"""The edges with triangles of a graph that one worker holds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels.graph import MAX_LOCAL_EDGES, Topology
from ...kernels.runtime.sizes import SizedArrays
from ..errors import OutOfRoom
from ..ingest import OwnedEdges
from .triangulate import check_supports


@dataclass(frozen=True)
class PartitionCounts:
    """Edge and vertex counts of the only partition, or of one group of shards, for the manifest."""

    partition: int
    owned: int
    inner: int
    """Owned edges whose ends are both of the group's classes; all edges of the only partition."""
    cut: int
    """The other owned edges."""
    vertices: int
    """Ends of owned edges."""


@dataclass(frozen=True)
class Subgraph(SizedArrays):
    """The edges with triangles of the only partition, sorted by (low, high) in degree order: its *local* edges."""

    support: NDArray[np.int32]
    """[edges] triangles of each edge, 0 included; in the order of OwnedEdges."""

    topology: Topology
    """Vertices and local edges."""

    number: NDArray[np.int32]
    """[local edges] positions in OwnedEdges, ascending."""

    counts: PartitionCounts

    def first_counts(self) -> NDArray[np.int32]:
        """[local edges] triangles of each."""
        return kernels.take(self.support, self.number)


def build_subgraph(owned: OwnedEdges, support: NDArray[np.int32]) -> Subgraph:
    """The subgraph of the only partition, whose edges have `support` int32 [edges] triangles.

    Raises OutOfRoom for more than 2^31 - 2 edges with triangles, and as `check_supports`.
    """
    check_supports(support)
    number = kernels.nonzero(support)
    if len(number) > MAX_LOCAL_EDGES:
        raise OutOfRoom(
            f"the graph has {len(number):,} edges with triangles, over the {MAX_LOCAL_EDGES:,} that one worker can "
            "hold; raise partitioning.count"
        )
    low, high = (kernels.take(ends, number) for ends in (kernels.row_numbers(owned.offsets), owned.high))
    topology = Topology(low, high, len(owned.rank))
    return Subgraph(support, topology, number, counts_of(owned))


def counts_of(owned: OwnedEdges) -> PartitionCounts:
    """The counts of the only partition."""
    return PartitionCounts(0, len(owned), len(owned), 0, len(owned.rank))
