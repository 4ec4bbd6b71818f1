"""Breadth-first search in both directions (Beamer, Asanović and Patterson, "Direction-optimizing breadth-first search",
SC 2012), with the smallest parents.

The lists of vertices that threads make differ from run to run, but the results do not: a vertex gets its level in one
superstep, and its parent is the smallest of the parents that are offered in this superstep.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import get_num_threads, prange
from numpy.typing import NDArray

from ...graph import InRows, LongArray
from ...runtime.cache import cached_njit
from ..arrays.intrinsics import compare_swap, fetch_add, places, prefetch
from .frontiers import KEPT, LONG_ROW, LONG_ROWS, PARALLEL_ENTRIES, SHARE, add_kept, piece, share_of

ALPHA = 15
"""The search switches from pushes to reading rows when the vertices that were reached last have more than one in ALPHA
of the entries that no vertex has pushed.
"""
_ALPHA = np.uint64(ALPHA)
BETA = 18
"""The search switches back to pushes when a superstep reaches fewer than one vertex in BETA, and fewer vertices than
the superstep before.
"""
_AHEAD = 24
"""If most rows are read only at their beginning, first entries are prefetched this many vertices ahead."""
_MOST = np.uint64(4)
"""Most rows are read only at their beginning if the vertices that were reached last have more than one in _MOST of the
entries that no vertex has pushed.
"""
_1, _5, _31, _ONE = np.uint32(1), np.uint32(5), np.uint32(31), np.uint64(1)
_TAKEN, _LENGTH, _LONG = 0, 8, 16
"""Elements of the counters, each on a cache line of its own."""


@cached_njit
def _lower(parent, v, u):
    """Write the parent if it is smaller, atomically. As an unsigned number, -1 for no parent is the largest."""
    before = parent[v]
    while u < before and not compare_swap(parent, v, before, u):
        before = parent[v]


@cached_njit(parallel=True)
def _clear(lanes, level, parent, none):
    count = level.size
    for lane in prange(lanes):
        for v in range(lane * count // lanes, (lane + 1) * count // lanes):
            level[v] = -1
            parent[v] = none


class Search(NamedTuple):
    """The sources and the targets of each vertex, and the state of a search."""

    into: NDArray[np.uint64]
    """[vertices + 1] where the row of sources of each vertex starts in `source`."""
    source: NDArray[np.uint32]
    offsets: NDArray[np.uint64]
    """[vertices + 1] where the row of targets of each vertex starts in `target`."""
    target: NDArray[np.uint32]
    level: NDArray[np.int32]
    """[vertices]"""
    parent: NDArray[np.uint64]
    """[vertices]"""
    counters: LongArray


class Pushing(NamedTuple):
    """Listed vertices that push. Each row is cut into `pieces`."""

    listed: NDArray[np.uint32]
    size: int
    pieces: np.int64
    step: np.int32
    aside: NDArray[np.uint32]
    """Vertices with long rows are listed here instead, as long as there is space."""


@cached_njit
def _push(pushing, following, search, share):
    """Reach the targets of listed vertices, until all vertices are taken. Returns the number of entries of the vertices
    that this thread reached.

    Each row is cut into pieces, and a thread takes `share` pieces at a time.
    """
    listed, size, pieces, step, aside = pushing
    offsets, target, level, parent, counters = (
        search.offsets,
        search.target,
        search.level,
        search.parent,
        search.counters,
    )
    kept, held, count = np.empty(KEPT, np.uint32), 0, np.uint64(0)
    while True:
        taken = fetch_add(counters, _TAKEN, share)
        if taken >= size * pieces:
            break
        for at in range(taken, min(taken + share, size * pieces)):
            i = at // pieces
            u = listed[i]
            first, end = piece(offsets[u], offsets[u + _1], at - i * pieces, pieces)
            if end - first > LONG_ROW and aside.size:
                slot = fetch_add(counters, _LONG, 1)
                if slot < aside.size:
                    aside[slot] = u
                    continue
            for q in range(first, end):
                v = target[q]
                reached = level[v]
                if reached < 0 and compare_swap(level, v, reached, step):
                    if held == KEPT:
                        add_kept(kept, held, counters, _LENGTH, following)
                        held = 0
                    kept[held] = v
                    held += 1
                    count += offsets[v + _1] - offsets[v]
                if reached < 0 or reached == step:
                    _lower(parent, v, np.uint64(u))
    add_kept(kept, held, counters, _LENGTH, following)
    return count


@cached_njit(parallel=True)
def _push_all(lanes, pushing, following, search):
    share = share_of(pushing.size * pushing.pieces, lanes)
    entries = np.empty(lanes, np.uint64)
    for lane in prange(lanes):
        entries[lane] = _push(pushing, following, search, share)
    return entries.sum()


@cached_njit
def _push_step(lanes, entries, pushing, following, search):
    """Run a superstep that pushes. Several threads share many entries, and then share each long row."""
    counters = search.counters
    counters[_TAKEN] = counters[_LENGTH] = counters[_LONG] = 0
    listed, size, _, step, aside = pushing
    none = aside[:0]
    if lanes == 1 or entries <= PARALLEL_ENTRIES:
        return _push(Pushing(listed, size, np.int64(1), step, none), following, search, size)
    ahead = _push_all(lanes, pushing, following, search)
    long = min(counters[_LONG], aside.size)
    if long:
        counters[_TAKEN] = 0
        ahead += _push_all(lanes, Pushing(aside, long, lanes, step, none), following, search)
    return ahead


@cached_njit
def _pull_some(bits, fresh, step, far, search):
    """Reach the vertices with a source in `bits`, until all are taken. Returns their number, and the entries read."""
    offsets, source, level, parent = search.into, search.source, search.level, search.parent
    count, read = 0, np.uint64(0)
    while True:
        first = fetch_add(search.counters, _TAKEN, SHARE)
        if first >= bits.size:
            return count, read
        for at in range(first, min(first + SHARE, bits.size)):
            word = np.uint32(0)
            for v in range(32 * at, min(32 * at + 32, level.size)):
                ahead = v + far
                if ahead < level.size and level[ahead] < 0:
                    prefetch(source, offsets[ahead])
                if level[v] < 0:
                    q, end = offsets[v], offsets[v + 1]
                    while q < end:
                        s = source[q]
                        q += _ONE
                        read += _ONE
                        if bits[s >> _5] & (_1 << (s & _31)):
                            level[v] = step
                            parent[v] = s
                            word |= _1 << np.uint32(v & 31)
                            count += 1
                            break
            fresh[at] = word


@cached_njit(parallel=True)
def _pull(lanes, bits, fresh, step, far, search):
    """Reach the vertices with a source in `bits`. Returns their number, and the number of entries read. Prefetches
    first entries `far` vertices ahead.
    """
    reached, entries = np.empty(lanes, np.int64), np.empty(lanes, np.uint64)
    for lane in prange(lanes):
        reached[lane], entries[lane] = _pull_some(bits, fresh, step, far, search)
    return reached.sum(), entries.sum()


@cached_njit(parallel=True)
def _mark(lanes, level, step, bits):
    """Set the bits of the vertices of a level."""
    for lane in prange(lanes):
        for at in range(lane * bits.size // lanes, (lane + 1) * bits.size // lanes):
            word = np.uint32(0)
            for v in range(32 * at, min(32 * at + 32, level.size)):
                word |= np.uint32(level[v] == step) << np.uint32(v & 31)
            bits[at] = word


@cached_njit
def _list_some(first, last, bits, following, search):
    """List the vertices in some of the `bits`. Returns the number of their entries."""
    offsets, counters = search.offsets, search.counters
    kept, held, count = np.empty(KEPT, np.uint32), 0, np.uint64(0)
    for at in range(first, last):
        if bits[at]:
            if held > KEPT - 32:
                add_kept(kept, held, counters, _LENGTH, following)
                held = 0
            for bit in range(32):
                if bits[at] & (_1 << np.uint32(bit)):
                    v = np.uint32(32 * at + bit)
                    kept[held] = v
                    held += 1
                    count += offsets[v + _1] - offsets[v]
    add_kept(kept, held, counters, _LENGTH, following)
    return count


@cached_njit(parallel=True)
def _list(lanes, bits, following, search):
    """List the vertices in `bits`. Returns the number of their entries."""
    entries = np.empty(lanes, np.uint64)
    for lane in prange(lanes):
        first, last = np.int64(lane) * bits.size // lanes, (np.int64(lane) + 1) * bits.size // lanes
        entries[lane] = _list_some(first, last, bits, following, search)
    return entries.sum()


@cached_njit
def _search(lanes, start, lists, search):
    """Run all supersteps. Returns their number, and the number of entries read. One thread processes short lists."""
    level, parent, offsets, counters = search.level, search.parent, search.offsets, search.counters
    listed, following, bits, fresh, aside = lists
    count = level.size
    _clear(lanes, level, parent, np.uint64(2**64 - 1))
    level[start], parent[start], listed[0] = 0, start, start
    ahead, left = offsets[start + 1] - offsets[start], np.uint64(search.target.size)
    size, before, by_rows, steps, read, far = 1, 0, False, 0, np.uint64(0), count
    while size:
        step = np.int32(steps + 1)
        if not by_rows and _ALPHA * ahead > left:
            by_rows, before = True, 0
            far = _AHEAD if _MOST * ahead > left else count
            _mark(lanes, level, np.int32(steps), bits)
        elif by_rows and BETA * size < count and size < before:
            by_rows = False
            counters[_LENGTH] = 0
            ahead = _list(lanes, bits, listed, search)
        if by_rows:
            before = size
            counters[_TAKEN] = 0
            size, entries = _pull(lanes, bits, fresh, step, far, search)
            far = count
            read += entries
            bits, fresh = fresh, bits
        else:
            read += ahead
            left -= min(ahead, left)
            ahead = _push_step(lanes, ahead, Pushing(listed, size, np.int64(1), step, aside), following, search)
            listed, following, size = following, listed, counters[_LENGTH]
        steps += 1
    return steps, read


def search(rows: InRows, out: InRows, start: int) -> tuple[NDArray[np.int32], LongArray, int, int]:
    """(levels, parents, supersteps, entries read) of a search from the vertex `start`.

    `rows` [vertices] have the sources of each vertex, ascending, and `out` its targets; both are the same for a
    symmetric graph. Levels are int32 and parents int64 [vertices], both -1 for vertices that the search does not reach.
    The parent of `start` is `start`.
    """
    count, lanes = rows.rows, get_num_threads()
    level, parent = np.empty(count, np.int32), np.empty(count, np.int64)
    into, source, offsets, target = (places(one) for one in (rows.offsets, rows.source, out.offsets, out.source))
    search = Search(into, source, offsets, target, level, places(parent), np.zeros(24, np.int64))
    sizes = count, count, -(-count // 32), -(-count // 32), LONG_ROWS
    steps, read = _search(lanes, start, tuple(np.empty(size, np.uint32) for size in sizes), search)
    return level, parent, int(steps), int(read)
