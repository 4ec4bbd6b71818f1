"""In which shards vertices have rows, and edges rows at both ends."""

from __future__ import annotations

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from edgemill.kernels.cpu.shards import Cut


@njit(cache=True, nogil=True)
def _find_last(low, high, lam, class_of, last):
    """[vertices, shards] 1 + the highest λ of an edge to a neighbour of that class, 0 without."""
    for e in range(low.size):
        u, v, value = low[e], high[e], lam[e] + 1
        last[u, class_of[v]] = max(last[u, class_of[v]], value)
        last[v, class_of[u]] = max(last[v, class_of[u]], value)


@njit(parallel=True, cache=True, nogil=True)
def _count_both(low, high, lam, last):
    """Pairs of an edge and a shard in which both ends have a row at all, and when the edge is removed."""
    both, late = 0, 0
    for e in prange(low.size):
        u, v = last[low[e]], last[high[e]]
        for p in range(u.size):
            both += (u[p] > 0) & (v[p] > 0)
            late += (u[p] > lam[e]) & (v[p] > lam[e])
    return both, late


def count_rows(
    low: NDArray[np.int32], high: NDArray[np.int32], lam: NDArray[np.int32], vertices: int, shards: int
) -> tuple[int, int, int]:
    """`ShardCounts.rows`, `both`, `late` of edges [edges] with their λ, vertices numbered by ascending degree."""
    class_of = Cut(vertices, shards).classes(np.arange(vertices, dtype=np.uint32))
    last = np.zeros((vertices, shards), np.int32)
    _find_last(low, high, lam, class_of, last)
    both, late = _count_both(low, high, lam, last)
    return int(np.count_nonzero(last)), both, late
