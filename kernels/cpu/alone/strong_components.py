"""Strongly connected components by depth-first search (Tarjan, "Depth-first search and linear graph algorithms", SIAM
J. Computing 1(2), 1972), with a stack instead of recursion.

It takes one thread. Parallel searches read edges many times: they pay for graphs that one memory does not hold.
"""

from __future__ import annotations

import numpy as np

from ...graph import LongArray
from ...in_rows import InRows
from ...runtime.cache import cached_njit
from ..arrays.places import places

_1 = np.uint32(1)


@cached_njit
def _search(offsets, source, smallest, order, low, at, path, waiting):
    """`order` is 0 for vertices that were not visited; `smallest` is -1 until the component of the vertex is known."""
    visited, depth, height = np.uint32(0), -1, 0
    for root in range(order.size):
        if order[root]:
            continue
        entered = np.uint32(root)
        while True:
            visited += _1
            order[entered] = low[entered] = visited
            at[entered] = offsets[entered]
            depth += 1
            path[depth] = entered
            waiting[height] = entered
            height += 1
            found = False
            while depth >= 0 and not found:
                v = path[depth]
                while at[v] < offsets[v + _1]:
                    entered = source[at[v]]
                    at[v] += np.uint64(1)
                    if order[entered] == 0:
                        found = True
                        break
                    if smallest[entered] < 0:
                        low[v] = min(low[v], order[entered])
                if found:
                    break
                depth -= 1
                if depth >= 0:
                    low[path[depth]] = min(low[path[depth]], low[v])
                if low[v] == order[v]:  # the first vertex of a component: all that wait after it are in it
                    first = height - 1
                    least = waiting[first]
                    while waiting[first] != v:
                        first -= 1
                        least = min(least, waiting[first])
                    for i in range(first, height):
                        smallest[waiting[i]] = least
                    height = first
            if depth < 0:
                break


def strong_components(rows: InRows) -> LongArray:
    """[vertices] the smallest vertex in the strongly connected component of each. `rows` have the sources or the
    targets of each vertex. Takes 28 bytes for each vertex.
    """
    count = rows.rows
    smallest, order, low = np.full(count, -1, np.int64), np.zeros(count, np.uint32), np.empty(count, np.uint32)
    at, path, waiting = np.empty(count, np.uint64), np.empty(count, np.uint32), np.empty(count, np.uint32)
    _search(places(rows.offsets), places(rows.source), smallest, order, low, at, path, waiting)
    return smallest
