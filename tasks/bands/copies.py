"""Copies of the graph for the workers that peel its bands, and triangles that each counts for a share of the edges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels.cpu.peeling.changes import owned
from ...kernels.graph import IntArray, LongArray, Topology
from ..errors import InternalError
from ..graph.subgraph import Subgraph
from ..graph.whole_graph import WholeGraph
from ..ingest import OwnedEdges
from ..messages import Payload
from ..shards.carriers.carrier import Carrier
from .sums import Sums


@dataclass(frozen=True)
class OrientedLists(Payload):
    """All edges of a graph, by their lower ends in degree order. `len()` is the number of edges."""

    offsets: LongArray
    """[vertices + 1] start of each list."""
    high: IntArray
    """[edges] higher ends, ascending within a list."""

    def __len__(self) -> int:
        return len(self.high)


@dataclass(frozen=True)
class GraphCopy(OrientedLists):
    """All edges with triangles of a graph, and their triangles."""

    support: IntArray
    """[edges] triangles of each edge."""

    def topology(self) -> Topology:
        """The graph for kernels."""
        return Topology(kernels.row_numbers(_own(self.offsets)), _own(self.high), len(self.offsets) - 1)


def _own(array: NDArray[Any]) -> NDArray[Any]:
    """An array for kernels, which may be one of another worker."""
    return owned(array) if kernels.on_host(array) else array


def oriented_lists(edges: OwnedEdges) -> OrientedLists:
    """Task: what other workers need to count triangles."""
    return OrientedLists(edges.offsets, edges.high)


def graph_copy(graph: Subgraph | WholeGraph) -> GraphCopy:
    """Task: what other workers need of the only partition."""
    if isinstance(graph, WholeGraph):
        kept = kernels.nonzero(graph.support)
        offsets = np.searchsorted(kept, graph.offsets).astype(np.int64)
        return GraphCopy(offsets, kernels.take(graph.high, kept), kernels.take(graph.support, kept))
    topology = graph.topology
    vertices = np.arange(topology.vertices + 1, dtype=np.int32, like=topology.low)
    return GraphCopy(np.searchsorted(topology.low, vertices).astype(np.int64), topology.high, graph.first_counts())


def count_share(lists: OrientedLists, carrier: Carrier) -> IntArray | None:
    """The triangles of each edge, int32 [edges], of which every worker counts a share; None except on worker 0.

    Raises InternalError unless all triangles arrive; as `Carrier.exchange`.
    """
    sums = Sums(carrier)
    support = kernels.supports(_own(lists.offsets), _own(lists.high), sums.rank, sums.workers)
    changes = kernels.changes(np.zeros_like(support), support)
    sums.add(changes)
    if kernels.total(changes.count) % 3:
        raise InternalError(f"the workers counted {-kernels.total(changes.count):,} edges of triangles")
    return -changes.count if sums.rank == 0 else None
