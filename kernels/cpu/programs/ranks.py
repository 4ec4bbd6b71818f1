"""PageRank's arithmetic over all vertices, in one pass of several threads each."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import prange
from numpy.typing import NDArray

from ...runtime.cache import cached_njit
from .chunks import even_chunks, threads_for


@cached_njit(parallel=True)
def _shares(cuts, rank, degree, shares):
    for chunk in prange(cuts.size - 1):
        for v in range(cuts[chunk], cuts[chunk + 1]):
            if degree[v]:
                shares[v] = rank[v] / degree[v]


@cached_njit(parallel=True)
def _next(cuts, got, damping, restarts, rank, moved):
    for chunk in prange(cuts.size - 1):
        for v in range(cuts[chunk], cuts[chunk + 1]):
            after = damping * got[v] + restarts
            moved[v] = abs(after - rank[v])
            rank[v] = after


def rank_shares(rank: NDArray[np.float64], degree: NDArray[Any], shares: NDArray[np.float64]) -> None:
    """Write each rank over its integer degree to `shares`; those of degree 0 stay as they are. All [vertices]."""
    with threads_for(len(rank)):
        _shares(even_chunks(len(rank)), rank, degree, shares)


def next_ranks(
    got: NDArray[np.float64], damping: float, restarts: float, rank: NDArray[np.float64], moved: NDArray[np.float64]
) -> None:
    """Replace each rank by `damping` × `got` + `restarts`, and write how much it changed to `moved`. All [vertices]."""
    with threads_for(len(rank)):
        _next(even_chunks(len(rank)), got, damping, restarts, rank, moved)
