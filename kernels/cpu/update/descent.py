"""Deletions: the old λ is an upper bound of the new λ, and edges that lost triangles descend to the new λ.

An edge that has fewer triangles at its level than its level drops to the h-index of its triangles, as in Lü et al.
("The H-index of a network node and its relation to degree and coreness", 2016) and Sariyüce et al. (PVLDB 2018). It
then lowers the counts of the edges whose level is between its old and its new level. Only the triangles of edges that
drop are enumerated.

Edges drop in blocks. All edges of a block compute their new levels in parallel from the levels before the block, and
then take their triangles from the counts of other edges. Neither the blocks nor the new levels depend on the number of
threads.
"""

from __future__ import annotations

import numpy as np
from numba import get_num_threads, prange

from ...graph import KEY_BITS, Adjacency, IntArray, LongArray
from ...runtime.cache import cached_njit
from ..arrays.intrinsics import borrowed, fetch_add
from .merging import KEPT, Union, sparse_zeros
from .triangles import triangles_of

ROOM = 1 << 20
"""Capacity of a block in triangles, unless one edge may have more."""
ALONE = 1 << 13
"""A block that has at most this many triangles is processed in one thread."""
CHUNK = 8
"""Edges that a thread takes at a time."""
IN_BLOCK = np.int64(1 << 31)
"""This bit is set in the keys of the edges of a block. All times are smaller."""
PART = 1 << 12
"""Destroyed triangles that a thread takes at a time."""


