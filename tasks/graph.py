"""From the edges of a graph that one worker holds to what is bounded: supports, and the edges with triangles.

`count_triangles` gives the triangles of each edge, `build_subgraph` leaves out the edges without any. `whole_graph` is
for a run whose only partition is peeled on a GPU: a `Subgraph` stores 12 bytes more for each edge with triangles, its
ends and its number.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .. import kernels
from ..kernels.graph import MAX_LOCAL_EDGES, MAX_TRIANGLES, MAX_TRIANGLES_ON_GPU, Topology
from ..kernels.runtime.sizes import SizedArrays
from .errors import OutOfRoom
from .ids import order
from .ingest import OwnedEdges


def count_triangles(owned: OwnedEdges) -> NDArray[np.int32]:
    """The triangles of each edge of the only partition, int32 [edges]. Raises OutOfRoom as `check_supports` does."""
    support = kernels.supports(owned.offsets, owned.high)
    check_supports(support)
    return support


def count_butterflies(owned: OwnedEdges) -> NDArray[np.int32]:
    """The butterflies of each edge of the only partition, int32 [edges], if its graph has two sides. In host memory."""
    from ..kernels.cpu.butterflies import count_butterflies  # imports Numba

    low = kernels.row_numbers(owned.offsets)
    rows = kernels.adjacency(Topology(low, owned.high, len(owned.rank)))
    return count_butterflies(rows, len(low)).support


def wedges_to_walk(owned: OwnedEdges) -> int:
    """The wedges that `count_butterflies` walks, from the degrees alone: those whose middle is not the highest vertex.

    Vertices are in degree order. A middle with d edges, h of them to higher vertices, has d(d - 1)/2 wedges, of which
    those to two lower vertices are left out.
    """
    above = np.diff(owned.offsets).astype(np.int64)
    below = kernels.bincount(owned.high, len(above))
    degree = above + below
    return int((degree * (degree - 1) - below * (below - 1)).sum()) // 2


def check_supports(support: NDArray[np.int32]) -> None:
    """Raise OutOfRoom for an edge with more triangles than kernels can tell from marks of removed edges.

    A sum of int32 that overflowed is negative, and too large as uint32.
    """
    most = MAX_TRIANGLES if kernels.on_host(support) else MAX_TRIANGLES_ON_GPU
    found = order.largest(support.view(np.uint32))
    if found > most:
        change = "" if most == MAX_TRIANGLES else "use cluster.device=cpu, or "
        raise OutOfRoom(
            f"an edge is in {found:,} triangles, over the {most:,} that can be counted here: "
            f"{change}leave out the vertices of the highest degree"
        )


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

    index_bytes: int | None = None
    """Memory for an index of butterflies, if supports count these; None if they count triangles."""

    def first_counts(self) -> NDArray[np.int32]:
        """[local edges] triangles of each."""
        return kernels.take(self.support, self.number)


def build_subgraph(owned: OwnedEdges, support: NDArray[np.int32], index_bytes: int | None = None) -> Subgraph:
    """The subgraph of the only partition, whose edges have `support` int32 [edges] triangles. With `index_bytes`
    these are butterflies; see `Subgraph`.

    Raises OutOfRoom for more than 2^31 - 2 edges with triangles, and as `check_supports`.
    """
    if index_bytes is None:
        check_supports(support)
    number = kernels.nonzero(support)
    if len(number) > MAX_LOCAL_EDGES:
        raise OutOfRoom(
            f"the graph has {len(number):,} edges with triangles, over the {MAX_LOCAL_EDGES:,} that one worker can "
            "hold; raise partitioning.count"
        )
    low, high = (kernels.take(ends, number) for ends in (kernels.row_numbers(owned.offsets), owned.high))
    topology = Topology(low, high, len(owned.rank))
    return Subgraph(support, topology, number, counts_of(owned), index_bytes)


def counts_of(owned: OwnedEdges) -> PartitionCounts:
    """The counts of the only partition."""
    return PartitionCounts(0, len(owned), len(owned), 0, len(owned.rank))


@dataclass(frozen=True)
class WholeGraph(SizedArrays):
    """All edges of a graph as a CSR of their lower ends, with their triangles. An edge's number has 64 bits."""

    offsets: NDArray[np.int64]
    """[vertices + 1] start of each row."""

    high: NDArray[np.int32]
    """[edges] higher ends, ascending within a row."""

    support: NDArray[np.int32]
    """[edges] triangles of each edge, 0 included."""

    counts: PartitionCounts


def whole_graph(owned: OwnedEdges, support: NDArray[np.int32] | None = None) -> WholeGraph:
    """Count the triangles of the only partition, on the GPU, unless the `support` [edges] is known.

    Raises OutOfRoom as `check_supports` does. Ends and triangles are in mapped host memory if the device has no room
    for peeling beside them.
    """
    from ..kernels.gpu.triangles import supports  # imports CuPy
    from ..kernels.gpu.whole_graph import beside_peeling

    support = supports(owned.offsets, owned.high) if support is None else kernels.to_device(support)
    check_supports(support)
    local = kernels.total(support > 0)
    high, support = beside_peeling(len(owned.offsets) - 1, local, owned.high, support)
    return WholeGraph(owned.offsets, high, support, counts_of(owned))
