"""The classes of vertices: which shard stores the entries that lead to a vertex, and under which number."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from ...device import on_host


@njit(cache=True, nogil=True, inline="always")
def class_of(vertex, vertices, shards):
    """The class of a vertex; see `Cut`. All numbers are uint32: a signed division costs twice as much."""
    rank = vertices - np.uint32(1) - vertex
    block = rank // shards
    step = rank - block * shards
    return step if block & np.uint32(1) == np.uint32(0) else shards - np.uint32(1) - step


@njit(cache=True, nogil=True, inline="always")
def index_of(vertex, vertices, shards):
    """The number of a vertex within its class."""
    return (vertices - np.uint32(1) - vertex) // shards


@njit(parallel=True, cache=True, nogil=True)
def _classes(vertex, vertices, shards, found):
    for i in prange(vertex.size):
        found[i] = class_of(vertex[i], vertices, shards)


@dataclass(frozen=True)
class Cut:
    """Deals vertices to classes in order of descending degree, back and forth, so that hubs are spread evenly.

    Vertices are numbered by ascending degree. The vertex of rank r from the top has the number r // shards in its
    class. Each run of `shards` vertices has one vertex of each class.
    """

    vertices: int
    """All vertices of the graph, at most 2^32 - 2."""
    shards: int
    """Classes, and so shards; at least 1."""

    def classes(self, vertex: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """The class of each vertex, uint32, where these lie. Raises ValueError for an array of other than one
        dimension.
        """
        if vertex.ndim != 1:
            raise ValueError(f"vertices in {vertex.ndim} dimensions, not one")
        if not on_host(vertex):
            rank = np.uint32(max(self.vertices, 1) - 1) - vertex
            block = rank // np.uint32(self.shards)
            step = rank - block * np.uint32(self.shards)
            elsewhere: NDArray[np.uint32] = np.where(block & np.uint32(1), np.uint32(self.shards - 1) - step, step)
            return elsewhere
        vertex = np.asarray(vertex, np.uint32)
        found = np.empty(vertex.shape, np.uint32)
        _classes(vertex, np.uint32(self.vertices), np.uint32(self.shards), found)
        return found

    @property
    def members(self) -> NDArray[np.int64]:
        """[shards] vertices of each class, int64."""
        whole, rest = divmod(self.vertices, self.shards)
        last = np.arange(self.shards) if whole % 2 == 0 else np.arange(self.shards)[::-1]
        return whole + (last < rest)

    @property
    def width(self) -> int:
        """Numbers that the vertices of a class may have."""
        return -(-self.vertices // self.shards)
