"""Triangles inside DN-graphs. Two edges of DN-graphs that meet are of one, so a triangle of such edges lies in one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels.held import Held
from .. import order
from ..errors import InternalError
from ..messages import Bundle, bundle
from .groups import BucketGroups
from .merge import component_ids


@dataclass(frozen=True)
class Sums(Held):
    """Supports of edges on their way to the bucket that publishes their DN-graph. `len()` counts DN-graphs."""

    id: NDArray[np.int64]
    """[DN-graphs] ascending."""
    support: NDArray[np.int64]
    """[DN-graphs] sum over edges."""

    def __len__(self) -> int:
        return len(self.id)


def send_triangles(
    groups: BucketGroups, starts: NDArray[np.int64], highest: int, place: NDArray[np.int32], support: NDArray[np.int32]
) -> Bundle[Sums]:
    """Bucket → buckets: what its edges of DN-graphs, `support` [edges] in DN-graph `place` [edges], add up to."""
    total = kernels.to_host(kernels.sums_at(kernels.positions(place), support, len(groups.id)))
    known = np.flatnonzero(groups.is_dn_graph)
    ids, part = np.unique(groups.id[known], return_inverse=True)  # several of a bucket's may be one in the graph
    sums = np.zeros(len(ids), np.int64)
    np.add.at(sums, part, total[known])
    cuts = np.searchsorted(ids, component_ids(starts, np.zeros(1, np.int32), highest))
    return bundle(
        groups.bucket,
        {b: Sums(ids[cuts[b] : cuts[b + 1]], sums[cuts[b] : cuts[b + 1]]) for b in range(len(starts) - 1)},
    )


def collect_triangles(groups: BucketGroups, parts: Mapping[int, Sums]) -> NDArray[np.int64]:
    """[DN-graphs of the bucket] triangles inside."""
    graphs = groups.dn_graphs
    total = np.zeros(len(graphs), np.int64)
    for part in parts.values():
        total[order.lookup(graphs.id, part.id)] += part.support
    if (total % 3).any():
        raise InternalError(f"bucket {groups.bucket} has a DN-graph whose supports are no multiple of three")
    return total // 3
