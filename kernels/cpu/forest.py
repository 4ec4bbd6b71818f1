"""A maximum spanning forest, by Borůvka's rounds over all edges in parallel."""

from __future__ import annotations

import numpy as np
from numba import get_num_threads, prange

from ..graph import IntArray
from ..runtime.cache import cached_njit
from .arrays.atomics import compare_swap

EDGE_BITS = 32
"""The key of an edge is its level, shifted left by this number of bits, plus its number."""


@cached_njit(parallel=True)
def _crossing(low, high, tree, edges, stop):
    """Each thread keeps those of its run of `edges` whose ends are in two trees."""
    part = (edges.size + stop.size - 1) // stop.size
    for thread in prange(stop.size):
        to = thread * part
        for i in range(thread * part, min((thread + 1) * part, edges.size)):
            e = edges[i]
            if tree[np.uintp(low[e])] != tree[np.uintp(high[e])]:
                edges[to] = e
                to += 1
        stop[thread] = to


@cached_njit(parallel=True)
def _propose(low, high, level, tree, edges, best):
    """The largest key at each tree of the edges between two trees."""
    for i in prange(edges.size):
        e = edges[i]
        ends = tree[np.uintp(low[e])], tree[np.uintp(high[e])]
        if ends[0] != ends[1]:
            key = (np.int64(level[e]) << EDGE_BITS) | np.int64(e)
            for end in ends:
                old = best[end]
                while old < key and not compare_swap(best, end, old, key):
                    old = best[end]


@cached_njit
def _root(up, v):
    while up[v] != v:
        up[v] = up[up[v]]
        v = up[v]
    return v


@cached_njit
def _unite(low, high, tree, best, up, chosen):
    """Unite each tree with the one at the other end of its best edge, and mark the edge. Clears `best`."""
    for t in range(best.size):
        if best[t] >= 0:
            e = best[t] & ((1 << EDGE_BITS) - 1)
            a, b = _root(up, tree[low[e]]), _root(up, tree[high[e]])
            if a != b:
                up[max(a, b)] = min(a, b)
                chosen[e] = True
            best[t] = -1
    for t in range(up.size):
        up[t] = _root(up, t)


@cached_njit(parallel=True)
def _settle(tree, up):
    for v in prange(tree.size):
        tree[v] = up[tree[v]]


def mark_forest(low: IntArray, high: IntArray, level: IntArray, vertices: int) -> np.ndarray:
    """Whether each edge is in a maximum spanning forest, bool [edges]; ties go to later edges.

    Arguments are those of `kernels.nest`. Each round reads the edges whose ends are in two trees, and adds the best
    edge at each tree (Borůvka, 1926): half of the trees or more go, and most edges after the first rounds.
    """
    tree, up = np.arange(vertices, dtype=np.int32), np.arange(vertices, dtype=np.int32)
    best, chosen = np.full(vertices, -1, np.int64), np.zeros(len(level), np.bool_)
    edges = np.arange(len(level), dtype=np.int32)
    while len(edges):
        _propose(low, high, level, tree, edges, best)
        _unite(low, high, tree, best, up, chosen)
        _settle(tree, up)
        stop = np.empty(get_num_threads(), np.int64)
        _crossing(low, high, tree, edges, stop)
        part = -(-len(edges) // len(stop))
        edges = np.concatenate([edges[thread * part : end] for thread, end in enumerate(stop.tolist())])
    return chosen
