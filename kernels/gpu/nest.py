"""Connected components at all levels: three kernels for each level, over the edges of that level alone."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from ..graph import Nested
from .arrays.indexing import bincount
from .arrays.transfer import synchronize, wait_for
from .runtime import source

_BLOCK = 256
_LEVELS_AT_ONCE = 128
"""Levels whose kernels are queued together. If CUDA's queue were full, the copies of other threads would be held up."""
FEW_LEVELS = 2**12
"""A block counts the edges of up to this many levels in its shared memory."""
_BYTES_A_LEVEL = 12
EDGES_A_COMPONENT = 8
"""At first there is room for one component for this many edges. A graph with more components is processed twice."""
MIN_ROOM = 2**20
"""Minimum room for components, unless the graph has fewer edges."""


def nest(low: Any, high: Any, level: Any, vertices: int) -> Nested:
    """The components of all levels; see `kernels.nest`. Takes about 14 bytes an edge and 24 a vertex."""
    edges = len(level)
    if not edges:
        none = cupy.empty(0, np.int32)
        return Nested(cupy.full(vertices, -1, np.int32), none, none, none, none)
    sizes = wait_for(bincount(level, int(wait_for(level.max())) + 1))[::-1]
    room = min(edges, max(MIN_ROOM, edges // EDGES_A_COMPONENT))
    ordered = _by_level(level, sizes)
    while (found := _unite_levels(ordered, low, high, sizes, vertices, room))[0] > room:
        room = found[0]
    count, of_vertex, of_edge, levels, least, parent = found
    del ordered, found
    levels, least, parent = levels[:count], least[:count], parent[:count]
    ascending = cupy.argsort((len(sizes) - levels).astype(np.int64) * max(vertices, 1) + least)
    number = cupy.empty(count + 1, np.int32)
    number[ascending] = cupy.arange(count, dtype=np.int32)
    number[-1] = -1  # an index of -1 reads the last slot
    return Nested(number[of_vertex], number[of_edge], levels[ascending], least[ascending], number[parent[ascending]])


def _by_level(level: Any, sizes: NDArray[np.int64]) -> Any:
    """The edges by descending level, int32 [edges]. `sizes` [levels] are the edges of each level, from the highest."""
    ordered = cupy.empty(len(level), np.int32)
    next_place = cupy.asarray(np.cumsum(sizes) - sizes)
    highest = np.int32(len(sizes) - 1)
    arguments = (level, np.int64(len(level)), highest, next_place, ordered)
    if len(sizes) <= FEW_LEVELS:
        grid = source.grid(len(level), _BLOCK)
        source.kernel("nest:by_few_levels")((grid,), (_BLOCK,), arguments, shared_mem=_BYTES_A_LEVEL * len(sizes))
    else:
        source.kernel("nest:by_level")((source.grid(len(level), _BLOCK, 32),), (_BLOCK,), arguments)
    return ordered


def _unite_levels(
    ordered: Any, low: Any, high: Any, sizes: NDArray[np.int64], vertices: int, room: int
) -> tuple[int, Any, Any, Any, Any, Any]:
    """The number of components; the component of each vertex and edge; level, least vertex and parent of the first
    `room` components.
    """
    up = cupy.arange(vertices, dtype=np.int32)
    top, of_vertex, stamp = (cupy.full(vertices, -1, np.int32) for _ in range(3))
    of_edge = cupy.empty(len(ordered), np.int32)
    levels, least, parent = (cupy.empty(room, np.int32) for _ in range(3))
    found = cupy.zeros(1, np.int32)
    unite, claim, settle = (source.kernel(f"nest:{name}") for name in ("unite", "claim", "settle"))
    start = 0
    for below, size in enumerate(sizes.tolist()):
        if below % _LEVELS_AT_ONCE == 0:
            synchronize()
        if size:
            own = (ordered[start:], np.int32(size), low, high)
            shape = (source.grid(size, _BLOCK),), (_BLOCK,)
            k = np.int32(len(sizes) - 1 - below)
            unite(*shape, (*own, up, of_edge))
            claim(*shape, (*own, up, k, stamp, top, of_vertex, found, np.int32(room), levels, least, parent))
            settle(*shape, (*own, up, top, of_vertex, of_edge, np.int32(room), parent))
            start += size
    return int(wait_for(found)[0]), of_vertex, of_edge, levels, least, parent
