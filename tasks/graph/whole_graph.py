"""The graph of a run whose only partition is peeled on a GPU: its edges and their triangles, and nothing else.

A `Subgraph` stores 12 bytes for each edge with triangles beside these: its ends and its number.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels.runtime.sizes import SizedArrays
from ..ingest import OwnedEdges
from .subgraph import PartitionCounts, counts_of
from .triangulate import check_supports


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
    from ...kernels.gpu.triangles import supports  # imports CuPy
    from ...kernels.gpu.whole_graph import beside_peeling

    support = supports(owned.offsets, owned.high) if support is None else kernels.to_device(support)
    check_supports(support)
    local = kernels.total(support > 0)
    high, support = beside_peeling(len(owned.offsets) - 1, local, owned.high, support)
    return WholeGraph(owned.offsets, high, support, counts_of(owned))
