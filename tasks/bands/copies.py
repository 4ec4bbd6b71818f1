"""Copies of the graph for the workers that peel its bands, and triangles that each counts for a share of the edges."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ... import kernels
from ...kernels.cpu.peeling.changes import lower, owned
from ...kernels.cpu.whole_triangles import count_whole
from ...kernels.graph import IntArray, LongArray, Topology
from ..errors import InternalError
from ..graph.subgraph import Subgraph
from ..graph.whole_graph import check_alone
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
        return Topology(kernels.row_numbers(owned(self.offsets)), owned(self.high), len(self.offsets) - 1)


def oriented_lists(edges: OwnedEdges) -> OrientedLists:
    """Task: what other workers need to count triangles."""
    return OrientedLists(edges.offsets, edges.high)


def graph_copy(subgraph: Subgraph) -> GraphCopy:
    """Task: what other workers need of the only partition. Raises InternalError for a subgraph with ghosts."""
    check_alone(subgraph)
    topology = subgraph.topology
    offsets = np.searchsorted(topology.low, np.arange(topology.vertices + 1, dtype=np.int32)).astype(np.int64)
    return GraphCopy(offsets, topology.high, subgraph.first_counts())


def count_share(lists: OrientedLists, carrier: Carrier) -> IntArray | None:
    """The triangles of each edge, int32 [edges], of which every worker counts a share; None except on worker 0.

    Raises InternalError unless all triangles arrive; as `Carrier.exchange`.
    """
    sums = Sums(carrier)
    support, gain = count_whole(owned(lists.offsets), owned(lists.high), sums.rank, sums.workers)
    support += gain
    packed, facts = sums.add(-support, support[:0], True, ())
    if sums.rank:
        return None
    total, arrived = np.zeros(len(lists), np.int32), 0
    for words, first in packed:
        arrived += lower(words, first, total, 0)[1]
    if arrived != sum(own[0] for own in facts) or arrived % 3:
        raise InternalError(
            f"the workers counted {sum(own[0] for own in facts):,} edges of triangles, {arrived:,} arrived"
        )
    return -total
