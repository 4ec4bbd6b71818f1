"""Copies of the graph for the workers that peel its bands, and a count of triangles that all workers share."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels.graph import IntArray, LongArray, Topology
from ..device import MemorySpace
from ..errors import InternalError
from ..graph import Subgraph, WholeGraph
from ..ingest import OwnedEdges
from ..messages import Payload
from ..shards.carriers.carrier import Carrier, all_gather
from ..shards.carriers.gpu_memory import send_all
from .sums import sums_over

L = TypeVar("L", bound="OrientedLists")


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
    """The array, or a copy if it is read-only, as arrays of other workers are: CPU kernels need writable arrays."""
    return array.copy() if kernels.on_host(array) and not array.flags.writeable else array


def oriented_lists(edges: OwnedEdges) -> OrientedLists:
    """Task: the lists that other workers need to count triangles."""
    return OrientedLists(edges.offsets, edges.high)


def graph_copy(graph: Subgraph | WholeGraph) -> GraphCopy:
    """Task: the edges and triangles of the only partition, which other workers need to peel bands."""
    if isinstance(graph, WholeGraph):
        kept = kernels.nonzero(graph.support)
        offsets = np.searchsorted(kept, graph.offsets).astype(np.int64)
        return GraphCopy(offsets, kernels.take(graph.high, kept), kernels.take(graph.support, kept))
    topology = graph.topology
    vertices = np.arange(topology.vertices + 1, dtype=np.int32, like=topology.low)
    return GraphCopy(np.searchsorted(topology.low, vertices).astype(np.int64), topology.high, graph.first_counts())


def share_copy(kind: type[L], own: L | None, carrier: Carrier) -> L:
    """Send the graph that one worker has to all workers. Returns a copy of it in GPU memory on each worker.

    The worker with the graph passes it as `own`, the others pass None. `carrier` comes from `between_gpus`. Raises
    InternalError unless exactly one worker has a graph, and the errors of `Carrier.exchange`.
    """
    told = b"" if own is None else json.dumps([getattr(own, each.name).dtype.str for each in fields(own)]).encode()
    heads = all_gather(carrier, told)
    holders = [rank for rank, head in enumerate(heads) if head]
    if len(holders) != 1:
        raise InternalError(f"{len(holders)} workers have the graph that one of them sends to the others")
    receivers, nothing = range(carrier.groups), MemorySpace.DEVICE.place(np.empty(0, np.uint32))
    arrays = []
    for each, dtype in zip(fields(kind), json.loads(heads[holders[0]]), strict=True):
        words = nothing if own is None else getattr(own, each.name).view(np.uint32)
        arrays.append(send_all(carrier, words, receivers)[holders[0]].view(dtype))
    return kind(*arrays)


def bring_together(found: Mapping[int, IntArray], carrier: Carrier, receiver: int) -> dict[int, IntArray]:
    """Bring λ of the bands that each worker has peeled, `found`, to the worker `receiver`.

    Returns band → λ of its edges: for all bands on the receiver, and on every other worker for its own bands. `carrier`
    and errors are as for `share_copy`.
    """
    nothing = MemorySpace.DEVICE.place(np.empty(0, np.int32))
    heads = [
        json.loads(text) for text in all_gather(carrier, json.dumps([(b, len(f)) for b, f in found.items()]).encode())
    ]
    own = np.concatenate([nothing, *found.values()]).view(np.uint32)
    words = send_all(carrier, own, [receiver])
    if carrier.rank != receiver:
        return dict(found)
    brought = {}
    for head, received in zip(heads, words, strict=True):
        ends = np.cumsum([0, *(size for _, size in head)]).tolist()
        for (band, _), (first, stop) in zip(head, pairwise(ends), strict=True):
            brought[band] = received[first:stop].view(np.int32)
    return brought


def count_share(lists: OrientedLists, carrier: Carrier) -> IntArray | None:
    """Count the triangles of each edge, int32 [edges]: every worker counts a share, and worker 0 gets the sums.

    Returns None on the other workers. Raises InternalError if the sum of all counts is not divisible by three, and the
    errors of `Carrier.exchange`.
    """
    sums = sums_over(carrier)
    support = kernels.supports(_own(lists.offsets), _own(lists.high), sums.rank, sums.workers)
    changes = kernels.changes(np.zeros_like(support), support)
    sums.add(changes)
    if kernels.total(changes.count) % 3:
        raise InternalError(f"the workers counted {-kernels.total(changes.count):,} edges of triangles")
    return -changes.count if sums.rank == 0 else None
