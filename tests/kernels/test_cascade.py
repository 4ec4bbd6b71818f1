"""Cascades in one band or in many, against a slow search for the greatest set of edges that keep their support."""

from __future__ import annotations

from itertools import combinations
from typing import TypeVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import strategies
from backends import BACKENDS, Backend, OnCpu, topology
from edgemill import kernels
from edgemill.kernels.cpu.peeling.cascade import Cascade
from edgemill.kernels.graph import GONE, UNCOUNTED
from edgemill.kernels.runtime.threads import kernel_threads
from examples import examples

VERTICES = 12
HIGHEST = 6
T = TypeVar("T")
Edge = tuple[int, int]
Triangles = list[list[tuple[int, int]]]

pytestmark = pytest.mark.parametrize("threads", [1, 2])
rooms = pytest.mark.parametrize("room", [None, 1], ids=["one pass", "many passes"])


def exactly(size: int, values: st.SearchStrategy[T]) -> st.SearchStrategy[list[T]]:
    return st.lists(values, min_size=size, max_size=size)


def triangles_of(edges: list[Edge]) -> Triangles:
    """[edges] the other two edges of each triangle."""
    number = {edge: e for e, edge in enumerate(edges)}
    found: Triangles = [[] for _ in edges]
    for (u, v), e in number.items():
        for w in {end for edge in edges for end in edge}:
            f, g = (number.get((min(w, end), max(w, end)), -1) for end in (u, v))
            if f >= 0 and g >= 0:
                found[e].append((f, g))
    return found


def left(e: int, triangles: Triangles, band: list[int], remains: list[bool]) -> int:
    """Triangles that count for an edge: their other edges are in a higher band, or remain in its own band."""
    return sum(
        all(band[other] > band[e] or (band[other] == band[e] and remains[other]) for other in pair)
        for pair in triangles[e]
    )


def reduce(
    triangles: Triangles, band: list[int], threshold: list[int], remains: list[bool], owned: list[bool]
) -> list[bool]:
    """SLOW. Remove owned edges with too few triangles, one at a time, until no such edge remains."""
    remains = list(remains)
    while True:
        weak = [
            e
            for e in range(len(band))
            if remains[e] and owned[e] and left(e, triangles, band, remains) < threshold[band[e]]
        ]
        if not weak:
            return remains
        remains[weak[0]] = False


@rooms
@given(graph=strategies.simple_graphs(VERTICES), drawn=st.data())
@settings(max_examples=examples(100))
def test_many_bands(threads: int, room: int | None, graph: strategies.EdgeList, drawn: st.DataObject) -> None:
    """Two cascades one after the other. Some edges are removed by their counts, the others only when they are named."""
    edges = sorted(graph)
    triangles = triangles_of(edges)
    band = drawn.draw(exactly(len(edges), st.integers(0, HIGHEST)))
    threshold = drawn.draw(exactly(HIGHEST + 1, st.integers(0, 8)))
    owned = drawn.draw(exactly(len(edges), st.booleans()))
    named = [[e for e in drawn.draw(st.sets(st.integers(0, max(len(edges) - 1, 0)))) if e < len(edges)] for _ in "ab"]
    removed = [[e for e in sorted(own) if not owned[e]] for own in named]
    remains = [True] * len(edges)
    before = [left(e, triangles, band, remains) for e in range(len(edges))]
    start = [before[e] if owned[e] else UNCOUNTED for e in range(len(edges))]
    count = np.array(start, np.int32)
    with pytest.MonkeyPatch.context() as patch, kernel_threads(threads):
        if room is not None:
            patch.setattr("edgemill.kernels.cpu.peeling.cascade.ROOM", room)
        whole = topology(OnCpu(), edges, VERTICES)
        rows = kernels.adjacency(whole)
        cascade = Cascade(whole, rows)
        for turn in (0, 1):
            frontier = [e for e in removed[turn] if remains[e]]
            weak = [e for e in range(len(edges)) if owned[e] and remains[e] and start[e] < threshold[band[e]]]
            frontier += weak if turn == 0 else []
            was = remains
            remains = reduce(
                triangles, band, threshold, [s and e not in frontier for e, s in enumerate(remains)], owned
            )
            fell, _ = cascade.run(rows, count, *(np.array(part, np.int32) for part in (frontier, threshold, band)))
            lost = [e for e in range(len(edges)) if was[e] and not remains[e]]
            assert sorted(fell.tolist()) == lost
            now = [left(e, triangles, band, remains) for e in range(len(edges))]
            expected = [start[e] - before[e] + now[e] if remains[e] else GONE for e in range(len(edges))]
            assert count.tolist() == expected


