"""Communities by the Leiden algorithm, with the same bits for any number of threads.

Traag, Waltman and van Eck, "From Louvain to Leiden: guaranteeing well-connected communities", Scientific Reports 9,
2019. The quality of a partition is the sum over communities C of

    w(C) - resolution * S(C)² / 2

where w(C) is the weight of the edges inside, and S(C) the sum of the sizes of the vertices. For modularity (Reichardt,
Bornholdt, 2006) a size is the weight of a vertex's edges, and the resolution is divided by the weight of all edges
times two; for the constant Potts model (Traag, Van Dooren, Nesterov, 2011) a size is 1. For directed modularity
(Leicht, Newman, "Community structure in directed networks", Physical Review Letters 100, 2008) a vertex has two sizes,
the weights of its out-edges and of its in-edges, and in place of S(C)² / 2 is the product of their sums. The resolution
is divided by the weight of all edges then.

Vertices move in rounds. A hash puts each vertex into one of CLASSES classes. The vertices of a class choose where to
move at the same time, from the same state, and then all move. Weights are integers, so that sums do not depend on the
order. Where the paper merges a vertex at random, the refinement takes the best merger. Vertices of the last level of an
iteration move until no move of a single one, to the group of a neighbour or to be alone, makes the groups better.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numba import get_num_threads, prange
from numpy.typing import NDArray

from ..graph import InRows, IntArray, LongArray
from ..runtime.cache import cached_njit
from ..runtime.threads import kernel_threads, threads_now
from .arrays.intrinsics import compare_swap, fetch_add, mixed
from .arrays.sort import by_key, positions_by_group

CLASSES = 8
"""Classes of vertices that move one after the other."""
BLOCK = 256
"""Vertices that a thread takes at a time."""
FEWEST = 1024
"""Fewest vertices of a thread, if several threads work."""
LEAST_SLOTS = 8
"""Fewest slots of a hash table, a power of two."""
MOST_ROUNDS = 200
"""Most rounds in which vertices of one level move."""


@dataclass(frozen=True)
class Weighted:
    """A graph with weights, and sizes of its vertices. Each edge is in the rows of both ends; no edge is a loop.

    Edges of a directed graph in both directions are one, whose weight is the sum.
    """

    offsets: LongArray
    """[vertices + 1] The row of a vertex is the entries offsets[v] … offsets[v + 1] - 1."""
    neighbour: IntArray
    """[entries]"""
    weight: LongArray
    """[entries] positive"""
    size: LongArray
    """[vertices], or of a directed graph [2 * vertices]: the sizes for out-edges, then those for in-edges."""

    def __post_init__(self) -> None:
        """Arrays of workers may be read-only, and Numba would compile kernels for both kinds."""
        for name in ("offsets", "neighbour", "weight", "size"):
            frozen = getattr(self, name).view()
            frozen.flags.writeable = False
            object.__setattr__(self, name, frozen)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def digest(self) -> str:
        """A hash of the vertices and edges."""
        found = hashlib.blake2b(digest_size=16)
        for values in (self.offsets, self.neighbour, self.weight, self.size):
            found.update(values.data)
        return found.hexdigest()

    @property
    def total(self) -> int:
        """The weight of all edges."""
        return int(self.weight.sum()) // 2


@cached_njit
def _class_of(vertex, round_number):
    return np.int64(mixed((np.uint64(vertex) << np.uint64(20)) + np.uint64(round_number)) % np.uint64(CLASSES))


@cached_njit(parallel=True)
def _classes(vertices, round_number, found):
    """The class of each vertex."""
    for i in prange(vertices.size):
        found[i] = _class_of(vertices[i], round_number)


def _by_class(vertices: IntArray, round_number: int) -> list[IntArray]:
    """The vertices of each class that has some, in their order."""
    of_class = np.empty(len(vertices), np.int16)
    _classes(vertices, round_number, of_class)
    return [vertices[own] for own in positions_by_group(of_class, CLASSES) if len(own)]


@cached_njit(inline="always")
def _expected(size, v, total, group, inside, vertices):
    """The product of the sizes of a vertex and a group, which is what connects them at random, for resolution 1.

    `size` is that of `vertices` vertices, `total` that of groups. The vertex itself is left out of the group if it is
    `inside`.
    """
    if size.size == vertices:
        return np.float64(size[v]) * np.float64(total[group] - size[v] * inside)
    half = total.size // 2
    out_edges, in_edges = size[v], size[vertices + v]
    return np.float64(out_edges) * np.float64(total[half + group] - in_edges * inside) + np.float64(
        in_edges
    ) * np.float64(total[group] - out_edges * inside)


@cached_njit
def _mask(entries, slots):
    """The mask of hash values for a table of some entries: a part of the table, which should fit a cache."""
    size = np.int64(LEAST_SLOTS)
    while size < 2 * entries and size < slots:
        size *= 2
    return size - 1


@cached_njit
def _add_row(neighbour, weight, start, stop, group, without, keys, sums, places, mask, found):
    """Add the weights of a row to the sums of the groups of its neighbours, except the group `without`.

    `keys` is a hash table, where -1 is an empty slot, with `sums`. The slots of its `found` keys are in `places`, in
    the order in which they were added. Returns the new number of keys.
    """
    for at in range(start, stop):
        key = group[neighbour[at]]
        if key == without:
            continue
        slot = np.int64(np.uint64(np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)) & mask
        while keys[slot] != key and keys[slot] >= 0:
            slot = (slot + 1) & mask
        if keys[slot] < 0:
            keys[slot] = key
            sums[slot] = 0
            places[found] = slot
            found += 1
        sums[slot] += weight[at]
    return found


@cached_njit(parallel=True)
def _choose(offsets, neighbour, weight, size, group, total, count, chosen, resolution, keys, sums, places, target):
    """The group that each chosen vertex moves to: that of the largest gain, of several the one of smallest number.

    Groups have numbers below twice that of vertices. A vertex to be alone moves to the group of its own number, or that
    and the number of vertices, of which one must have no vertex.
    """
    threads, vertices = keys.shape[0], offsets.size - 1
    blocks = (chosen.size + BLOCK - 1) // BLOCK
    for t in prange(threads):
        own_keys, own_sums, own_places = keys[t], sums[t], places[t]
        for block in range(t, blocks, threads):
            for i in range(block * BLOCK, min((block + 1) * BLOCK, chosen.size)):
                v = chosen[i]
                own = group[v]
                start, stop = offsets[v], offsets[v + 1]
                mask = _mask(stop - start, own_keys.size)
                found = _add_row(
                    neighbour, weight, start, stop, group, -1, own_keys, own_sums, own_places, mask, np.int64(0)
                )
                inside = np.int64(0)
                best, most = own, -np.inf
                for j in range(found):
                    slot = own_places[j]
                    key, links = own_keys[slot], own_sums[slot]
                    own_keys[slot] = -1
                    if key == own:
                        inside = links
                        continue
                    gain = links - resolution * _expected(size, v, total, key, False, vertices)
                    if gain > most or (gain == most and key < best):
                        best, most = key, gain
                stays = inside - resolution * _expected(size, v, total, own, True, vertices)
                if most <= stays or (count[own] == 1 and count[best] == 1 and best > own):
                    best = own
                if max(most, stays) < 0:
                    alone = v if count[v] == 0 else vertices + v
                    best = alone if count[alone] == 0 else best
                target[i] = best


@cached_njit(parallel=True)
def _move(size, group, total, count, chosen, before, target, active):
    """Move the chosen vertices from their groups `before` to their targets."""
    vertices, half = group.size, total.size // 2
    for i in prange(chosen.size):
        v, to = chosen[i], target[i]
        active[v] = False
        if to != before[i]:
            fetch_add(total, before[i], -size[v])
            fetch_add(total, to, size[v])
            if size.size > vertices:
                fetch_add(total, half + before[i], -size[vertices + v])
                fetch_add(total, half + to, size[vertices + v])
            fetch_add(count, before[i], np.int64(-1))
            fetch_add(count, to, np.int64(1))
            group[v] = to


@cached_njit(parallel=True)
def _activate(offsets, neighbour, group, chosen, before, target, active):
    """Mark the neighbours, outside of its new group, of each vertex that moved."""
    for i in prange(chosen.size):
        v, to = chosen[i], target[i]
        if to != before[i]:
            for at in range(offsets[v], offsets[v + 1]):
                if group[neighbour[at]] != to:
                    active[neighbour[at]] = True


@cached_njit(parallel=True)
def _weigh(offsets, neighbour, weight, group, outside):
    """The weight of the edges of each vertex within its group."""
    for v in prange(group.size):
        inside = np.int64(0)
        for at in range(offsets[v], offsets[v + 1]):
            if group[neighbour[at]] == group[v]:
                inside += weight[at]
        outside[v] = inside


@cached_njit(parallel=True)
def _merge(
    offsets,
    neighbour,
    weight,
    size,
    group,
    total,
    members,
    starts,
    resolution,
    keys,
    sums,
    places,
    next_group,
    part,
    is_joined,
    sizes,
    outside,
):
    """Part each group: merge its `members`, from single ones. `part` becomes the part of each vertex.

    As in the paper, only vertices and parts that are well connected to the rest of their group are merged. `sizes` and
    `outside` are, of each part, its size and the weight of its edges to the rest of the group.
    """
    vertices = group.size
    for t in prange(keys.shape[0]):
        own_keys, own_sums, own_places = keys[t], sums[t], places[t]
        while True:
            g = fetch_add(next_group, 0, np.int64(1))
            if g >= starts.size - 1:
                break
            for i in range(starts[g], starts[g + 1]):
                v = members[i]
                if (
                    part[v] != v
                    or is_joined[v]
                    or outside[v] < resolution * _expected(size, v, total, group[v], True, vertices)
                ):
                    continue
                start, stop = offsets[v], offsets[v + 1]
                mask = _mask(stop - start, own_keys.size)
                found = _add_row(
                    neighbour, weight, start, stop, part, v, own_keys, own_sums, own_places, mask, np.int64(0)
                )
                best, most, links = v, 0.0, np.int64(0)
                for j in range(found):
                    slot = own_places[j]
                    key, own = own_keys[slot], own_sums[slot]
                    own_keys[slot] = -1
                    if group[key] != group[v] or outside[key] < resolution * _expected(
                        sizes, key, total, group[v], True, vertices
                    ):
                        continue
                    gain = own - resolution * _expected(size, v, sizes, key, False, vertices)
                    if gain > most or (gain == most and best != v and key < best):
                        best, most, links = key, gain, own
                if best != v:
                    part[v] = best
                    is_joined[best] = True
                    sizes[best] += size[v]
                    if size.size > vertices:
                        sizes[vertices + best] += size[vertices + v]
                    outside[best] += outside[v] - 2 * links


@cached_njit(parallel=True)
def _first_of(part, first):
    """Lower `first` of each part to its smallest vertex."""
    for v in prange(part.size):
        p = part[v]
        before = first[p]
        while v < before and not compare_swap(first, p, before, np.int32(v)):
            before = first[p]


@cached_njit(parallel=True)
def _mark(part, first, is_first):
    """Mark the first vertex of each part."""
    for v in prange(part.size):
        is_first[v] = first[part[v]] == v


@cached_njit(parallel=True)
def _number(part, first, before, found):
    """The number of each vertex's part, from that of parts whose first vertex is this one or comes before."""
    for v in prange(part.size):
        found[v] = before[first[part[v]]] - 1


