"""Connected components by union-find, the smallest value in each, and strongly connected components.

Strongly connected components are found by depth-first search (Tarjan, "Depth-first search and linear graph algorithms",
SIAM J. Computing 1(2), 1972), with a stack instead of recursion, in one thread. Parallel searches read edges many
times, which pays only for graphs that one memory does not hold.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import get_num_threads, prange
from numpy.typing import NDArray

from ...graph import InRows, IntArray, LongArray
from ...runtime.cache import cached_njit
from ..arrays.intrinsics import compare_swap, places, prefetch
from .chunks import chunk_starts, even_chunks, packed, threads_for

_FIRST = np.uint64(2)
"""Entries of each row that are linked before the largest component is looked for."""
_AHEAD = 24
"""The first entries of a row are prefetched this many rows ahead, since each is in a cache line that is read once."""
SAMPLES = 1024
"""Approximate number of sources that are sampled to find the largest component."""
NONE = np.uint32(2**32 - 1)
"""No source."""


@cached_njit(parallel=True)
def _count_up(cuts, out):
    for chunk in prange(cuts.size - 1):
        for v in range(cuts[chunk], cuts[chunk + 1]):
            out[v] = v


def consecutive(count: int) -> IntArray:
    """0 … count - 1, written by all threads: a new array costs most where its pages are first touched."""
    out = np.empty(count, np.int32)
    with threads_for(count):
        _count_up(even_chunks(count), out)
    return out


@cached_njit
def _link(root, one, other):
    """Join two trees: the larger root gets the smaller one as parent."""
    a, b = root[one], root[other]
    while a != b:
        high, low = max(a, b), min(a, b)
        above = root[high]
        if above == low or (above == high and compare_swap(root, high, high, low)):
            break
        a, b = root[root[high]], root[low]


@cached_njit(parallel=True)
def _hook(offsets, cuts, own, source, root):
    """Let the vertex of each row point to its first source, if this source is smaller.

    No other thread writes the same element, so no atomic exchange is needed, which would wait for all earlier reads.
    """
    for chunk in prange(cuts.size - 1):
        for row in range(cuts[chunk], cuts[chunk + 1]):
            if row + _AHEAD < offsets.size:
                prefetch(source, offsets[row + _AHEAD])
            q = offsets[row]
            if q < offsets[row + 1]:
                root[own[row]] = min(source[q], own[row])


@cached_njit(parallel=True)
def _link_next(offsets, cuts, own, source, root):
    """Link each row with its second entry, and with its first entry if `_hook` did not."""
    for chunk in prange(cuts.size - 1):
        for row in range(cuts[chunk], cuts[chunk + 1]):
            if row + _AHEAD < offsets.size:
                prefetch(source, offsets[row + _AHEAD])
            q = offsets[row]
            if q < offsets[row + 1] and source[q] > own[row]:
                _link(root, own[row], source[q])
            if q + np.uint64(1) < offsets[row + 1]:
                _link(root, own[row], source[q + np.uint64(1)])


@cached_njit(parallel=True)
def _link_rest(offsets, cuts, own, source, skips, largest, root):
    """Link each row with its other entries, except those within the largest component.

    With `skips`, rows in that component are not read.
    """
    for chunk in prange(cuts.size - 1):
        for row in range(cuts[chunk], cuts[chunk + 1]):
            inside = root[own[row]] == largest
            if not (inside and skips):
                for q in range(offsets[row] + _FIRST, offsets[row + 1]):
                    if not (inside and root[source[q]] == largest):
                        _link(root, own[row], source[q])


@cached_njit(parallel=True)
def _compress(cuts, root):
    """Let each source point to its root."""
    for chunk in prange(cuts.size - 1):
        for v in range(cuts[chunk], cuts[chunk + 1]):
            one = root[v]
            above = root[one]
            while above != one:
                root[v] = one = above
                above = root[one]


@cached_njit(parallel=True)
def _lower(cuts, root, position, values, least, lowered):
    for chunk in prange(cuts.size - 1):
        for i in range(cuts[chunk], cuts[chunk + 1]):
            to = root[position[i]]
            value = values[i]
            before = least[to]
            while value < before:
                if compare_swap(least, to, before, value):
                    lowered[to] = True
                    break
                before = least[to]


@cached_njit(parallel=True)
def _lowered_rows(cuts, root, own, least, lowered, counts, rows, found):
    for chunk in prange(cuts.size - 1):
        slot = cuts[chunk]
        for row in range(cuts[chunk], cuts[chunk + 1]):
            of = root[own[row]]
            if lowered[of]:
                rows[slot] = row
                found[slot] = least[of]
                slot += 1
        counts[chunk] = slot - cuts[chunk]


def connected_sources(rows: InRows, own: IntArray, sources: int, symmetric: bool) -> IntArray:
    """The smallest source in the component of each source; see `kernels.programs`."""
    root = consecutive(sources)
    up, offsets, own, source = (places(one) for one in (root, rows.offsets, own, rows.source))
    with threads_for(len(rows)):
        even, rest = even_chunks(sources), chunk_starts(rows.offsets, None)
        one = even_chunks(rows.rows)
        for link in (_hook, _link_next):
            link(offsets, one, own, source, up)
            _compress(even, up)
        largest = _most_frequent(up[:: max(1, sources // SAMPLES)])
        _link_rest(offsets, rest, own, source, symmetric, largest, up)
        _compress(even, up)
    return root


def _most_frequent(sampled: NDArray[np.uint32]) -> np.uint32:
    values, counts = np.unique(sampled, return_counts=True)
    return np.uint32(values[counts.argmax()]) if len(values) else NONE


def lower_values(
    root: IntArray, position: IntArray, values: NDArray[Any], least: NDArray[Any], lowered: NDArray[np.bool_]
) -> None:
    """Lower the smallest value of each component; see `kernels.programs`."""
    with threads_for(len(position)):
        _lower(even_chunks(len(position)), places(root), places(position), values, least, lowered)


def lowered_rows(
    root: IntArray, own: IntArray, least: NDArray[Any], lowered: NDArray[np.bool_]
) -> tuple[IntArray, NDArray[Any]]:
    """The rows of lowered components, and their smallest values; see `kernels.programs`."""
    rows, found = np.empty(len(own), np.int32), np.empty(len(own), least.dtype)
    with threads_for(len(own)):
        cuts = even_chunks(len(own))
        counts = np.empty(len(cuts) - 1, np.int64)
        _lowered_rows(cuts, places(root), places(own), least, lowered, counts, rows, found)
    return packed(rows, cuts, counts), packed(found, cuts, counts)


@cached_njit(parallel=True)
def _name(lanes, root, number, component, lowered):
    for lane in prange(lanes):
        count = 0
        for v in range(lane * root.size // lanes, (lane + 1) * root.size // lanes):
            component[v] = number[root[v]]
            count += root[v] != v
        lowered[lane] = count


def components(rows: InRows, number: IntArray | LongArray, symmetric: bool) -> tuple[LongArray, int]:
    """(the smallest number in the component of each vertex, [vertices]; the number of vertices for which it is not
    their own number). `number` [vertices] ascends. See `kernels.programs.connected_sources`.
    """
    root = connected_sources(rows, consecutive(rows.rows), rows.rows, symmetric)
    component, lanes = np.empty(rows.rows, np.int64), get_num_threads()
    lowered = np.empty(lanes, np.int64)
    _name(lanes, root, number, component, lowered)
    return component, int(lowered.sum())


_1 = np.uint32(1)


@cached_njit
def _depth_first(offsets, source, smallest, order, low, at, path, waiting):
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
                if low[v] == order[v]:  # v is the first vertex of a component: all that wait after v are in it
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
    """The smallest vertex in the strongly connected component of each vertex, int64 [vertices]. `rows` have the sources
    or the targets of each vertex. Takes 28 bytes for each vertex.
    """
    count = rows.rows
    smallest, order, low = np.full(count, -1, np.int64), np.zeros(count, np.uint32), np.empty(count, np.uint32)
    at, path, waiting = np.empty(count, np.uint64), np.empty(count, np.uint32), np.empty(count, np.uint32)
    _depth_first(places(rows.offsets), places(rows.source), smallest, order, low, at, path, waiting)
    return smallest
