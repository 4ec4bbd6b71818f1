"""Classes of vertices. The class of a vertex is the number of the shard that stores this vertex as a neighbour."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import prange
from numpy.typing import NDArray

from ...runtime.cache import cached_njit
from ...runtime.device import on_host


@cached_njit(inline="always")
def class_of(vertex, vertices, shards):
    """The class of a vertex; see `Cut`. All values are uint32: a signed division takes twice as long."""
    rank = vertices - np.uint32(1) - vertex
    block = rank // shards
    step = rank - block * shards
    return step if block & np.uint32(1) == np.uint32(0) else shards - np.uint32(1) - step


@cached_njit(inline="always")
def index_of(vertex, vertices, shards):
    """The number of a vertex within its class."""
    return (vertices - np.uint32(1) - vertex) // shards


@cached_njit(parallel=True)
def _classes(vertex, vertices, shards, found):
    for i in prange(vertex.size):
        found[i] = class_of(vertex[i], vertices, shards)


@dataclass(frozen=True)
class Cut:
    """Assigns vertices to classes in descending order of degree, alternating forward and backward over the classes.

    This spreads hubs evenly. Vertices are numbered by ascending degree. The vertex with rank r in descending order of
    degree has the number r // shards in its class. Vertices with equal numbers are of different classes.
    """

    vertices: int
    """Vertices of the graph, at most 2^32 - 2."""
    shards: int
    """Number of classes and of shards; at least 1."""

    def classes(self, vertex: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """The class of each vertex, uint32, on the same device. Raises ValueError unless `vertex` has one dimension."""
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
        """int64 [shards] the number of vertices of each class."""
        whole, rest = divmod(self.vertices, self.shards)
        last = np.arange(self.shards) if whole % 2 == 0 else np.arange(self.shards)[::-1]
        return whole + (last < rest)

    @property
    def width(self) -> int:
        """Exclusive upper bound of the numbers of vertices within a class."""
        return -(-self.vertices // self.shards)
