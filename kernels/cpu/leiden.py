"""The loops of the Leiden algorithm on CPUs; see `kernels.leiden`.

Threads take vertices from a common counter: a vertex with many neighbours alone, others in blocks.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numba import get_num_threads, prange
from numpy.typing import NDArray

from ..graph import LEIDEN_CLASSES, IntArray, LongArray, Parts, Weighted
from ..runtime.cache import cached_njit
from ..runtime.threads import kernel_threads, threads_now
from .arrays.intrinsics import compare_swap, fetch_add, mixed
from .arrays.sort import by_key, positions_by_group

BLOCK = 64
"""Vertices that a thread takes at a time."""
HEAVY = 1024
"""A thread takes a vertex with more neighbours by itself."""
FEWEST = 8192
"""Fewest vertices and neighbours of a thread, if several threads work."""
LEAST_SLOTS = 8
"""Fewest slots of a hash table, a power of two."""
_SECOND = 0xA5A5A5A5A5A5A5A5
"""What makes the second sum of hashes differ from the first."""


@cached_njit
def _class_of(vertex, round_number):
    return np.int64(mixed((np.uint64(vertex) << np.uint64(20)) + np.uint64(round_number)) % np.uint64(LEIDEN_CLASSES))


@cached_njit(parallel=True)
def _classes(vertices, round_number, found):
    """The class of each vertex."""
    for i in prange(vertices.size):
        found[i] = _class_of(vertices[i], round_number)


@cached_njit
def _unit(next_unit, heavy, count):
    """The next vertices for a thread, from the first to before the last, of `count`, of which the first are `heavy`."""
    unit = fetch_add(next_unit, 0, np.int64(1))
    if unit < heavy:
        return unit, unit + 1
    first = heavy + (unit - heavy) * BLOCK
    return min(first, count), min(first + BLOCK, count)


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
def _choose(
    offsets,
    neighbour,
    weight,
    size,
    group,
    total,
    count,
    chosen,
    heavy,
    resolution,
    keys,
    sums,
    places,
    next_unit,
    target,
):
    """The group that each chosen vertex moves to; see `Level.move`."""
    vertices = offsets.size - 1
    for t in prange(keys.shape[0]):
        own_keys, own_sums, own_places = keys[t], sums[t], places[t]
        first, last = _unit(next_unit, heavy, chosen.size)
        while first < last:
            for i in range(first, last):
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
            first, last = _unit(next_unit, heavy, chosen.size)


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
def _activate(offsets, neighbour, group, chosen, heavy, before, target, threads, next_unit, active):
    """Mark the neighbours, outside of its new group, of each vertex that moved."""
    for _ in prange(threads):
        first, last = _unit(next_unit, heavy, chosen.size)
        while first < last:
            for i in range(first, last):
                v, to = chosen[i], target[i]
                if to != before[i]:
                    for at in range(offsets[v], offsets[v + 1]):
                        if group[neighbour[at]] != to:
                            active[neighbour[at]] = True
            first, last = _unit(next_unit, heavy, chosen.size)


@cached_njit
def _weight_within(v, offsets, neighbour, weight, group):
    """The weight of the edges of a vertex within its group."""
    inside = np.int64(0)
    for at in range(offsets[v], offsets[v + 1]):
        if group[neighbour[at]] == group[v]:
            inside += weight[at]
    return inside


@cached_njit(parallel=True)
def _weigh(offsets, neighbour, weight, group, threads, next_unit, inside):
    """The weight of the edges of each vertex within its group."""
    for _ in prange(threads):
        first, last = _unit(next_unit, 0, group.size)
        while first < last:
            for v in range(first, last):
                inside[v] = _weight_within(v, offsets, neighbour, weight, group)
            first, last = _unit(next_unit, 0, group.size)


@cached_njit(parallel=True)
def _choose_part(
    offsets,
    neighbour,
    weight,
    size,
    group,
    total,
    part,
    is_joined,
    sizes,
    outside,
    chosen,
    heavy,
    resolution,
    keys,
    sums,
    places,
    next_unit,
    wanted,
    links,
):
    """The part that each chosen vertex is to be merged to, and the weight of its edges to that; see `Level.merge`."""
    vertices = group.size
    for t in prange(keys.shape[0]):
        own_keys, own_sums, own_places = keys[t], sums[t], places[t]
        first, last = _unit(next_unit, heavy, chosen.size)
        while first < last:
            for i in range(first, last):
                v = chosen[i]
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
                best, most, best_links = v, 0.0, np.int64(0)
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
                        best, most, best_links = key, gain, own
                wanted[v], links[i] = best, best_links
            first, last = _unit(next_unit, heavy, chosen.size)


@cached_njit(parallel=True)
def _merge(size, part, is_joined, sizes, outside, wanted, chosen, links, left):
    """Merge the chosen vertices to the parts that they want; marks those that are `left`."""
    vertices = part.size
    for i in prange(chosen.size):
        v = chosen[i]
        to = wanted[v]
        if to != v:
            left[i] = wanted[to] != to and (wanted[to] != v or v < to)
            if not left[i]:
                part[v] = to
                is_joined[to] = True
                fetch_add(sizes, to, size[v])
                if size.size > vertices:
                    fetch_add(sizes, vertices + to, size[vertices + v])
                fetch_add(outside, to, outside[v] - links[i])


@cached_njit(parallel=True)
def _count_merged(offsets, neighbour, weight, part, outside, wanted, chosen, heavy, left, threads, next_unit):
    """Subtract from each part the edges of merged vertices to its other vertices, and forget what was wanted."""
    for _ in prange(threads):
        first, last = _unit(next_unit, heavy, chosen.size)
        while first < last:
            for i in range(first, last):
                v = chosen[i]
                if wanted[v] != v:
                    wanted[v] = v
                    if not left[i]:
                        fetch_add(outside, part[v], -_weight_within(v, offsets, neighbour, weight, part))
            first, last = _unit(next_unit, heavy, chosen.size)


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


@cached_njit(parallel=True)
def _join(
    offsets,
    neighbour,
    weight,
    part,
    vertices,
    starts,
    order,
    heavy,
    keys,
    sums,
    places,
    next_unit,
    rows,
    to,
    joined,
    fill,
):
    """Count the neighbours of each part in `rows`, or with `fill` write them to `to` and their weights to `joined`.

    Threads take parts in their `order`, of which the first are `heavy`.
    """
    for t in prange(keys.shape[0]):
        own_keys, own_sums, own_places = keys[t], sums[t], places[t]
        first, last = _unit(next_unit, heavy, order.size)
        while first < last:
            for at in range(first, last):
                p = order[at]
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
            first, last = _unit(next_unit, heavy, order.size)


@cached_njit(parallel=True)
def _add(group, values, sums):
    """Add the value of each vertex to that of its group."""
    for v in prange(group.size):
        fetch_add(sums, group[v], values[v])


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
def _entry_hash(v, neighbour, weight):
    return mixed(mixed((np.uint64(v) << np.uint64(32)) + np.uint64(neighbour)) + np.uint64(weight))


@cached_njit
def _row_hashes(v, offsets, neighbour, weight, size):
    """Two sums of hashes of a vertex's entries and sizes."""
    first, second = np.uint64(0), np.uint64(0)
    for at in range(offsets[v], offsets[v + 1]):
        word = _entry_hash(v, neighbour[at], weight[at])
        first += word
        second += mixed(word ^ np.uint64(_SECOND))
    vertices = offsets.size - 1
    for of in range(v, size.size, vertices):
        word = _entry_hash(of, vertices, size[of])
        first += word
        second += mixed(word ^ np.uint64(_SECOND))
    return first, second