@rooms
@pytest.mark.parametrize("backend", BACKENDS)
@given(graph=strategies.simple_graphs(VERTICES))
@settings(max_examples=examples(100))
def test_peeling_level_by_level(backend: Backend, threads: int, room: int | None, graph: strategies.EdgeList) -> None:
    """After each advance, all edges below the level are removed at their levels, and the other counts are right."""
    edges = sorted(graph)
    triangles, band, owned = triangles_of(edges), [0] * len(edges), [True] * len(edges)
    remains, low = [True] * len(edges), [0] * len(edges)
    level = 0
    with pytest.MonkeyPatch.context() as patch, kernel_threads(threads):
        if room is not None:
            patch.setattr("edgemill.kernels.cpu.peeling.cascade.ROOM", room)
        peeling = kernels.peeling(topology(backend, edges, VERTICES), backend.put([len(found) for found in triangles]))
        levels = 0
        while peeling.left:
            peeling.advance()
            while level < peeling.level:
                was, remains = remains, reduce(triangles, band, [level + 1], remains, owned)
                lost = [e for e in range(len(edges)) if was[e] and not remains[e]]
                levels += bool(lost)
                for e in lost:
                    low[e] = level
                level += 1
            assert (peeling.left, peeling.levels) == (sum(remains), levels)
            assert backend.get(peeling.low).tolist() == low
            count = backend.get(peeling.count).tolist()
            expected = [left(e, triangles, band, remains) if remains[e] else -1 for e in range(len(edges))]
            assert [max(c, -1) for c in count] == expected
    assert not any(remains)


@rooms
def test_a_clique_removed_at_once(threads: int, room: int | None) -> None:
    """Each edge loses many triangles in one round. With little capacity the round takes many passes."""
    size = 60
    edges = list(combinations(range(size), 2))
    count = np.full(len(edges), size - 2, np.int32)
    with pytest.MonkeyPatch.context() as patch, kernel_threads(threads):
        if room is not None:
            patch.setattr("edgemill.kernels.cpu.peeling.cascade.ROOM", room)
        whole = topology(OnCpu(), edges, size)
        rows = kernels.adjacency(whole)
        cascade = Cascade(whole, rows)
        first = [e for e, (u, v) in enumerate(edges) if (u + v) % 3 == 0]
        removed, _ = cascade.run(rows, count, np.array(first, np.int32), np.array([3], np.int32), None)
    triangles = triangles_of(edges)
    remains = reduce_all(triangles, 3, {*first})
    assert sorted(removed.tolist()) == [e for e in range(len(edges)) if e not in remains]
    expected = [
        sum(f in remains and g in remains for f, g in triangles[e]) if e in remains else GONE for e in range(len(edges))
    ]
    assert count.tolist() == expected


def reduce_all(triangles: Triangles, threshold: int, removed: set[int]) -> set[int]:
    """SLOW. The remaining edges of one band, where all weak edges are removed together."""
    remains = set(range(len(triangles))) - removed
    while weak := {e for e in remains if sum(f in remains and g in remains for f, g in triangles[e]) < threshold}:
        remains -= weak
    return remains
