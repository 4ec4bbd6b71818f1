"""Deletions: λ is an upper bound, and edges that lost triangles descend to the new λ.

An edge whose triangles at its level are fewer than its level drops to the h-index of its triangles, as in Lü et al.
("The H-index of a network node and its relation to degree and coreness", 2016) and Sariyüce et al. (PVLDB 2018), and
tells the edges whose level is between its old and its new one. Only edges that drop are enumerated.
"""

from __future__ import annotations

import numpy as np

from ...graph import KEY_BITS, Adjacency, IntArray, LongArray
from ...runtime.cache import cached_njit
from .changed_triangles import triangles_of
from .merging import KEPT, Union


@cached_njit
def _lose_triangles(triples, mark, key, count, remainder, change, queue, queued):
    """Take the destroyed triangles from the counts. Returns the number of edges whose level is now too high."""
    waiting = 0
    for i in range(triples.shape[0]):
        least = min(key[triples[i, 0]], key[triples[i, 1]], key[triples[i, 2]])
        for p in range(3):
            x = triples[i, p]
            if mark[x] != KEPT:
                continue
            change[x] -= 1
            level = key[x] >> KEY_BITS
            if key[x] == least:
                remainder[x] -= 1
            if level == least >> KEY_BITS:
                count[x] -= 1
                if count[x] < level and not queued[x]:
                    queued[x] = True
                    queue[waiting] = x
                    waiting += 1
    return waiting


@cached_njit
def _descend(queue, waiting, queued, low, high, begin, length, neighbour, edge, key, count, remainder, ends, most):
    """`queue` is a ring. Returns the number of triangles looked at."""
    widest = 0
    for v in range(length.size):
        widest = max(widest, length[v])
    to_f = np.empty(widest + 1, np.uint32)
    to_g = np.empty(widest + 1, np.uint32)
    histogram = np.zeros(ends.size + 1, np.int32)
    first = 0
    looked = 0
    while waiting:
        x = queue[first]
        first = first + 1 if first + 1 < queue.size else 0
        waiting -= 1
        queued[x] = False
        top = key[x] >> KEY_BITS
        hits = triangles_of(x, low, high, begin, length, neighbour, edge, to_f, to_g)
        looked += hits
        if looked > most:
            break
        kept = 0
        for h in range(hits):
            least = min(key[to_f[h]], key[to_g[h]]) >> KEY_BITS
            if least >= 0:
                to_f[kept] = to_f[h]
                to_g[kept] = to_g[h]
                kept += 1
                histogram[min(least, top)] += 1
        level = top
        above = 0
        while above + histogram[level] < level:
            above += histogram[level]
            level -= 1
        for h in range(kept):
            histogram[min(min(key[to_f[h]], key[to_g[h]]) >> KEY_BITS, top)] = 0
        # `above` triangles are above the new level, and those of that level count as well.
        before = key[x]
        now = (level << KEY_BITS) | ends[level]
        ends[level] += 1
        key[x] = now
        at_level = 0
        for h in range(kept):
            f = to_f[h]
            g = to_g[h]
            kf = key[f]
            kg = key[g]
            at_level += min(kf, kg) >> KEY_BITS >= level
            for _ in range(2):
                own = kf >> KEY_BITS
                if level < own <= top and kg >> KEY_BITS >= own:
                    count[f] -= 1
                    if count[f] < own and not queued[f]:
                        queued[f] = True
                        to = first + waiting
                        queue[to if to < queue.size else to - queue.size] = f
                        waiting += 1
                if now < kf < before and kf < kg:
                    remainder[f] -= 1
                f, g = g, f
                kf, kg = kg, kf
        count[x] = at_level
        remainder[x] = above
    return looked


def descend(union: Union, rows: Adjacency, gone: IntArray, triples: IntArray, ends: LongArray, most: int) -> int:
    """Bring the order to the edges without those that are `gone`; changes the arrays of `union`, and `ends`.

    `gone` are removed edges of `union`. Others may go in a later call: they stand until then, and only their own counts
    are not kept. `triples` are the triangles that are destroyed now; `ends` int64 [levels] the times at which each
    level ends. An edge that drops goes to the end of its new level. Returns the number of triangles looked at, and
    stops when it exceeds `most`.
    """
    total = union.edges.edges
    queue, queued = np.empty(total, np.int32), np.zeros(total, np.bool_)
    state = union.key, union.count, union.remainder
    waiting = _lose_triangles(triples, union.mark, *state, union.change, queue, queued)
    union.key[gone] = -1
    if not waiting:
        return 0
    arrays = union.edges.low, union.edges.high, rows.begin, rows.length, rows.neighbour, rows.edge.view(np.uint32)
    looked: int = _descend(queue, waiting, queued, *arrays, *state, ends, most)
    return looked
