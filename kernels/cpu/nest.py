"""Connected components at all levels, by one union-find from the highest level down."""

from __future__ import annotations

import numpy as np

from ..graph import IntArray, LongArray, Nested
from ..runtime.cache import cached_njit


@cached_njit
def _find(up, v):
    while up[v] != v:
        up[v] = up[up[v]]
        v = up[v]
    return v


@cached_njit
def _by_level(level):
    """The edges sorted by descending level, and the end of each level in them, from the highest level down."""
    highest = 0
    for e in range(level.size):
        highest = max(highest, level[e])
    slot = np.zeros(highest + 2, np.int64)
    for e in range(level.size):
        slot[highest - level[e] + 1] += 1
    for k in range(highest + 1):
        slot[k + 1] += slot[k]
    ends = slot[1:].copy()
    ordered = np.empty(level.size, np.int32)
    for e in range(level.size):
        k = highest - level[e]
        ordered[slot[k]] = e
        slot[k] += 1
    return ordered, ends


@cached_njit
def _doubled(values):
    larger = np.empty(2 * values.size, np.int32)
    larger[: values.size] = values
    return larger


@cached_njit
def _nest(low, high, level, vertices):
    """Components in the order of their creation. The root of a set is its least vertex."""
    ordered, ends = _by_level(level)
    up = np.arange(vertices).astype(np.int32)
    top = np.full(vertices, -1, np.int32)  # of a root: the outermost component so far
    of_vertex = np.full(vertices, -1, np.int32)
    of_edge = np.empty(level.size, np.int32)
    united = np.empty(vertices, np.int32)
    size = 1024
    levels, least, parent = np.empty(size, np.int32), np.empty(size, np.int32), np.empty(size, np.int32)
    found = 0
    start = 0
    for end in ends:
        k = level[ordered[start]] if end > start else 0
        first = found
        united_count = 0
        for i in range(start, end):
            a, b = _find(up, low[ordered[i]]), _find(up, high[ordered[i]])
            if a != b:
                a, b = min(a, b), max(a, b)
                up[b] = a
                united[united_count] = b
                united_count += 1
        for i in range(start, end):
            root = _find(up, low[ordered[i]])
            inner = top[root]
            if inner < first:
                if found == size:
                    levels, least, parent = _doubled(levels), _doubled(least), _doubled(parent)
                    size *= 2
                levels[found], least[found], parent[found] = k, root, -1
                if inner >= 0:
                    parent[inner] = found
                else:
                    of_vertex[root] = found
                top[root] = found
                found += 1
            of_edge[ordered[i]] = top[root]
        for i in range(united_count):
            outer = top[_find(up, united[i])]
            if top[united[i]] >= 0:
                parent[top[united[i]]] = outer
            else:
                of_vertex[united[i]] = outer
        start = end
    return of_vertex, of_edge, levels[:found].copy(), least[:found].copy(), parent[:found].copy()


def nest(low: IntArray, high: IntArray, level: IntArray, vertices: int) -> Nested:
    """The components of all levels; see `kernels.nest`."""
    of_vertex, of_edge, levels, least, parent = _nest(low, high, level, vertices)
    ascending = np.lexsort((least, -levels))
    number = np.empty(len(levels) + 1, np.int32)
    number[ascending] = np.arange(len(levels), dtype=np.int32)
    number[-1] = -1  # an index of -1 reads the last slot
    return Nested(number[of_vertex], number[of_edge], levels[ascending], least[ascending], number[parent[ascending]])


@cached_njit
def _fold_sums(parent, values):
    for x in range(parent.size):
        if parent[x] >= 0:
            values[parent[x]] += values[x]


@cached_njit
def _fold_minima(parent, values):
    for x in range(parent.size):
        if parent[x] >= 0:
            values[parent[x]] = min(values[parent[x]], values[x])


def subtree_sums(parent: IntArray, values: LongArray) -> LongArray:
    """The sum of `values` (int64 [components]) over each component and all components within it.

    Each component must have a lower number than its `parent` (-1 for none), as in `Nested`.
    """
    values = values.copy()
    _fold_sums(parent, values)
    return values


def subtree_minima(parent: IntArray, values: LongArray) -> LongArray:
    """The least of `values` over each component and all components within it; as `subtree_sums`."""
    values = values.copy()
    _fold_minima(parent, values)
    return values
