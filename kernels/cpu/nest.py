"""Connected components at all levels at once, by one union-find from the highest level down."""

from __future__ import annotations

import numpy as np
from numba import njit

from ..graph import IntArray, LongArray, Nested


@njit(cache=True, nogil=True)
def _find(up, v):
    while up[v] != v:
        up[v] = up[up[v]]
        v = up[v]
    return v


@njit(cache=True, nogil=True)
def _by_level(level):
    """Edges from the highest level down, and where each level ends, counted from the highest."""
    highest = 0
    for e in range(level.size):
        highest = max(highest, level[e])
    place = np.zeros(highest + 2, np.int64)
    for e in range(level.size):
        place[highest - level[e] + 1] += 1
    for k in range(highest + 1):
        place[k + 1] += place[k]
    ends = place[1:].copy()
    ordered = np.empty(level.size, np.int32)
    for e in range(level.size):
        k = highest - level[e]
        ordered[place[k]] = e
        place[k] += 1
    return ordered, ends


@njit(cache=True, nogil=True)
def _grown(values):
    larger = np.empty(2 * values.size, np.int32)
    larger[: values.size] = values
    return larger


@njit(cache=True, nogil=True)
def _nest(low, high, level, vertices):
    """Components in the order in which they are met. The root of a set is its least vertex."""
    ordered, ends = _by_level(level)
    up = np.arange(vertices).astype(np.int32)
    top = np.full(vertices, -1, np.int32)  # of a root: the outermost component so far
    of_vertex = np.full(vertices, -1, np.int32)
    of_edge = np.empty(level.size, np.int32)
    hooked = np.empty(vertices, np.int32)
    size = 1024
    levels, least, parent = np.empty(size, np.int32), np.empty(size, np.int32), np.empty(size, np.int32)
    found = 0
    start = 0
    for end in ends:
        k = level[ordered[start]] if end > start else 0
        first = found
        hooks = 0
        for i in range(start, end):
            a, b = _find(up, low[ordered[i]]), _find(up, high[ordered[i]])
            if a != b:
                a, b = min(a, b), max(a, b)
                up[b] = a
                hooked[hooks] = b
                hooks += 1
        for i in range(start, end):
            root = _find(up, low[ordered[i]])
            inside = top[root]
            if inside < first:
                if found == size:
                    levels, least, parent = _grown(levels), _grown(least), _grown(parent)
                    size *= 2
                levels[found], least[found], parent[found] = k, root, -1
                if inside >= 0:
                    parent[inside] = found
                else:
                    of_vertex[root] = found
                top[root] = found
                found += 1
            of_edge[ordered[i]] = top[root]
        for i in range(hooks):
            around = top[_find(up, hooked[i])]
            if top[hooked[i]] >= 0:
                parent[top[hooked[i]]] = around
            else:
                of_vertex[hooked[i]] = around
        start = end
    return of_vertex, of_edge, levels[:found].copy(), least[:found].copy(), parent[:found].copy()


def nest(low: IntArray, high: IntArray, level: IntArray, vertices: int) -> Nested:
    """The components of all levels."""
    of_vertex, of_edge, levels, least, parent = _nest(low, high, level, vertices)
    ascending = np.lexsort((least, -levels))
    number = np.empty(len(levels) + 1, np.int32)
    number[ascending] = np.arange(len(levels), dtype=np.int32)
    number[-1] = -1  # what -1 leads to
    return Nested(number[of_vertex], number[of_edge], levels[ascending], least[ascending], number[parent[ascending]])


@njit(cache=True, nogil=True)
def _add_up(parent, values):
    for x in range(parent.size):
        if parent[x] >= 0:
            values[parent[x]] += values[x]


@njit(cache=True, nogil=True)
def _least_up(parent, values):
    for x in range(parent.size):
        if parent[x] >= 0:
            values[parent[x]] = min(values[parent[x]], values[x])


def add_up(parent: IntArray, values: LongArray) -> LongArray:
    """Sums over whatever lies in each component."""
    values = values.copy()
    _add_up(parent, values)
    return values


def least_up(parent: IntArray, values: LongArray) -> LongArray:
    """Minima over whatever lies in each component."""
    values = values.copy()
    _least_up(parent, values)
    return values
