"""Connected components at all levels: three kernels for each level, over the edges of that level alone."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from ..graph import Nested
from .runtime import source

_BLOCK = 256


def nest(low: Any, high: Any, level: Any, vertices: int) -> Nested:
    """The components of all levels; see `kernels.nest`."""
    edges = len(level)
    if not edges:
        none = cupy.empty(0, np.int32)
        return Nested(cupy.full(vertices, -1, np.int32), none, none, none, none)
    sizes = cupy.bincount(level, minlength=1)[::-1].get()
    ordered = cupy.argsort(-level).astype(np.int32)
    up = cupy.arange(vertices, dtype=np.int32)
    top, of_vertex, stamp = (cupy.full(vertices, -1, np.int32) for _ in range(3))
    of_edge, levels, least, parent = (cupy.empty(edges, np.int32) for _ in range(4))
    found = cupy.zeros(1, np.int32)
    names = ("unite", "claim", "settle")
    unite, claim, settle = (source.kernel(f"nest:{name}") for name in names)
    start = 0
    for below, size in enumerate(sizes.tolist()):
        if size:
            own = (ordered[start:], np.int32(size), low, high)
            shape = (source.grid(size, _BLOCK),), (_BLOCK,)
            k = np.int32(len(sizes) - 1 - below)
            unite(*shape, (*own, up, of_edge))
            claim(*shape, (*own, up, k, stamp, top, of_vertex, found, levels, least, parent))
            settle(*shape, (*own, up, top, of_vertex, of_edge, parent))
            start += size
    count = int(found[0])
    levels, least, parent = levels[:count], least[:count], parent[:count]
    ascending = cupy.argsort((len(sizes) - levels).astype(np.int64) * max(vertices, 1) + least)
    number = cupy.empty(count + 1, np.int32)
    number[ascending] = cupy.arange(count, dtype=np.int32)
    number[-1] = -1  # an index of -1 reads the last slot
    return Nested(number[of_vertex], number[of_edge], levels[ascending], least[ascending], number[parent[ascending]])
