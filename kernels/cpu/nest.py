"""Connected components at all levels, by one union-find from the highest level down.

Only the edges of a maximum spanning forest can join components, so the union-find processes these few edges. All other
edges find their components in parallel; one edge is enough to find a component whose level no edge of the forest has.
Borůvka's rounds find the forest, over all edges in parallel.
"""

from __future__ import annotations

import numpy as np
from numba import get_num_threads, prange

from ..graph import AnyArray, IntArray, LongArray, Nested
from ..runtime.cache import cached_njit
from .arrays.indexing import count_below
from .arrays.intrinsics import compare_swap

EDGE_BITS = 32
"""The key of an edge is its level, shifted left by this number of bits, plus its number."""


@cached_njit(parallel=True)
def _crossing(low, high, tree, edges, stop):
    """Each thread keeps those edges of its run of `edges` that have their ends in two trees."""
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
    """Find for each tree the largest key of the edges between this tree and another."""
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
def _root_of_tree(up, v):
    while up[v] != v:
        up[v] = up[up[v]]
        v = up[v]
    return v


@cached_njit
def _unite_trees(low, high, tree, best, up, chosen):
    """Unite each tree with the tree at the other end of its best edge, and mark the edge. Clears `best`."""
    for t in range(best.size):
        if best[t] >= 0:
            e = best[t] & ((1 << EDGE_BITS) - 1)
            a, b = _root_of_tree(up, tree[low[e]]), _root_of_tree(up, tree[high[e]])
            if a != b:
                up[max(a, b)] = min(a, b)
                chosen[e] = True
            best[t] = -1
    for t in range(up.size):
        up[t] = _root_of_tree(up, t)


@cached_njit(parallel=True)
def _settle_trees(tree, up):
    for v in prange(tree.size):
        tree[v] = up[tree[v]]


