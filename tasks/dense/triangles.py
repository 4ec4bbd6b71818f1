"""Triangles inside DN-graphs. Two edges of DN-graphs that meet are of one, so a triangle of such edges lies in one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels.runtime.sizes import SizedArrays
from ..errors import InternalError
from ..ids import order
from ..ids.order import Ints
from ..ingest.numbering import BucketEdges
from ..messages import Bundle, Payload, bundle
from .groups import BucketGroups, DnEdges
from .merge import component_ids

COUNTER = 0
"""Number of the one task that counts triangles, where one task does."""


@dataclass(frozen=True)
class DnEdgeEnds(Payload):
    """Edges of DN-graphs on their way to the task that counts their triangles. `len()` counts them."""

    low: Ints
    """[edges] dense number of the smaller end."""
    high: Ints
    """[edges] dense number of the larger end; sorted by (low, high)."""
    ids: NDArray[np.int64]
    """[DN-graphs] as in DnEdges."""
    place: NDArray[np.int32]
    """[edges] as in DnEdges."""

    def __len__(self) -> int:
        return len(self.low)


@dataclass(frozen=True)
class Sums(SizedArrays):
    """Sums of supports on their way to the bucket that publishes the DN-graph. `len()` counts DN-graphs."""

    id: NDArray[np.int64]
    """[DN-graphs] ascending."""
    support: NDArray[np.int64]
    """[DN-graphs] sum over edges."""

    def __len__(self) -> int:
        return len(self.id)


def send_dn_edges(kept: DnEdges) -> Bundle[DnEdgeEnds]:
    """Bucket → one task: the edges of its DN-graphs."""
    edges = kept.edges
    low = order.shifted(edges.low, edges.first, edges.all_vertices)
    ends = DnEdgeEnds(low, edges.highs[edges.high], kept.ids, kept.place)
    return bundle(edges.bucket, {COUNTER: ends})


def merge_dn_edges(parts: Mapping[int, DnEdgeEnds]) -> tuple[NDArray[np.int64], NDArray[np.int32], BucketEdges]:
    """The edges of all DN-graphs in one bucket, over their own vertices only, from at least one part.

    Gives the DN-graphs' ids, ascending, for each edge the position of its DN-graph in these, and the edges.
    """
    own = [parts[sender] for sender in sorted(parts)]
    ids, positions = np.unique(np.concatenate([part.ids for part in own]), return_inverse=True)
    ends = np.cumsum([len(part.ids) for part in own])[:-1]
    tables = np.split(positions.astype(np.int32), ends)
    place = [np.asarray(table, like=part.place)[part.place] for table, part in zip(tables, own, strict=True)]
    low, high = (np.concatenate([getattr(part, name) for part in own]) for name in ("low", "high"))
    vertex, (low, high) = order.encode(low, high)
    highs, (high,) = order.encode(high)
    starts = np.array([0, len(vertex)], np.int64)
    return ids, np.concatenate(place), BucketEdges(0, starts, low, high, highs, 0)


def send_sums(
    sender: int,
    starts: NDArray[np.int64],
    highest: int,
    ids: NDArray[np.int64],
    place: NDArray[np.int32],
    support: NDArray[np.int32],
) -> Bundle[Sums]:
    """Sender → buckets: the sum of `support` [edges] of each DN-graph, to the bucket that publishes it.

    `ids` [DN-graphs] ascend, `place` [edges] are positions in them, `starts` [buckets + 1] are the first dense numbers
    of the buckets, `highest` is the largest λ.
    """
    total = kernels.to_host(kernels.scatter_sum(place, support, len(ids)))
    cuts = np.searchsorted(ids, component_ids(starts, np.zeros(1, np.int32), highest))
    runs = (slice(cuts[b], cuts[b + 1]) for b in range(len(starts) - 1))
    return bundle(sender, {b: Sums(ids[run], total[run]) for b, run in enumerate(runs)})


def collect_triangles(groups: BucketGroups, parts: Mapping[int, Sums]) -> NDArray[np.int64]:
    """[DN-graphs of the bucket] triangles inside each.

    Raises InternalError if the supports of a DN-graph do not add up to a multiple of three.
    """
    graphs = groups.dn_graphs
    total = np.zeros(len(graphs), np.int64)
    for part in parts.values():
        total[order.lookup(graphs.id, part.id)] += part.support
    if (total % 3).any():
        raise InternalError(f"bucket {groups.bucket} has a DN-graph whose supports are no multiple of three")
    return total // 3
