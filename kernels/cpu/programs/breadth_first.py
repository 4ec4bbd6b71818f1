"""Breadth-first search in both directions (Beamer, Asanović and Patterson, "Direction-optimizing breadth-first search",
SC 2012), with the smallest parents.

The lists of vertices that threads make differ from run to run, and what they write does not: a vertex gets its level in
one superstep, and the smallest of the parents that are offered in it.
"""

from __future__ import annotations

import numpy as np
from numba import get_num_threads, prange
from numpy.typing import NDArray

from ...graph import InRows, LongArray
from ...runtime.cache import cached_njit
from ..arrays.intrinsics import compare_swap, fetch_add, places, prefetch
from .frontiers import KEPT, LONG_ROW, LONG_ROWS, PARALLEL_ENTRIES, SHARE, add_kept, piece, share_of

ALPHA = 15
"""Rows are read once the vertices that were reached last have more than one in ALPHA of the entries that are left."""
_ALPHA = np.uint64(ALPHA)
BETA = 18
"""Vertices push again once fewer than one in BETA was reached, and fewer than in the superstep before."""
_AHEAD = 24
"""How far ahead of a vertex the first entries of another are fetched while rows are read, if most rows end there."""
_MOST = np.uint64(4)
"""Most rows end early if the vertices that were reached last have more than one in _MOST of the entries left."""
_1, _5, _31, _ONE = np.uint32(1), np.uint32(5), np.uint32(31), np.uint64(1)
_TAKEN, _LENGTH, _LONG = 0, 8, 16
"""Elements of the counters, each on a cache line of its own."""


@cached_njit
def _lower(parent, v, u):
    """Write the parent if it is smaller, atomically; unsigned, none is the largest."""
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


@cached_njit
def _push(offsets, target, step, level, parent, size, pieces, listed, following, counters, share, aside):
    """Reach the targets of listed vertices, until all are taken. Returns the entries of those that are reached.

    Each row is cut into `pieces`, and `share` of them are taken at a time. Long rows are listed in `aside` instead, as
    far as that has room.
    """
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
def _push_all(lanes, offsets, target, step, level, parent, size, pieces, listed, following, counters, aside, entries):
    share = share_of(size * pieces, lanes)
    for lane in prange(lanes):
        entries[lane] = _push(
            offsets, target, step, level, parent, size, pieces, listed, following, counters, share, aside
        )
    return entries.sum()


@cached_njit(parallel=True)
def _pull(lanes, offsets, source, step, level, parent, bits, fresh, far, counters, reached, entries):
    """Reach the vertices with a source in `bits`. Writes how many, and the entries that were read, by lane. Fetches
    the first entries of vertices `far` ahead.
    """
    counters[_TAKEN] = 0
    for lane in prange(lanes):
        count, read = 0, np.uint64(0)
        while True:
            first = fetch_add(counters, _TAKEN, SHARE)
            if first >= bits.size:
                break
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
        reached[lane], entries[lane] = count, read


@cached_njit(parallel=True)
def _mark(lanes, level, step, bits):
    """Set the bits of the vertices of a level."""
    for lane in prange(lanes):
        for at in range(lane * bits.size // lanes, (lane + 1) * bits.size // lanes):
            word = np.uint32(0)
            for v in range(32 * at, min(32 * at + 32, level.size)):
                word |= np.uint32(level[v] == step) << np.uint32(v & 31)
            bits[at] = word


@cached_njit(parallel=True)
def _list(lanes, offsets, level, bits, following, counters, entries):
    """List the vertices in `bits`. Writes their entries, by lane."""
    counters[_LENGTH] = 0
    for lane in prange(lanes):
        kept, held, count = np.empty(KEPT, np.uint32), 0, np.uint64(0)
        for at in range(lane * bits.size // lanes, (lane + 1) * bits.size // lanes):
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
        entries[lane] = count


@cached_njit
def _search(
    lanes,
    into,
    source,
    offsets,
    target,
    start,
    level,
    parent,
    listed,
    following,
    bits,
    fresh,
    aside,
    counters,
    reached,
    entries,
):
    """All supersteps. Returns their number, and the entries read. One thread takes short lists."""
    count, none = level.size, aside[:0]
    _clear(lanes, level, parent, np.uint64(2**64 - 1))
    level[start], parent[start], listed[0] = 0, start, start
    ahead, left = offsets[start + 1] - offsets[start], np.uint64(target.size)
    size, before, by_rows, steps, read, far = 1, 0, False, 0, np.uint64(0), count
    while size:
        step = np.int32(steps + 1)
        if not by_rows and _ALPHA * ahead > left:
            by_rows, before = True, 0
            far = _AHEAD if _MOST * ahead > left else count
            _mark(lanes, level, np.int32(steps), bits)
        elif by_rows and BETA * size < count and size < before:
            by_rows = False
            _list(lanes, offsets, level, bits, listed, counters, entries)
            ahead = entries.sum()
        if by_rows:
            before = size
            _pull(lanes, into, source, step, level, parent, bits, fresh, far, counters, reached, entries)
            far = count
            size, read = reached.sum(), read + entries.sum()
            bits, fresh = fresh, bits
        else:
            read += ahead
            left -= min(ahead, left)
            counters[_TAKEN] = counters[_LENGTH] = counters[_LONG] = 0
            if lanes > 1 and ahead > PARALLEL_ENTRIES:
                ahead = _push_all(
                    lanes, offsets, target, step, level, parent, size, 1, listed, following, counters, aside, entries
                )
                long = min(counters[_LONG], aside.size)
                if long:
                    counters[_TAKEN] = 0
                    ahead += _push_all(
                        lanes,
                        offsets,
                        target,
                        step,
                        level,
                        parent,
                        long,
                        lanes,
                        aside,
                        following,
                        counters,
                        none,
                        entries,
                    )
            else:
                ahead = _push(offsets, target, step, level, parent, size, 1, listed, following, counters, size, none)
            listed, following, size = following, listed, counters[_LENGTH]
        steps += 1
    return steps, read


def search(rows: InRows, out: InRows, start: int) -> tuple[NDArray[np.int32], LongArray, int, int]:
    """(levels, parents, supersteps, entries read) of a search from the vertex `start`.

    `rows` [vertices] have the sources of each vertex, ascending, and `out` its targets; both are the same for a
    symmetric graph. Levels are int32 and parents int64 [vertices], both -1 where the search does not come; the parent
    of `start` is itself.
    """
    count, lanes = rows.rows, get_num_threads()
    level, parent = np.empty(count, np.int32), np.empty(count, np.int64)
    into, source, offsets, target = (places(one) for one in (rows.offsets, rows.source, out.offsets, out.source))
    lists = [np.empty(count, np.uint32) for _ in range(2)] + [np.empty(-(-count // 32), np.uint32) for _ in range(2)]
    lists.append(np.empty(LONG_ROWS, np.uint32))
    sums = np.zeros(24, np.int64), np.empty(lanes, np.int64), np.empty(lanes, np.uint64)
    steps, read = _search(lanes, into, source, offsets, target, start, level, places(parent), *lists, *sums)
    return level, parent, int(steps), int(read)