def _numbered(part: IntArray) -> tuple[IntArray, int]:
    """The number of each vertex's part, in the order of their first vertices, and of parts.

    `part` has values below twice the number of vertices.
    """
    first, before = np.full(2 * len(part), len(part), np.int32), np.empty(len(part), np.int32)
    _first_of(part, first)
    _mark(part, first, before)
    np.cumsum(before, out=before)
    found = np.empty_like(part)
    _number(part, first, before, found)
    return found, int(before[-1]) if len(part) else 0


def _members(part: IntArray, parts: int, order: IntArray) -> tuple[IntArray, LongArray]:
    """The vertices of each part, in their `order`, one part after the other, and where each begins."""
    starts = np.zeros(parts + 1, np.int64)
    np.cumsum(_sums(part, parts, np.ones(len(part), np.int64)), out=starts[1:])
    return by_key(part, order, parts), starts


@cached_njit(parallel=True)
def _join(offsets, neighbour, weight, part, vertices, starts, keys, sums, places, rows, to, joined, fill):
    """Count the neighbours of each part in `rows`, or with `fill` write them to `to` and their weights to `joined`."""
    threads = keys.shape[0]
    parts = starts.size - 1
    blocks = (parts + BLOCK - 1) // BLOCK
    for t in prange(threads):
        own_keys, own_sums, own_places = keys[t], sums[t], places[t]
        for block in range(t, blocks, threads):
            for p in range(block * BLOCK, min((block + 1) * BLOCK, parts)):
                entries = np.int64(0)
                for i in range(starts[p], starts[p + 1]):
                    entries += offsets[vertices[i] + 1] - offsets[vertices[i]]
                mask, found = _mask(entries, own_keys.size), np.int64(0)
                for i in range(starts[p], starts[p + 1]):
                    start, stop = offsets[vertices[i]], offsets[vertices[i] + 1]
                    found = _add_row(
                        neighbour, weight, start, stop, part, p, own_keys, own_sums, own_places, mask, found
                    )
                for j in range(found):
                    slot = own_places[j]
                    if fill:
                        to[rows[p] + j] = own_keys[slot]
                        joined[rows[p] + j] = own_sums[slot]
                    own_keys[slot] = -1
                if not fill:
                    rows[p + 1] = found


