"""PageRank's arithmetic over all vertices, in one pass of several threads each."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numba import prange
from numpy.typing import NDArray

from ...runtime.cache import cached_njit
from .chunks import even_chunks, threads_for

Floats: TypeAlias = NDArray[np.float64]


@cached_njit(parallel=True)
def _shares(cuts, rank, degree, shares):
    for chunk in prange(cuts.size - 1):
        for v in range(cuts[chunk], cuts[chunk + 1]):
            shares[v] = rank[v] / degree[v]


@cached_njit(parallel=True)
def _next(cuts, got, damping, restarts, degree, rank, moved, shares):
    for chunk in prange(cuts.size - 1):
        for v in range(cuts[chunk], cuts[chunk + 1]):
            after = damping * got[v] + restarts
            moved[v] = abs(after - rank[v])
            rank[v] = after
            shares[v] = after / degree[v]


def rank_shares(rank: Floats, degree: Floats, shares: Floats) -> None:
    """The twin on the CPU; see `kernels.programs`."""
    with threads_for(len(rank)):
        _shares(even_chunks(len(rank)), rank, degree, shares)


def next_ranks(
    got: Floats, damping: float, restarts: float, degree: Floats, rank: Floats, moved: Floats, shares: Floats
) -> None:
    """The twin on the CPU; see `kernels.programs`."""
    with threads_for(len(rank)):
        _next(even_chunks(len(rank)), got, damping, restarts, degree, rank, moved, shares)
