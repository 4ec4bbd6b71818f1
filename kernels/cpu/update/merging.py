"""Merging a batch of edges into sorted edges, and leaving the removed ones out again.

An update works on the *union*: all edges before the batch and all added edges, sorted by (low, high). All passes run in
parallel over blocks, and read and write each array once, in order. Binary search is used if one set of edges is small.
"""

from __future__ import annotations

import mmap
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import get_num_threads, prange
from numpy.typing import DTypeLike, NDArray

from ...graph import KEY_BITS, AnyArray, IntArray, LongArray, Topology
from ...runtime.cache import cached_njit
from ..arrays.indexing import count_below, nonzero

FEW = 16
"""If one set has more than this many times as many edges as another, the edges of the smaller set are searched for one
by one; otherwise both sets are merged.
"""


@cached_njit
def _search_edge(low, high, u, v):
    """The number of edges before (u, v)."""
    first = 0
    last = low.size
    while first < last:
        middle = (first + last) >> 1
        if low[middle] < u or (low[middle] == u and high[middle] < v):
            first = middle + 1
        else:
            last = middle
    return first


@cached_njit(parallel=True)
def _rows_before(low, high, some_low, some_high, found):
    for i in prange(some_low.size):
        found[i] = _search_edge(low, high, some_low[i], some_high[i])


def rows_before(edges: Topology, some: Topology) -> LongArray:
    """How many of `edges` come before each edge of `some`, int64 [some]. `some` may be in any order."""
    found = np.empty(some.edges, np.int64)
    _rows_before(edges.low, edges.high, some.low, some.high, found)
    return found


@cached_njit(parallel=True)
def _among(low, high, other_low, other_high, found):
    for block in prange((low.size + BLOCK - 1) // BLOCK):
        start = block * BLOCK
        at = _search_edge(other_low, other_high, low[start], high[start])
        for i in range(start, min(start + BLOCK, low.size)):
            u = low[i]
            v = high[i]
            while at < other_low.size and (other_low[at] < u or (other_low[at] == u and other_high[at] < v)):
                at += 1
            found[i] = at < other_low.size and other_low[at] == u and other_high[at] == v


def among(edges: Topology, others: Topology) -> AnyArray:
    """Whether each edge is among the others, bool [edges].

    Merges blocks of `edges` with `others`, and so reads each array once. If one of both is small, each of its edges is
    searched for in the other.
    """
    found = np.zeros(edges.edges, np.bool_)
    if not edges.edges or not others.edges:
        return found
    if others.edges > FEW * edges.edges:
        at = np.minimum(rows_before(others, edges), others.edges - 1)
        return (others.low[at] == edges.low) & (others.high[at] == edges.high)
    if edges.edges > FEW * others.edges:
        at = np.minimum(rows_before(edges, others), edges.edges - 1)
        found[at[(edges.low[at] == others.low) & (edges.high[at] == others.high)]] = True
        return found
    _among(edges.low, edges.high, others.low, others.high, found)
    return found


@cached_njit(parallel=True)
def _mark_ends(low, high, left_out, marked):
    for e in prange(low.size):
        if not left_out[e]:
            marked[low[e]] = True
            marked[high[e]] = True


def mark_ends(edges: Topology, left_out: AnyArray, marked: AnyArray) -> None:
    """Set `marked`, bool [vertices], for the ends of all edges for which `left_out`, bool [edges], is false."""
    _mark_ends(edges.low, edges.high, left_out, marked)


LARGE = 1 << 22
"""NumPy asks for huge pages for arrays of at least this many bytes."""


def sparse_zeros(count: int, dtype: DTypeLike) -> NDArray[Any]:
    """An array of zeros of which few entries are read or written, far from each other.

    Takes memory in small pages, only where entries are used. NumPy's arrays use huge pages if the system has them: then
    the first access to an entry may take 2 MiB, which the system clears first.
    """
    kind = np.dtype(dtype)
    size = count * kind.itemsize
    if size < LARGE:
        return np.zeros(count, kind)
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):  # a system without huge pages
        memory.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(memory, kind)