class _Tables(NamedTuple):
    """A hash table of each thread, for the neighbours of a vertex or a part."""

    keys: IntArray
    sums: LongArray
    places: LongArray

    @classmethod
    def of(cls, most: int) -> _Tables:
        """Tables for at most `most` keys."""
        slots, threads = max(LEAST_SLOTS, 2 << max(0, most - 1).bit_length()), get_num_threads()
        shape = threads, slots
        return cls(np.full(shape, -1, np.int32), np.empty(shape, np.int64), np.empty((threads, max(most, 1)), np.int64))


def _threads_for(vertices: int) -> AbstractContextManager[int]:
    """A parallel loop over few vertices has fewer threads, since they take longer to start and end than the work."""
    now = threads_now()
    few = max(1, min(now, vertices // FEWEST))
    return nullcontext(now) if few == now else kernel_threads(few)


def _move_all(graph: Weighted, group: IntArray, resolution: float, tables: _Tables) -> None:
    """Move vertices between groups, which changes `group`, until none gains whose neighbours moved."""
    total = _sizes(graph, group, 2 * len(graph))
    count = np.bincount(group, minlength=2 * len(graph))
    active = np.ones(len(graph), np.bool_)
    rows = graph.offsets, graph.neighbour, graph.weight, graph.size
    for number in range(MOST_ROUNDS):
        moved = 0
        for chosen in _by_class(np.flatnonzero(active).astype(np.int32), number):
            before, target = group[chosen], np.empty(len(chosen), np.int32)
            with _threads_for(len(chosen)):
                _choose(*rows, group, total, count, chosen, resolution, *tables, target)
                _move(graph.size, group, total, count, chosen, before, target, active)
                _activate(graph.offsets, graph.neighbour, group, chosen, before, target, active)
            moved += int(np.count_nonzero(before != target))
        if not moved:
            break


def _settled(graph: Weighted, group: IntArray, resolution: float, tables: _Tables) -> tuple[IntArray, bool]:
    """Connected groups that no move of a single vertex makes better, and whether it took at most MOST_ROUNDS."""
    found = _connected(graph.offsets, graph.neighbour, group)
    for _ in range(MOST_ROUNDS):
        moved = found.copy()
        _move_all(graph, moved, resolution, tables)
        if np.array_equal(moved, found):
            return found, True
        found = _connected(graph.offsets, graph.neighbour, moved)
    return found, False


def _parted(graph: Weighted, group: IntArray, resolution: float, tables: _Tables) -> tuple[IntArray, int]:
    """The part of each vertex within its group, and the number of parts."""
    group, groups = _numbered(group)
    total = _sizes(graph, group, groups)
    order = np.concatenate(_by_class(np.arange(len(graph), dtype=np.int32), MOST_ROUNDS))
    members, starts = _members(group, groups, order)
    part, outside = np.arange(len(graph), dtype=np.int32), np.empty(len(graph), np.int64)
    rows = graph.offsets, graph.neighbour, graph.weight
    _weigh(*rows, group, outside)
    same = *rows, graph.size, group, total, members, starts, resolution
    _merge(*same, *tables, np.zeros(1, np.int64), part, np.zeros(len(graph), np.bool_), graph.size.copy(), outside)
    return _numbered(part)


def _joined(graph: Weighted, part: IntArray, parts: int) -> Weighted:
    """The graph whose vertices are the parts, without edges inside of parts."""
    vertices, starts = _members(part, parts, np.arange(len(graph), dtype=np.int32))
    entries = np.add.reduceat(np.diff(graph.offsets)[vertices], starts[:-1])
    tables = _Tables.of(min(parts, int(entries.max())))
    rows = np.zeros(parts + 1, np.int64)
    same = graph.offsets, graph.neighbour, graph.weight, part, vertices, starts, *tables, rows
    _join(*same, np.zeros(0, np.int32), np.zeros(0, np.int64), False)
    np.cumsum(rows, out=rows)
    neighbour, weight = np.empty(rows[-1], np.int32), np.empty(rows[-1], np.int64)
    _join(*same, neighbour, weight, True)
    return Weighted(rows, neighbour, weight, _sizes(graph, part, parts))


@cached_njit(parallel=True)
def _add(group, values, sums):
    """Add the value of each vertex to that of its group."""
    for v in prange(group.size):
        fetch_add(sums, group[v], values[v])


def _sums(group: IntArray, groups: int, values: LongArray) -> LongArray:
    """The sum of the values of each group."""
    sums = np.zeros(groups, np.int64)
    _add(group, values, sums)
    return sums


def _sizes(graph: Weighted, group: IntArray, groups: int) -> LongArray:
    """The sizes of groups, [groups], or of a directed graph [2 * groups]."""
    own = graph.size.reshape(-1, len(graph)) if len(graph) else graph.size[:0].reshape(1, 0)
    return np.concatenate([_sums(group, groups, values) for values in own])


@cached_njit
def _connected(offsets, neighbour, group):
    """The connected parts of each group: the smallest vertex of the part of each vertex. By union-find."""
    parent = np.arange(group.size).astype(np.int32)
    for v in range(group.size):
        root = v
        while parent[root] != root:
            root = parent[root]
        for at in range(offsets[v], offsets[v + 1]):
            other = neighbour[at]
            if other >= v or group[other] != group[v]:
                continue
            while parent[other] != other:
                parent[other] = parent[parent[other]]
                other = parent[other]
            if other < root:
                parent[root] = other
                root = other
            elif root < other:
                parent[other] = root
    for v in range(group.size):
        parent[v] = parent[parent[v]]
    return parent


@cached_njit
def _cut_at(v, offsets, neighbour, weight, group):
    """The weight of the edges of a vertex that lead to other groups."""
    cut = np.int64(0)
    for at in range(offsets[v], offsets[v + 1]):
        if group[neighbour[at]] != group[v]:
            cut += weight[at]
    return cut


@cached_njit(parallel=True)
def _cut(offsets, neighbour, weight, group):
    """The weight of the edges between groups, times two."""
    cut = np.int64(0)
    for v in prange(group.size):
        cut += _cut_at(v, offsets, neighbour, weight, group)  # Numba refuses a loop here with Python 3.12
    return cut


@cached_njit
def _products(values, others):
    """The sum of products, added in order, so that no library chooses the order."""
    found = 0.0
    for at in range(values.size):
        found += np.float64(values[at]) * np.float64(others[at])
    return found


def quality(graph: Weighted, group: IntArray, resolution: float) -> float:
    """The quality of groups; for modularity times the weight of all edges."""
    return graph.total - _lost(graph, group, resolution)


def _lost(graph: Weighted, group: IntArray, resolution: float) -> float:
    """What groups have less of quality than the weight of all edges."""
    sizes = _sizes(graph, group, len(graph))
    pairs = _products(sizes[: len(graph)], sizes[-len(graph) :]) if len(graph) else 0.0
    if len(graph.size) == len(graph):
        pairs /= 2
    return float(_cut(graph.offsets, graph.neighbour, graph.weight, group)) / 2 + resolution * float(pairs)


class Partition(NamedTuple):
    """Groups of the vertices of a graph, and how they were merged."""

    group: IntArray
    """[vertices] groups, numbered by their first vertices. Each is connected."""
    parts: tuple[IntArray, ...]
    """[levels, vertices] the parts of each level, the largest first: those of the first level are parts of groups, and
    those of each next level are parts of them. Each is connected. The first are the vertices of the last level.
    """
    is_settled: bool
    """Whether no move of a single one of these to the group of a neighbour, or to be alone, makes the groups better."""

    @property
    def levels(self) -> tuple[IntArray, ...]:
        """The groups, and the parts of each level."""
        return self.group, *self.parts


def _iterate(
    graph: Weighted, group: IntArray, resolution: float, each: bool, moves: bool = True
) -> Iterator[tuple[Partition, float]]:
    """One iteration of the algorithm from `group`: the groups after its last level, or after `each` level.

    Groups are connected. With what they have less of quality than the weight of all edges. Without `moves` they are
    those of `group`, which must be connected.
    """
    level, of_vertex = graph, np.arange(len(graph), dtype=np.int32)
    before: tuple[IntArray, ...] = ()
    while True:
        tables = _Tables.of(int(np.diff(level.offsets).max()))
        if moves:
            _move_all(level, group, resolution, tables)
        with _threads_for(len(level)):
            part, parts = _parted(level, group, resolution, tables)
        is_last = parts == len(level)
        if each or is_last:
            settled = False
            if is_last and moves:
                group, settled = _settled(level, group, resolution, tables)
            found = _connected(level.offsets, level.neighbour, group)
            yield Partition(_numbered(found[of_vertex])[0], before, settled), _lost(level, found, resolution)
        if is_last:
            return
        first = np.empty(parts, np.int32)
        first[part[::-1]] = np.arange(len(level), dtype=np.int32)[::-1]
        with _threads_for(len(level)):
            level = _joined(level, part, parts)
        group = _numbered(group)[0][first]
        of_vertex = part[of_vertex]
        before = of_vertex, *before


def leiden(graph: Weighted, resolution: float, iterations: int | None = None, each: bool = False) -> Iterator[IntArray]:
    """The groups of `partitions`, from single vertices."""
    return (found.group for found in partitions(graph, resolution, iterations, each=each))


def partitions(
    graph: Weighted,
    resolution: float,
    iterations: int | None = None,
    start: IntArray | None = None,
    each: bool = False,
) -> Iterator[Partition]:
    """Better and better groups: of each vertex, int32, numbered by their first vertices, and connected.

    One for each iteration, or with `each` for each level of an iteration, in which vertices move once. Ends after
    `iterations`, or after one that finds nothing better. Nothing, if each vertex by itself is best.

    With `start` [vertices], int32 from 0 to their number, these groups without what is not connected are the first, and
    the iterations begin with them.
    """
    best = np.arange(len(graph), dtype=np.int32)
    if start is not None and len(graph):
        best = _connected(graph.offsets, graph.neighbour, start)
    least = _lost(graph, best, resolution) if len(graph) else 0.0
    is_better, done = len(graph) > 0, 0
    if start is not None and len(graph):
        ((first, _),) = _iterate(graph, best.copy(), resolution, False, moves=False)
        yield first
    while is_better and (iterations is None or done < iterations):
        is_better, done = False, done + 1
        for found, lost in _iterate(graph, best.copy(), resolution, each):
            if lost < least:
                best, least, is_better = found.group, lost, True
                yield found
            elif start is not None and np.array_equal(found.group, first.group):
                yield found  # which tells whether they are settled


EXACT_BITS = 52
"""Bits of the sum of all weights as integers."""


def whole_weights(weight: NDArray[np.float64]) -> tuple[LongArray, float]:
    """Weights as integers, so that their sum has at most EXACT_BITS bits, and what a weight of 1 is among them: a power
    of two.

    Exact if the weights are multiples of its inverse; others are rounded.
    """
    total = float(weight.sum())
    if total == 0 or (total < 2**EXACT_BITS and not np.any(weight % 1)):
        return weight.astype(np.int64), 1.0
    exponent = EXACT_BITS - int(np.frexp(total)[1])
    return np.rint(np.ldexp(weight, exponent)).astype(np.int64), float(np.ldexp(1.0, exponent))


def graph_of_rows(rows: InRows, potts: bool) -> tuple[Weighted, float]:
    """The graph of rows that have each edge at both ends, and the resolution that stands for 1.

    Sizes are those of modularity, or 1 with `potts`. Edges of weight 0 are left out.
    """
    offsets, neighbour = rows.offsets, rows.source
    whole, one = (np.ones(len(rows), np.int64), 1.0) if rows.weight is None else whole_weights(rows.weight)
    summed = np.zeros(len(whole) + 1, np.int64)
    np.cumsum(whole, out=summed[1:])
    size = np.ones(len(offsets) - 1, np.int64) if potts else np.diff(summed[offsets])
    graph = _without_zeros(offsets, neighbour, whole, size)
    return graph, one if potts else 1 / max(1, int(size.sum()))


def directed_graph_of_rows(rows: InRows, transposed: Callable[[InRows], InRows]) -> tuple[Weighted, float]:
    """The graph of rows that have the in-edges of each vertex, and the resolution that stands for 1 in directed
    modularity. `transposed` gives rows that have the out-edges. Edges of weight 0 are left out.
    """
    whole = np.ones(len(rows), np.int64) if rows.weight is None else whole_weights(rows.weight)[0]
    into = replace(rows, weight=whole.astype(np.float64))  # exact: of at most EXACT_BITS bits
    ways = transposed(into), into
    vertices = len(rows.offsets) - 1
    offsets = ways[0].offsets + ways[1].offsets
    neighbour, weight = np.empty(offsets[-1], np.int32), np.empty(offsets[-1], np.int64)
    sizes = []
    for own, before in zip(ways, (np.zeros(vertices, np.int64), np.diff(ways[0].offsets)), strict=True):
        lengths = np.diff(own.offsets)
        at = np.arange(len(own)) + np.repeat(offsets[:-1] + before - own.offsets[:-1], lengths)
        neighbour[at], weight[at] = own.source, own.weights.astype(np.int64)
        summed = np.zeros(len(own) + 1, np.int64)
        np.cumsum(own.weights.astype(np.int64), out=summed[1:])
        sizes.append(np.diff(summed[own.offsets]))
    graph = _without_zeros(offsets, neighbour, weight, np.concatenate(sizes))
    return graph, 1 / max(1, int(sizes[0].sum()))


def _without_zeros(offsets: LongArray, neighbour: IntArray, weight: LongArray, size: LongArray) -> Weighted:
    kept = np.zeros(len(weight) + 1, np.int64)
    np.cumsum(weight > 0, out=kept[1:])
    if kept[-1] < len(weight):
        neighbour, weight, offsets = neighbour[weight > 0], weight[weight > 0], kept[offsets]
    return Weighted(offsets, neighbour, weight, size)


def graph_for_modularity(
    source: IntArray, target: IntArray, weight: NDArray[np.float64] | None, vertices: int
) -> tuple[Weighted, float]:
    """The graph of some edges, and the resolution for the modularity that has resolution 1.

    `source` and `target` are the ends of each edge, once, in any order; loops and parallel edges are allowed.
    """
    whole = np.ones(len(source), np.int64) if weight is None else whole_weights(weight)[0]
    size = _sums(source, vertices, whole) + _sums(target, vertices, whole)
    kept = (source != target) & (whole > 0)
    low, high, own = source[kept], target[kept], whole[kept]
    ends, others = np.concatenate([low, high]), np.concatenate([high, low])
    order = np.lexsort((others, ends))
    offsets = np.zeros(vertices + 1, np.int64)
    np.cumsum(np.bincount(ends, minlength=vertices), out=offsets[1:])
    graph = Weighted(offsets, others[order].astype(np.int32), np.concatenate([own, own])[order], size)
    return graph, 1 / max(1, int(size.sum()))
