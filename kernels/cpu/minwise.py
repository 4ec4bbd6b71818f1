"""Min-wise samples of neighbours, and bounds that are lowered by the triangles that these samples find."""

from __future__ import annotations

import numpy as np
from numba import prange
from numpy.typing import NDArray

from ..graph import IntArray
from ..runtime.cache import cached_njit
from .arrays.mix import mixed


@cached_njit
def _hash(vertex, permutation):
    """For one permutation, distinct vertices have distinct hashes."""
    return mixed(np.uint64(vertex) + np.uint64(permutation + 1) * np.uint64(0x9E3779B97F4A7C15))


@cached_njit(parallel=True)
def _samples(low, high, permutations, vertex, edge):
    for i in prange(permutations):
        least = np.full(vertex.shape[0], np.uint64(0xFFFFFFFFFFFFFFFF))
        for e in range(low.size):
            u, v = low[e], high[e]
            of_u, of_v = _hash(u, i), _hash(v, i)
            if of_v < least[u] or vertex[u, i] < 0:
                least[u], vertex[u, i], edge[u, i] = of_v, v, e
            if of_u < least[v] or vertex[v, i] < 0:
                least[v], vertex[v, i], edge[v, i] = of_u, u, e


@cached_njit(parallel=True)
def _matches(low, high, vertex, found):
    for e in prange(low.size):
        count = 0
        for i in range(vertex.shape[1]):
            count += vertex[low[e], i] == vertex[high[e], i]
        found[e] = count


@cached_njit(parallel=True)
def _lower(low, high, vertex, edge, scale, before, after):
    for e in prange(low.size):
        u, v = low[e], high[e]
        values, count = np.empty(vertex.shape[1], np.int32), 0
        for i in range(vertex.shape[1]):
            if vertex[u, i] == vertex[v, i]:
                values[count] = min(before[edge[u, i]], before[edge[v, i]])
                count += 1
        values = np.sort(values[:count])
        best = 0
        for j in range(count):
            best = max(best, min(values[count - 1 - j], int(scale[e] * (j + 1) + 0.5)))
        after[e] = min(before[e], best)


def minwise_samples(low: IntArray, high: IntArray, vertices: int, permutations: int) -> tuple[IntArray, IntArray]:
    """See `kernels.minwise.minwise_samples`."""
    vertex = np.full((vertices, permutations), -1, np.int32)
    edge = np.full((vertices, permutations), -1, np.int32)
    _samples(low, high, permutations, vertex, edge)
    return vertex, edge


def minwise_matches(low: IntArray, high: IntArray, vertex: IntArray) -> IntArray:
    """See `kernels.minwise.minwise_matches`."""
    found = np.empty(low.size, np.int32)
    _matches(low, high, vertex, found)
    return found


def lower_by_samples(
    low: IntArray, high: IntArray, vertex: IntArray, edge: IntArray, scale: NDArray[np.float64], bound: IntArray
) -> IntArray:
    """See `kernels.minwise.lower_by_samples`."""
    after = np.empty_like(bound)
    _lower(low, high, vertex, edge, scale, bound, after)
    return after