@cached_njit(parallel=True)
def _hash(offsets, neighbour, weight, size, threads, next_unit, found):
    for t in prange(threads):
        first, last = _unit(next_unit, 0, offsets.size - 1)
        while first < last:
            for v in range(first, last):
                own, second = _row_hashes(v, offsets, neighbour, weight, size)
                found[t, 0] += own
                found[t, 1] += second
            first, last = _unit(next_unit, 0, offsets.size - 1)


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


def _threads_for(work: int) -> AbstractContextManager[int]:
    """A parallel loop over little work has fewer threads, since they take longer to start and end than the work."""
    now = threads_now()
    few = max(1, min(now, work // FEWEST))
    return nullcontext(now) if few == now else kernel_threads(few)


def _counter() -> LongArray:
    return np.zeros(1, np.int64)


class Level:
    """See `kernels.leiden.Level`."""

    def __init__(self, graph: Weighted) -> None:
        self.graph = graph
        self._rows = graph.offsets, graph.neighbour, graph.weight
        self._lengths = np.diff(graph.offsets)
        self._work = len(graph) + len(graph.neighbour)

    @cached_property
    def _tables(self) -> _Tables:
        return _Tables.of(int(self._lengths.max(initial=0)))

    def digest(self) -> tuple[int, int]:
        """See `kernels.leiden.Level`."""
        with _threads_for(self._work):
            threads = get_num_threads()
            found = np.zeros((threads, 2), np.uint64)
            _hash(*self._rows, self.graph.size, threads, _counter(), found)
        first, second = found.sum(axis=0, dtype=np.uint64)
        return int(first), int(second)

    def by_class(self, vertices: IntArray, number: int) -> list[IntArray]:
        """See `kernels.leiden.Level`."""
        with _threads_for(len(vertices)):
            of_class = np.empty(len(vertices), np.int16)
            _classes(vertices, number, of_class)
            return [vertices[own] for own in positions_by_group(of_class, LEIDEN_CLASSES) if len(own)]

    def _heavy_first(self, chosen: IntArray) -> tuple[IntArray, int, int]:
        """The same vertices, those with many neighbours first; the number of these; the neighbours of all."""
        lengths = self._lengths[chosen]
        is_heavy = lengths > HEAVY
        heavy = int(np.count_nonzero(is_heavy))
        if heavy:
            chosen = np.concatenate([chosen[is_heavy], chosen[~is_heavy]])
        return chosen, heavy, len(chosen) + int(lengths.sum())

    def move(
        self,
        group: IntArray,
        total: LongArray,
        count: LongArray,
        chosen: IntArray,
        resolution: float,
        active: NDArray[np.bool_],
    ) -> int:
        """See `kernels.leiden.Level`."""
        graph = self.graph
        chosen, heavy, work = self._heavy_first(chosen)
        before, target = group[chosen], np.empty(len(chosen), np.int32)
        with _threads_for(work):
            rows = *self._rows, graph.size
            _choose(*rows, group, total, count, chosen, heavy, resolution, *self._tables, _counter(), target)
        moved = int(np.count_nonzero(before != target))
        with _threads_for(len(chosen)):
            _move(graph.size, group, total, count, chosen, before, target, active)
        if moved:
            with _threads_for(work):
                threads = get_num_threads()
                _activate(*self._rows[:2], group, chosen, heavy, before, target, threads, _counter(), active)
        return moved

    def merge(self, group: IntArray, total: LongArray, parts: Parts, chosen: IntArray, resolution: float) -> IntArray:
        """See `kernels.leiden.Level`."""
        graph = self.graph
        chosen, heavy, work = self._heavy_first(chosen)
        links, left = np.empty(len(chosen), np.int64), np.zeros(len(chosen), np.bool_)
        now = parts.part, parts.is_joined, parts.size, parts.outside
        with _threads_for(work):
            how = chosen, heavy, resolution, *self._tables, _counter()
            _choose_part(*self._rows, graph.size, group, total, *now, *how, parts.wanted, links)
        with _threads_for(len(chosen)):
            _merge(graph.size, *now, parts.wanted, chosen, links, left)
        with _threads_for(work):
            how_many = left, get_num_threads(), _counter()
            _count_merged(*self._rows, parts.part, parts.outside, parts.wanted, chosen, heavy, *how_many)
        return chosen[left]

    def sizes(self, group: IntArray, groups: int) -> LongArray:
        """See `kernels.leiden.Level`."""
        sizes = self.graph.size.reshape(1 + self.graph.directed, -1)
        sums = np.zeros((len(sizes), groups), np.int64)
        with _threads_for(len(group)):
            for own, found in zip(sizes, sums, strict=True):
                _add(group, own, found)
        return sums.reshape(-1)

    def within(self, group: IntArray) -> LongArray:
        """See `kernels.leiden.Level`."""
        inside = np.empty(len(group), np.int64)
        with _threads_for(self._work):
            _weigh(*self._rows, group, get_num_threads(), _counter(), inside)
        return inside

    def numbered(self, part: IntArray) -> tuple[IntArray, int]:
        """See `kernels.leiden.Level`."""
        first, before = np.full(2 * len(part), len(part), np.int32), np.empty(len(part), np.int32)
        found = np.empty_like(part)
        with _threads_for(len(part)):
            _first_of(part, first)
            _mark(part, first, before)
            np.cumsum(before, out=before)
            _number(part, first, before, found)
        return found, int(before[-1])

    def joined(self, part: IntArray, parts: int) -> Weighted:
        """See `kernels.leiden.Level`."""
        starts = np.zeros(parts + 1, np.int64)
        with _threads_for(self._work):
            np.cumsum(np.bincount(part, minlength=parts), out=starts[1:])
            vertices = by_key(part, np.arange(len(part), dtype=np.int32), parts)
            entries = np.add.reduceat(self._lengths[vertices], starts[:-1])
            is_heavy = entries > HEAVY
            order = np.concatenate([np.flatnonzero(is_heavy), np.flatnonzero(~is_heavy)])
            heavy = int(np.count_nonzero(is_heavy))
            tables = _Tables.of(min(parts, int(entries.max())))
            rows = np.zeros(parts + 1, np.int64)
            same = *self._rows, part, vertices, starts, order, heavy, *tables
            _join(*same, _counter(), rows, np.zeros(0, np.int32), np.zeros(0, np.int64), False)
            np.cumsum(rows, out=rows)
            neighbour, weight = np.empty(rows[-1], np.int32), np.empty(rows[-1], np.int64)
            _join(*same, _counter(), rows, neighbour, weight, True)
        return Weighted(rows, neighbour, weight, self.sizes(part, parts))

    def connected(self, group: IntArray) -> IntArray:
        """See `kernels.leiden.Level`."""
        found: IntArray = _connected(*self._rows[:2], group)
        return found

    def cut(self, group: IntArray) -> int:
        """See `kernels.leiden.Level`."""
        return int(self.graph.weight.sum()) - int(self.within(group).sum())
