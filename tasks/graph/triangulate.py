"""The triangles of each edge of a graph that one worker holds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels.graph import MAX_TRIANGLES, MAX_TRIANGLES_ON_GPU
from ..errors import OutOfRoom
from ..ids import order
from ..ingest import OwnedEdges


def count_triangles(owned: OwnedEdges) -> NDArray[np.int32]:
    """The triangles of each edge of the only partition, int32 [edges]. Raises OutOfRoom as `check_supports` does."""
    support = kernels.supports(owned.offsets, owned.high)
    check_supports(support)
    return support


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
