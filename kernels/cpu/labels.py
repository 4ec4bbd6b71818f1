"""Which partition each vertex joins, by where its neighbours are."""

from __future__ import annotations

import numpy as np
from numba import njit

from ..graph import IntArray, LongArray

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@njit(cache=True, nogil=True)
def _restream(offsets, member, weight, load, label, loads, room, capacity, turn, moved):
    """One in two vertices, others in each turn, or two neighbours in different buckets would change places for ever."""
    attraction = np.zeros(loads.size, np.int64)
    for v in range(offsets.size - 1):
        if ((np.uint64(v + 1) * _GOLDEN) >> np.uint64(40)) & np.uint64(1) != turn:
            continue
        old = label[v]
        for i in range(offsets[v], offsets[v + 1]):
            attraction[label[member[i]]] += weight[i]
        best = old
        most = attraction[old] * (1.0 - (loads[old] - load[v]) / capacity)
        for i in range(offsets[v], offsets[v + 1]):
            q = label[member[i]]
            if q != old and attraction[q] > 0 and room[q] >= load[v]:
                pull = attraction[q] * (1.0 - loads[q] / capacity)
                if pull > most or (pull == most and best != old and q < best):
                    most = pull
                    best = q
        for i in range(offsets[v], offsets[v + 1]):
            attraction[label[member[i]]] = 0
        if best != old:
            label[v] = best
            loads[old] -= load[v]
            room[old] += load[v]
            loads[best] += load[v]
            room[best] -= load[v]
            moved[0] += 1


def restream(
    offsets: LongArray,
    member: IntArray,
    weight: IntArray,
    load: LongArray,
    label: np.ndarray,
    loads: LongArray,
    room: LongArray,
    capacity: int,
    turn: int,
) -> tuple[np.ndarray, int]:
    """Greedy moves of half the vertices; the labels of all own vertices after them, and how many moved."""
    label, loads, room, moved = label.copy(), loads.copy(), room.copy(), np.zeros(1, np.int64)
    _restream(offsets, member, weight, load, label, loads, room, float(capacity), np.uint64(turn % 2), moved)
    return label[: len(offsets) - 1], int(moved[0])


@njit(cache=True, nogil=True)
def _grow(offsets, member, load, label, room, queue, stop, levels):
    """Breadth first from the queue, each vertex taking its neighbours along; gives where the queue ends."""
    start = 0
    while start < stop and levels != 0:
        end = stop
        for place in range(start, end):
            v = queue[place]
            own = label[v]
            for i in range(offsets[v], offsets[v + 1]):
                u = member[i]
                if u < offsets.size - 1 and label[u] < 0 and room[own] >= load[u]:
                    label[u] = own
                    room[own] -= load[u]
                    queue[stop] = u
                    stop += 1
        start = end
        levels -= 1
    return stop


@njit(cache=True, nogil=True)
def _border(offsets, member, load, label, room, queue):
    """The own vertices that have a label and a neighbour here without; those next to a foreign one get its label."""
    stop = 0
    vertices = offsets.size - 1
    for v in range(vertices):
        if label[v] >= 0:
            for i in range(offsets[v], offsets[v + 1]):
                u = member[i]
                if u < vertices and label[u] < 0:
                    queue[stop] = v
                    stop += 1
                    break
    for v in range(vertices):
        if label[v] < 0:
            for i in range(offsets[v], offsets[v + 1]):
                u = member[i]
                if u >= vertices and label[u] >= 0 and room[label[u]] >= load[v]:
                    label[v] = label[u]
                    room[label[u]] -= load[v]
                    queue[stop] = v
                    stop += 1
                    break
    return stop


@njit(cache=True, nogil=True)
def _fill(offsets, member, load, label, room, queue):
    """A tree at a time to the partition with the most room, which keeps getting them while it has room."""
    part = np.argmax(room)
    for v in range(offsets.size - 1):
        if label[v] < 0:
            if room[part] < load[v]:
                part = np.argmax(room)
            label[v] = part
            room[part] -= load[v]
            queue[0] = v
            _grow(offsets, member, load, label, room, queue, 1, -1)


def grow(
    offsets: LongArray, member: IntArray, load: LongArray, label: np.ndarray, room: LongArray, levels: int
) -> np.ndarray:
    """So many levels of breadth-first growth of the labels; 0 gives labels to all that are left."""
    vertices = len(offsets) - 1
    label, room = label.copy(), room.copy()
    queue = np.empty(vertices + 1, np.int32)
    stop = _border(offsets, member, load, label, room, queue)
    _grow(offsets, member, load, label, room, queue, stop, levels or -1)
    if not levels:
        _fill(offsets, member, load, label, room, queue)
    return label[:vertices]