def mark_forest(low: IntArray, high: IntArray, level: IntArray, vertices: int) -> np.ndarray:
    """Whether each edge is in a maximum spanning forest, bool [edges]; ties go to later edges.

    Arguments are those of `kernels.nest`. Each round reads the edges whose ends are in two trees, and adds the best
    edge of each tree (Borůvka, 1926). A round at least halves the number of trees, and the first rounds remove most
    edges.
    """
    tree, up = np.arange(vertices, dtype=np.int32), np.arange(vertices, dtype=np.int32)
    best, chosen = np.full(vertices, -1, np.int64), np.zeros(len(level), np.bool_)
    edges = np.arange(len(level), dtype=np.int32)
    while len(edges):
        _propose(low, high, level, tree, edges, best)
        _unite_trees(low, high, tree, best, up, chosen)
        _settle_trees(tree, up)
        stop = np.empty(get_num_threads(), np.int64)
        _crossing(low, high, tree, edges, stop)
        part = -(-len(edges) // len(stop))
        edges = np.concatenate([edges[thread * part : end] for thread, end in enumerate(stop.tolist())])
    return chosen


MANY = 1 << 15
"""A spanning forest is found first if there are at least this many edges."""
SEEN_BITS = 20
"""log2 of the number of slots in the hash table of pairs of a component and a level that were seen."""
_MIX = np.uint64(0x9E3779B97F4A7C15)


@cached_njit
def find_root(up, v):
    """The root of the set of v. `up` is the parent of each vertex; the search halves the path to the root."""
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
    ends = np.empty(highest + 1, np.int64)
    for k in range(highest + 1):
        ends[k] = slot[k + 1]
    ordered = np.empty(level.size, np.int32)
    for e in range(level.size):
        k = highest - level[e]
        ordered[slot[k]] = e
        slot[k] += 1
    return ordered, ends


@cached_njit
def _doubled(values):
    larger = np.empty(2 * values.size, np.int32)
    for i in range(values.size):  # assigning to a slice takes a second more to compile, as its check formats a message
        larger[i] = values[i]
    return larger


@cached_njit
def _nest(low, high, level, vertices):
    """Components in the order of their creation, and whether each edge united two sets. The edges that did so are a
    maximum spanning forest.

    The root of a set is its least vertex.
    """
    ordered, ends = _by_level(level)
    up = np.arange(vertices).astype(np.int32)
    top = np.full(vertices, -1, np.int32)  # of a root: the outermost component so far
    of_vertex = np.full(vertices, -1, np.int32)
    of_edge = np.empty(level.size, np.int32)
    unites = np.zeros(level.size, np.bool_)
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
            a, b = find_root(up, low[ordered[i]]), find_root(up, high[ordered[i]])
            if a != b:
                a, b = min(a, b), max(a, b)
                up[b] = a
                united[united_count] = b
                united_count += 1
                unites[ordered[i]] = True
        for i in range(start, end):
            root = find_root(up, low[ordered[i]])
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
            outer = top[find_root(up, united[i])]
            if top[united[i]] >= 0:
                parent[top[united[i]]] = outer
            else:
                of_vertex[united[i]] = outer
        start = end
    return of_vertex, of_edge, levels[:found].copy(), least[:found].copy(), parent[:found].copy(), unites


@cached_njit
def _ancestors(levels, parent):
    """The level, the parent and a further ancestor of each component; the last entries stand for none.

    Any ancestor is O(log depth) steps away by the two ancestors (Myers, "An applicative random-access stack", 1983).
    """
    none = levels.size
    level, up, far, depth = np.empty((4, none + 1), np.int32)
    level[none], up[none], far[none], depth[none] = -1, none, none, 0
    for x in range(none - 1, -1, -1):
        p = parent[x] if parent[x] >= 0 else none
        middle = far[p]
        level[x], up[x], depth[x] = levels[x], p, depth[p] + 1
        is_even = depth[p] - depth[middle] == depth[middle] - depth[far[middle]]
        far[x] = far[middle] if is_even else p
    return level, up, far


@cached_njit
def _component(x, y, k, level, up, far):
    """The largest component of level ≥ k that contains the components x and y. It may be x or y itself."""
    if level[y] < level[x]:
        x = y
    while True:
        other = np.uintp(far[x])
        if level[other] < k:
            other = np.uintp(up[x])
            if level[other] < k:
                return x
        x = other


@cached_njit(parallel=True)
def _components(low, high, level, of_vertex, ancestors, seen, found, lacks):
    """Find the largest component that contains each edge and has at least the edge's level.

    If this component has a higher level, a component with the same vertices at the edge's level is missing. Marks in
    `lacks` at least one edge for each such pair of a component and a level. `seen` is a hash table of pairs of which an
    edge is marked. If a slot is overwritten, a further edge may be marked.
    """
    levels, up, far = ancestors
    for e in prange(level.size):
        k = level[e]
        ends = np.uintp(of_vertex[np.uintp(low[e])]), np.uintp(of_vertex[np.uintp(high[e])])
        x = _component(*ends, k, levels, up, far)
        found[e] = x
        if levels[x] != k:
            pair = (np.int64(x) << 32) | np.int64(k)
            slot = np.uint64(pair) * _MIX >> np.uint64(64 - SEEN_BITS)
            if seen[slot] != pair:
                seen[slot] = pair
                lacks[e] = True


@cached_njit(parallel=True)
def _number_edges(level, found, levels, pairs, number):
    """Replace each component by its number: that of the component itself, or of the pair with the edge's level."""
    own = levels.size
    for e in prange(level.size):
        x = np.uintp(found[e])
        if levels[x] == level[e]:
            found[e] = number[x]
        else:
            pair = (np.int64(x) << 32) | np.int64(level[e])
            found[e] = number[np.uintp(own + count_below(pairs, pair))]


def nest(low: IntArray, high: IntArray, level: IntArray, vertices: int) -> Nested:
    """The components of all levels; see `kernels.nest`."""
    return nest_with_forest(low, high, level, vertices)[0]


def nest_with_forest(low: IntArray, high: IntArray, level: IntArray, vertices: int) -> tuple[Nested, AnyArray]:
    """As `nest`, and whether each edge is in a maximum spanning forest, bool [edges]."""
    return (nest_few if len(level) < MANY else nest_many)(low, high, level, vertices)


def nest_few(low: IntArray, high: IntArray, level: IntArray, vertices: int) -> tuple[Nested, AnyArray]:
    """As `nest_with_forest`, by one union-find over all edges. This is the least work if most edges are in a forest."""
    of_vertex, of_edge, *components, unites = _nest(low, high, level, vertices)
    number, nested = _numbered(of_vertex, of_edge, *components)
    np.take(number, of_edge, out=of_edge)
    return nested, unites


def nest_many(low: IntArray, high: IntArray, level: IntArray, vertices: int) -> tuple[Nested, AnyArray]:
    """As `nest_with_forest`, in parallel except for a union-find over few edges."""
    forest = mark_forest(low, high, level, vertices)
    few = np.flatnonzero(forest | (low == high))
    of_vertex, _, *components, _ = _nest(low[few], high[few], level[few], vertices)
    return components_of_edges(low, high, level, of_vertex, *components), forest


def components_of_edges(
    low: IntArray,
    high: IntArray,
    level: IntArray,
    of_vertex: IntArray,
    levels: IntArray,
    least: IntArray,
    parent: IntArray,
) -> Nested:
    """The components of all levels of edges, in parallel, from the components of a maximum spanning forest.

    Of the forest, `of_vertex` [vertices] is the innermost component of each vertex; `levels`, `least` and `parent`
    [components] are as in `Nested`. A component comes before its parent.
    """
    of_edge, lacks = np.empty(len(level), np.int32), np.zeros(len(level), np.bool_)
    seen = np.full(1 << SEEN_BITS, -1, np.int64)
    _components(low, high, level, of_vertex, _ancestors(levels, parent), seen, of_edge, lacks)
    lacking = np.flatnonzero(lacks)
    pairs = np.unique((of_edge[lacking].astype(np.int64) << 32) | level[lacking])
    number, nested = _numbered(of_vertex, of_edge, *_with_pairs(levels, least, parent, pairs))
    _number_edges(level, of_edge, levels, pairs, number)
    return nested


def _with_pairs(
    levels: IntArray, least: IntArray, parent: IntArray, pairs: LongArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Level, least vertex and parent of the components, and of one more component for each of `pairs`.

    A pair is component << 32 | level. Its component contains that component at this level, and has the same vertices,
    as the parent of that component has a lower level.
    """
    of, level = pairs >> 32, (pairs & 0xFFFFFFFF).astype(np.int32)
    place = np.arange(len(levels), len(levels) + len(pairs), dtype=np.int32)
    is_first, is_last = (np.ones(len(pairs), np.bool_) for _ in range(2))
    is_first[1:] = is_last[:-1] = of[1:] != of[:-1]
    above = np.where(is_first, parent[of], place - 1)
    below = parent.copy()
    below[of[is_last]] = place[is_last]
    return np.concatenate([levels, level]), np.concatenate([least, least[of]]), np.concatenate([below, above])


def _numbered(
    of_vertex: IntArray, of_edge: IntArray, levels: IntArray, least: IntArray, parent: IntArray
) -> tuple[IntArray, Nested]:
    """The number of each component in the order of `Nested`, and the components. `of_edge` is not renumbered."""
    ascending = np.lexsort((least, -levels))
    number = np.empty(len(levels) + 1, np.int32)
    number[ascending] = np.arange(len(levels), dtype=np.int32)
    number[-1] = -1  # an index of -1 reads the last slot
    return number, Nested(number[of_vertex], of_edge, levels[ascending], least[ascending], number[parent[ascending]])


@cached_njit(parallel=True)
def _containing(low, high, level, of_vertex, ancestors):
    levels, up, far = ancestors
    component = np.empty(level.size, np.int32)
    for e in prange(level.size):
        ends = np.uintp(of_vertex[np.uintp(low[e])]), np.uintp(of_vertex[np.uintp(high[e])])
        component[e] = _component(*ends, level[e], levels, up, far)
    return component


def containing(
    low: IntArray, high: IntArray, level: IntArray, of_vertex: IntArray, levels: IntArray, parent: IntArray
) -> IntArray:
    """The largest component of the edge's level or more that contains both ends of each edge, int32 [edges].

    `of_vertex`, `levels` and `parent` are `vertex`, `level` and `parent` of a `Nested`. The ends must be in a component
    of that level.
    """
    component: IntArray = _containing(low, high, level, of_vertex, _ancestors(levels, parent))
    return component


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