@cached_njit(parallel=True)
def _lose_triangles(triples, mark, key, count, remainder, change, queue, waiting):
    """Subtract the destroyed triangles from the counts, and queue the edges whose level is now too high."""
    for part in prange((triples.shape[0] + PART - 1) // PART):
        for i in range(part * PART, min((part + 1) * PART, triples.shape[0])):
            least = min(key[triples[i, 0]], key[triples[i, 1]], key[triples[i, 2]])
            for p in range(3):
                x = triples[i, p]
                if mark[x] != KEPT:
                    continue
                fetch_add(change, x, np.int32(-1))
                level = key[x] >> KEY_BITS
                if key[x] == least:
                    fetch_add(remainder, x, np.int32(-1))
                # Exactly one of the threads that lower the count sees it equal to the level: this one queues the edge.
                if level == least >> KEY_BITS and fetch_add(count, x, np.int32(-1)) == level:
                    queue[fetch_add(waiting, 0, np.int64(1))] = x


@cached_njit
def _drop_some(start, stop, thread, block, ends, rows, key, found, level):
    """Find the triangles of some edges of the block, and the level to which each of these edges drops."""
    low, high = borrowed(ends[0]), borrowed(ends[1])
    begin, length = borrowed(rows[0]), borrowed(rows[1])
    neighbour, edge = borrowed(rows[2]), borrowed(rows[3])
    pairs, keys, used, place = borrowed(found[0]), borrowed(found[1]), borrowed(found[2]), borrowed(found[3])
    histogram = borrowed(found[4])[thread]
    key = borrowed(key)
    n = used[thread]
    for i in range(start, stop):
        x = block[i]
        top = key[x] >> KEY_BITS
        to_f = pairs[thread, 0, n:]
        to_g = pairs[thread, 1, n:]
        hits = triangles_of(x, low, high, begin, length, neighbour, edge, to_f, to_g)
        kept = 0
        for h in range(hits):
            f = to_f[h]
            g = to_g[h]
            kf = key[f]
            kg = key[g]
            least = min(kf, kg) >> KEY_BITS
            if least >= 0:
                to_f[kept] = f
                to_g[kept] = g
                keys[thread, 0, n + kept] = kf
                keys[thread, 1, n + kept] = kg
                kept += 1
                histogram[min(least, top)] += 1
        now = top
        above = 0
        while above + histogram[now] < now:
            above += histogram[now]
            now -= 1
        histogram[: top + 1] = 0
        place[i, 0] = thread
        place[i, 1] = n
        place[i, 2] = n + kept
        place[i, 3] = hits
        level[i] = now
        n += kept
    used[thread] = n


@cached_njit
def _settle_some(start, stop, block, slot, key, after, found, count, remainder, queue, waiting):
    """Write the counts of some edges of the block, and subtract their triangles from the counts of edges outside."""
    pairs, keys, place = borrowed(found[0]), borrowed(found[1]), borrowed(found[3])
    slot, after = borrowed(slot), borrowed(after)
    for i in range(start, stop):
        x = block[i]
        before = key[x] & ~IN_BLOCK
        now = after[i]
        level = now >> KEY_BITS
        at_level = np.int32(0)
        later = np.int32(0)
        thread = place[i, 0]
        for h in range(place[i, 1], place[i, 2]):
            kf = keys[thread, 0, h]
            kg = keys[thread, 1, h]
            f = pairs[thread, 0, h]
            g = pairs[thread, 1, h]
            nf = after[slot[f]] if kf & IN_BLOCK else kf
            ng = after[slot[g]] if kg & IN_BLOCK else kg
            least = min(nf, ng)
            at_level += least >> KEY_BITS >= level
            later += least > now
            # The lower of two edges of the block takes their triangle from the third edge.
            for _ in range(2):
                if not kf & IN_BLOCK and (not kg & IN_BLOCK or x < g):
                    had = min(before, kg & ~IN_BLOCK)
                    has = min(now, ng)
                    own = kf >> KEY_BITS
                    if had > kf > has:
                        fetch_add(remainder, f, np.int32(-1))
                    if had >> KEY_BITS >= own > has >> KEY_BITS and fetch_add(count, f, np.int32(-1)) == own:
                        queue[fetch_add(waiting, 0, np.int64(1))] = f
                f, g = g, f
                kf, kg = kg, kf
                nf, ng = ng, nf
        count[x] = at_level
        remainder[x] = later
        if at_level < level:
            queue[fetch_add(waiting, 0, np.int64(1))] = x


@cached_njit(parallel=True)
def _drop(block, ends, rows, key, cursor, found, level):
    for thread in prange(found[2].size):
        while True:
            start = fetch_add(cursor, 0, np.int64(CHUNK))
            if start >= block.size:
                break
            _drop_some(start, min(start + CHUNK, block.size), thread, block, ends, rows, key, found, level)


@cached_njit(parallel=True)
def _settle(block, slot, key, after, cursor, found, count, remainder, queue, waiting):
    for _ in prange(found[2].size):
        while True:
            start = fetch_add(cursor, 1, np.int64(CHUNK))
            if start >= block.size:
                break
            stop = min(start + CHUNK, block.size)
            _settle_some(start, stop, block, slot, key, after, found, count, remainder, queue, waiting)


@cached_njit
def _open_block(members, ends, length, slot, key, most):
    """Open a block of the first `members`, with at most `most` triangles or one member. Returns their number."""
    low, high = ends
    room = 0
    for i in range(members.size):
        x = members[i]
        room += min(length[low[x]], length[high[x]]) + 1
        if i and room > most:
            return i
        slot[x] = i
        key[x] |= IN_BLOCK
    return members.size


@cached_njit
def _assign(level, place, level_ends, after):
    """Write the new keys: each edge goes to the end of its new level. Returns the number of triangles looked at."""
    looked = 0
    for i in range(level.size):
        after[i] = (level[i] << KEY_BITS) | level_ends[level[i]]
        level_ends[level[i]] += 1
        looked += place[i, 3]
    return looked


@cached_njit
def _close_block(block, key, after):
    for i in range(block.size):
        key[block[i]] = after[i]


@cached_njit
def _small_rounds(queue, waiting, slot, ends, rows, key, count, remainder, level_ends, found, most, alone):
    """Drop queued edges in this thread, until none is left or their triangles are too many for one thread or exceed
    `most`. Returns the number of triangles looked at.
    """
    low, high = ends
    length = rows[1]
    used, place = found[2], found[3]
    looked = 0
    while 0 < waiting[0] <= alone and looked <= most:
        room = 0
        for i in range(waiting[0]):
            room += min(length[low[queue[i]]], length[high[queue[i]]]) + 1
        if room > alone:
            break
        block = np.sort(queue[: waiting[0]])
        waiting[0] = 0
        used[0] = 0
        level = np.empty(block.size, np.int64)
        after = np.empty(block.size, np.int64)
        _open_block(block, ends, length, slot, key, alone)
        _drop_some(0, block.size, 0, block, ends, rows, key, found, level)
        looked += _assign(level, place, level_ends, after)
        _settle_some(0, block.size, block, slot, key, after, found, count, remainder, queue, waiting)
        _close_block(block, key, after)
    return looked


class Descent:
    """Deletions of one update, in one or several calls of `remove`. Takes 8 bytes of scratch memory an edge of `union`.

    `rows` are the rows of all edges of `union`. `ends` int64 [levels] is one more than the last time of each level.
    """

    def __init__(self, union: Union, rows: Adjacency, ends: LongArray) -> None:
        self._union, self._ends, self._length = union, ends, rows.length
        self._pairs = union.edges.low, union.edges.high
        self._lists = rows.begin, rows.length, rows.neighbour, rows.edge.view(np.uint32)
        self._queue = np.empty(union.edges.edges, np.int32)
        self._slot = sparse_zeros(union.edges.edges, np.int32)
        threads, self._room = get_num_threads(), max(ROOM, rows.widest + 1)
        self._used, self._place = np.zeros(threads, np.int64), np.empty((self._room, 4), np.int64)
        found = np.empty((threads, 2, self._room), np.uint32), np.empty((threads, 2, self._room), np.int64)
        self._found = *found, self._used, self._place, np.zeros((threads, len(ends) + 1), np.int32)

    def remove(self, gone: IntArray, triples: IntArray, most: int, in_one_thread: bool = True) -> int:
        """Update the order and the counts for the removal of the edges `gone`. Changes arrays of `union`, and `ends`.

        `gone` are removed edges of `union`. Other removed edges may go in a later call: until then they count as
        present, except that their own counts are not kept. `triples` are the triangles that are destroyed now. An edge
        that drops goes to the end of its new level. Returns the number of triangles looked at, and stops when this
        number exceeds `most`. If `in_one_thread` is false, all threads share small steps as well.
        """
        union, ends, queue, slot, used = self._union, self._ends, self._queue, self._slot, self._used
        pairs, lists, found = self._pairs, self._lists, self._found
        waiting = np.zeros(1, np.int64)
        key, counts = union.key, (union.count, union.remainder)
        _lose_triangles(triples, union.mark, key, *counts, union.change, queue, waiting)
        key[gone] = -1
        looked = 0
        while waiting[0] and looked <= most:
            if in_one_thread:
                left = most - looked
                looked += _small_rounds(queue, waiting, slot, pairs, lists, key, *counts, ends, found, left, ALONE)
            members = np.sort(queue[: waiting[0]])
            waiting[0] = 0
            while len(members) and looked <= most:
                size = _open_block(members, pairs, self._length, slot, key, self._room)
                block, members = members[:size], members[size:]
                level, after = np.empty((2, size), np.int64)
                cursor = np.zeros(2, np.int64)
                used[:] = 0
                _drop(block, pairs, lists, key, cursor, found, level)
                looked += _assign(level, self._place, ends, after)
                _settle(block, slot, key, after, cursor, found, *counts, queue, waiting)
                _close_block(block, key, after)
        return looked
