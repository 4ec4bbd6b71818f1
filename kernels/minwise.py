"""Min-wise samples of neighbours (Broder, Charikar, Frieze and Mitzenmacher, "Min-wise independent permutations",
Journal of Computer and System Sciences 60(3), 2000), for arrays of the CPU.

A permutation is a hash of the vertices, and the sample of a vertex is its neighbour of smallest hash. If two vertices
have the same sample, it is a random common neighbour; the share of such permutations estimates the Jaccard similarity
of their neighbours.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .cpu import minwise as cpu
from .graph import IntArray


def _refuse_others(array: object) -> None:
    if not isinstance(array, np.ndarray):
        raise TypeError(f"min-wise samples have kernels for NumPy's arrays, not for those of {type(array).__module__}")


def minwise_samples(low: IntArray, high: IntArray, vertices: int, permutations: int) -> tuple[IntArray, IntArray]:
    """The samples of all vertices, and the edges that lead to them: int32 [vertices, permutations], -1 without edges.

    Reads the edges once for each permutation, 8 bytes an edge, and 16 bytes at each end where a sample changes.
    """
    _refuse_others(low)
    return cpu.minwise_samples(low, high, vertices, permutations)


def minwise_matches(low: IntArray, high: IntArray, vertex: IntArray) -> IntArray:
    """[edges] the number of permutations in which both ends have the same sample, int32.

    Reads 8 bytes an edge and permutation.
    """
    _refuse_others(low)
    return cpu.minwise_matches(low, high, vertex)


def lower_by_samples(
    low: IntArray, high: IntArray, vertex: IntArray, edge: IntArray, scale: NDArray[np.float64], bound: IntArray
) -> IntArray:
    """[edges] the bounds after each was lowered once, int32: to the largest t so that an estimated number of t
    triangles, or more, have both other edges bounded by at least t; each sampled triangle counts for `scale` [edges].

    Reads 8 bytes an edge and permutation, and 16 for each common sample.
    """
    _refuse_others(low)
    return cpu.lower_by_samples(low, high, vertex, edge, scale, bound)
