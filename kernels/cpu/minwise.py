"""Min-wise samples of neighbours, and bounds that are lowered by the triangles that these samples find.

Broder, Charikar, Frieze and Mitzenmacher, "Min-wise independent permutations", Journal of Computer and System Sciences
60(3), 2000. A permutation is a hash of the vertices, and the sample of a vertex is its neighbour of smallest hash. If
two vertices have the same sample, it is a random common neighbour; the share of such permutations estimates the Jaccard
similarity of their neighbours.
"""

from __future__ import annotations

import numpy as np
from numba import prange
from numpy.typing import NDArray

from ..graph import IntArray
from ..runtime.cache import cached_njit
from .arrays.intrinsics import mixed


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


def _refuse_others(array: object) -> None:
    if not isinstance(array, np.ndarray):
        raise TypeError(f"min-wise samples have kernels for NumPy's arrays, not for those of {type(array).__module__}")


def minwise_samples(low: IntArray, high: IntArray, vertices: int, permutations: int) -> tuple[IntArray, IntArray]:
    """The samples of all vertices, and the edges that lead to the samples: both int32 [vertices, permutations], and -1
    for a vertex without edges.

    Reads the edges once for each permutation, 8 bytes an edge, and 16 bytes at each end where a sample changes.
    """
    _refuse_others(low)
    vertex = np.full((vertices, permutations), -1, np.int32)
    edge = np.full((vertices, permutations), -1, np.int32)
    _samples(low, high, permutations, vertex, edge)
    return vertex, edge


def minwise_matches(low: IntArray, high: IntArray, vertex: IntArray) -> IntArray:
    """[edges] the number of permutations in which both ends have the same sample, int32.

    Reads 8 bytes an edge and permutation.
    """
    _refuse_others(low)
    found = np.empty(low.size, np.int32)
    _matches(low, high, vertex, found)
    return found


def lower_by_samples(
    low: IntArray, high: IntArray, vertex: IntArray, edge: IntArray, scale: NDArray[np.float64], bound: IntArray
) -> IntArray:
    """The bounds after each was lowered once, int32 [edges].

    The new bound is the largest t such that an estimated t or more triangles of the edge have other edges whose bounds
    both are at least t. Each sampled triangle counts for `scale` [edges] triangles. Reads 8 bytes an edge and
    permutation, and 16 for each common sample.
    """
    _refuse_others(low)
    after = np.empty_like(bound)
    _lower(low, high, vertex, edge, scale, bound, after)
    return after