BLOCK = 1 << 16
"""Edges of one step of a parallel pass."""
KEPT, REMOVED, ADDED = np.uint8(0), np.uint8(1), np.uint8(2)
"""Marks of the union's edges."""


@dataclass(frozen=True)
class Union:
    """All edges before and after a batch, with the state of the order, which the kernels of an update change."""

    edges: Topology
    """The edges, sorted by (low, high)."""

    mark: AnyArray
    """[edges] uint8, KEPT, REMOVED or ADDED."""

    key: LongArray
    """[edges] level and time; see `graph.KEY_BITS`. -1 for removed edges after their removal, and for added edges
    before they stand; see `standing` for the keys of standing edges.
    """

    count: IntArray
    """[edges] triangles whose other edges both have at least the edge's level."""

    remainder: IntArray
    """[edges] triangles whose other edges both are later in the order."""

    change: IntArray
    """[edges] triangles gained less triangles lost."""

    removed: IntArray
    """Numbers of the removed edges, ascending."""

    added: IntArray
    """Numbers of the added edges, ascending."""


@cached_njit(parallel=True)
def _merge(old, new, added, low, high, mark, key, count, remainder, removed):
    """Merge the edges `old` (low, high, λ, time, count, remainder) with the edges `new` (low, high)."""
    for block in prange((low.size + BLOCK - 1) // BLOCK):
        start = block * BLOCK
        a = count_below(added, start)
        for i in range(start, min(start + BLOCK, low.size)):
            if a < added.size and added[a] == i:
                low[i] = new[0][a]
                high[i] = new[1][a]
                mark[i] = ADDED
                key[i] = -1
                count[i] = 0
                remainder[i] = 0
                a += 1
            else:
                o = i - a
                low[i] = old[0][o]
                high[i] = old[1][o]
                mark[i] = removed[o]
                key[i] = (np.int64(old[2][o]) << KEY_BITS) | old[3][o]
                count[i] = old[4][o]
                remainder[i] = old[5][o]


def merge(
    edges: Topology, order: tuple[IntArray, IntArray, IntArray, IntArray], removed: AnyArray, added: Topology
) -> Union:
    """The union of `edges` and `added`. `order` is (λ, time, count, remainder), each int32 [edges]. `removed` bool
    [edges] marks the edges to remove.
    """
    found = (rows_before(edges, added) + np.arange(added.edges)).astype(np.int32)
    total = edges.edges + added.edges
    low, high, count, remainder = (np.empty(total, np.int32) for _ in range(4))
    mark, key = np.empty(total, np.uint8), np.empty(total, np.int64)
    state = (edges.low, edges.high, *order)
    _merge(state, (added.low, added.high), found, low, high, mark, key, count, remainder, removed)
    gone = nonzero(removed)
    if added.edges:
        gone += np.searchsorted(found - np.arange(added.edges, dtype=np.int32), gone, "right").astype(np.int32)
    topology = Topology(low, high, max(edges.vertices, added.vertices))
    return Union(topology, mark, key, count, remainder, sparse_zeros(total, np.int32), gone, found)


@cached_njit(parallel=True)
def _level_ends(level, time, ends):
    for thread in prange(ends.shape[0]):
        own = ends[thread]
        part = (level.size + ends.shape[0] - 1) // ends.shape[0]
        for e in range(thread * part, min((thread + 1) * part, level.size)):
            own[level[e]] = max(own[level[e]], time[e] + 1)


def level_ends(level: IntArray, time: IntArray) -> LongArray:
    """One more than the largest time of each level, int64 [highest level + 1]."""
    ends = np.zeros((get_num_threads(), int(level.max(initial=-1)) + 1), np.int64)
    _level_ends(level, time, ends)
    return ends.max(axis=0)


@cached_njit(parallel=True)
def _level_sums(level, values, sums):
    for thread in prange(sums.shape[0]):
        own = sums[thread]
        part = (level.size + sums.shape[0] - 1) // sums.shape[0]
        for e in range(thread * part, min((thread + 1) * part, level.size)):
            own[level[e]] += values[e]


def level_sums(level: IntArray, values: IntArray) -> LongArray:
    """The sum of the values [edges] of each level, int64 [highest level + 1], at least one entry."""
    sums = np.zeros((get_num_threads(), int(level.max(initial=0)) + 1), np.int64)
    _level_sums(level, values, sums)
    return sums.sum(axis=0)


@cached_njit(parallel=True)
def _leave_out(union, removed, old_level, low, high, level, time, count, remainder, origin, changed, change):
    """`union` are the arrays of the union."""
    u_low, u_high, mark, key, u_count, u_remainder, u_change, added = union
    for block in prange((u_low.size + BLOCK - 1) // BLOCK):
        start = block * BLOCK
        to = start - count_below(removed, start)
        o = start - count_below(added, start)
        for i in range(start, min(start + BLOCK, u_low.size)):
            if mark[i] == REMOVED:
                o += 1
                continue
            low[to] = u_low[i]
            high[to] = u_high[i]
            count[to] = u_count[i]
            remainder[to] = u_remainder[i]
            change[to] = u_change[i]
            k = np.int32(key[i] >> KEY_BITS)
            level[to] = k
            time[to] = np.int32(key[i] & 0x7FFFFFFF)
            if mark[i] == ADDED:
                origin[to] = -1
                changed[to] = True
            else:
                origin[to] = o
                changed[to] = old_level[o] != k
                o += 1
            to += 1


def leave_out(
    union: Union, old_level: IntArray
) -> tuple[Topology, tuple[IntArray, IntArray, IntArray, IntArray], IntArray, AnyArray, IntArray]:
    """The union without the removed edges. `old_level` int32 [edges before the batch] are the levels before the batch.

    Returns the edges, their (λ, time, count, remainder), origin int32: the edge's number before the batch or -1 if it
    was added, changed bool: whether the edge was added or has another level than before, and the change of its support.
    """
    total = union.edges.edges - len(union.removed)
    low, high, level, time, count, remainder, origin, change = (np.empty(total, np.int32) for _ in range(8))
    changed = np.empty(total, np.bool_)
    arrays = (
        union.edges.low,
        union.edges.high,
        union.mark,
        union.key,
        union.count,
        union.remainder,
        union.change,
        union.added,
    )
    out = (low, high, level, time, count, remainder, origin, changed, change)
    _leave_out(arrays, union.removed, old_level, *out)
    return Topology(low, high, union.edges.vertices), (level, time, count, remainder), origin, changed, change


@cached_njit(parallel=True)
def _values_since(before, origin, changed, change, support, touched, differ):
    for block in prange(differ.size):
        found = 0
        for i in range(block * BLOCK, min((block + 1) * BLOCK, origin.size)):
            o = origin[i]
            support[i] = change[i]
            if o >= 0:
                support[i] += before[o]
                found += changed[i]
            touched[i] = changed[i] or change[i] != 0
        differ[block] = found


def values_since(
    before: IntArray, origin: IntArray, changed: AnyArray, change: IntArray
) -> tuple[IntArray, AnyArray, int]:
    """The new supports int32 [edges], whether each edge was touched, bool [edges], and the number of edges of both
    graphs whose λ differs.

    `before` int32 [edges before] are the supports before the batch; `origin`, `changed` and `change` are those of
    `leave_out`. An edge is touched if it was added, or if its λ or its support differ.
    """
    support, touched = np.empty(len(origin), np.int32), np.empty(len(origin), np.bool_)
    differ = np.empty(-(-len(origin) // BLOCK), np.int64)
    _values_since(before, origin, changed, change, support, touched, differ)
    return support, touched, int(differ.sum())
