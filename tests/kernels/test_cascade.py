"""What falls in a cascade, in one band or in many, against the greatest set that stands by definition."""

from __future__ import annotations

from itertools import combinations
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import strategies
from backends import BACKENDS, Backend, topology
from edgemill import kernels
from edgemill.kernels.graph import GONE, UNCOUNTED
from edgemill.kernels.threads import kernel_threads
from examples import examples

VERTICES = 12
HIGHEST = 6
T = TypeVar("T")
Edge = tuple[int, int]
Triangles = list[list[tuple[int, int]]]

pytestmark = [
    pytest.mark.parametrize("backend", BACKENDS),
    pytest.mark.parametrize("threads", [1, 2]),
]
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


def left(e: int, triangles: Triangles, band: list[int], stands: list[bool]) -> int:
    """Triangles that count for an edge: their others lie in a higher band, or stand in its own."""
    return sum(
        all(band[other] > band[e] or (band[other] == band[e] and stands[other]) for other in pair)
        for pair in triangles[e]
    )


def settle(
    triangles: Triangles, band: list[int], threshold: list[int], stands: list[bool], owned: list[bool]
) -> list[bool]:
    """SLOW. Let owned edges with too few triangles fall, one at a time, until none is left to fall."""
    stands = list(stands)
    while True:
        weak = [
            e
            for e in range(len(band))
            if stands[e] and owned[e] and left(e, triangles, band, stands) < threshold[band[e]]
        ]
        if not weak:
            return stands
        stands[weak[0]] = False


@rooms
@given(graph=strategies.simple_graphs(VERTICES), drawn=st.data())
@settings(max_examples=examples(100))
def test_filters_of_many_bands(
    backend: Backend, threads: int, room: int | None, graph: strategies.EdgeList, drawn: st.DataObject
) -> None:
    """Owned edges fall by their counts, ghosts when told, in two cascades of one filter."""
    edges = sorted(graph)
    triangles = triangles_of(edges)
    band = drawn.draw(exactly(len(edges), st.integers(0, HIGHEST)))
    threshold = drawn.draw(exactly(HIGHEST + 1, st.integers(0, 8)))
    owned = drawn.draw(exactly(len(edges), st.booleans()))
    told = [[e for e in drawn.draw(st.sets(st.integers(0, max(len(edges) - 1, 0)))) if e < len(edges)] for _ in "ab"]
    ghosts_told = [[e for e in sorted(heard) if not owned[e]] for heard in told]
    stands = [True] * len(edges)
    before = [left(e, triangles, band, stands) for e in range(len(edges))]
    start = [before[e] if owned[e] else UNCOUNTED for e in range(len(edges))]
    count = backend.put(start)
    with pytest.MonkeyPatch.context() as patch, kernel_threads(threads):
        if room is not None:
            patch.setattr("edgemill.kernels.cpu.cascade.ROOM", room)
        whole = topology(backend, edges, VERTICES)
        rows = kernels.adjacency(whole)
        cascade = kernels.cascade(whole, rows)
        for turn in (0, 1):
            frontier = [e for e in ghosts_told[turn] if stands[e]]
            weak = [e for e in range(len(edges)) if owned[e] and stands[e] and start[e] < threshold[band[e]]]
            frontier += weak if turn == 0 else []
            was = stands
            stands = settle(triangles, band, threshold, [s and e not in frontier for e, s in enumerate(stands)], owned)
            fallen, _ = cascade.run(rows, count, backend.put(frontier), backend.put(threshold), backend.put(band))
            fell = [e for e in range(len(edges)) if was[e] and not stands[e]]
            assert sorted(backend.get(fallen).tolist()) == fell
            now = [left(e, triangles, band, stands) for e in range(len(edges))]
            expected = [start[e] - before[e] + now[e] if stands[e] else GONE for e in range(len(edges))]
            assert backend.get(count).tolist() == expected


@rooms
@given(graph=strategies.simple_graphs(VERTICES))
@settings(max_examples=examples(100))
def test_peeling_level_by_level(backend: Backend, threads: int, room: int | None, graph: strategies.EdgeList) -> None:
    """After each advance all edges below the level have fallen, at theirs, and the others know what they have left."""
    edges = sorted(graph)
    triangles, band, owned = triangles_of(edges), [0] * len(edges), [True] * len(edges)
    stands, low = [True] * len(edges), [0] * len(edges)
    level = 0
    with pytest.MonkeyPatch.context() as patch, kernel_threads(threads):
        if room is not None:
            patch.setattr("edgemill.kernels.cpu.cascade.ROOM", room)
        peeling = kernels.peeling(topology(backend, edges, VERTICES), backend.put([len(found) for found in triangles]))
        levels = 0
        while peeling.left:
            peeling.advance()
            while level < peeling.level:
                was, stands = stands, settle(triangles, band, [level + 1], stands, owned)
                fell = [e for e in range(len(edges)) if was[e] and not stands[e]]
                levels += bool(fell)
                for e in fell:
                    low[e] = level
                level += 1
            assert (peeling.left, peeling.levels) == (sum(stands), levels)
            assert backend.get(peeling.low).tolist() == low
            count = backend.get(peeling.count).tolist()
            expected = [left(e, triangles, band, stands) if stands[e] else -1 for e in range(len(edges))]
            assert [max(c, -1) for c in count] == expected
    assert not any(stands)


@rooms
def test_a_clique_that_falls_at_once(backend: Backend, threads: int, room: int | None) -> None:
    """Every edge loses many triangles in one round; with little room the round takes many passes."""
    size = 60
    edges = list(combinations(range(size), 2))
    count = backend.put([size - 2] * len(edges))
    with pytest.MonkeyPatch.context() as patch, kernel_threads(threads):
        if room is not None:
            patch.setattr("edgemill.kernels.cpu.cascade.ROOM", room)
        whole = topology(backend, edges, size)
        rows = kernels.adjacency(whole)
        cascade = kernels.cascade(whole, rows)
        first = [e for e, (u, v) in enumerate(edges) if (u + v) % 3 == 0]
        band = backend.put([0] * len(edges))
        fallen, _ = cascade.run(rows, count, backend.put(first), backend.put([3]), band)
    triangles = triangles_of(edges)
    stands = settle_all(triangles, 3, {*first})
    assert sorted(backend.get(fallen).tolist()) == [e for e in range(len(edges)) if e not in stands]
    expected = [
        sum(f in stands and g in stands for f, g in triangles[e]) if e in stands else GONE for e in range(len(edges))
    ]
    assert backend.get(count).tolist() == expected


def settle_all(triangles: Triangles, threshold: int, fallen: set[int]) -> set[int]:
    """SLOW. What stands of one band, all weak edges falling together."""
    stands = set(range(len(triangles))) - fallen
    while weak := {e for e in stands if sum(f in stands and g in stands for f, g in triangles[e]) < threshold}:
        stands -= weak
    return stands


@given(drawn=st.data(), edges=st.integers(0, 30))
def test_reband(backend: Backend, threads: int, drawn: st.DataObject, edges: int) -> None:
    band = drawn.draw(exactly(edges, st.integers(0, HIGHEST)))
    start = drawn.draw(exactly(edges, st.integers(0, 9)))
    count = [drawn.draw(st.sampled_from([GONE, *range(s + 1)])) for s in start]
    touched = drawn.draw(exactly(HIGHEST + 1, st.booleans()))
    commit = [drawn.draw(st.sampled_from([0, *range(lo + 1, HIGHEST + 1)])) for lo in range(HIGHEST + 1)]
    threshold = drawn.draw(exactly(HIGHEST + 1, st.integers(0, 9)))
    expected = []
    for b, c, s in zip(band, count, start, strict=True):
        if touched[b] and commit[b]:
            expected.append((b, s, s) if c == GONE else (commit[b], c, c))
        else:
            expected.append((b, c, s))
    falling = [e for e, (b, c, _) in enumerate(expected) if touched[band[e]] and c < threshold[b]]
    with kernel_threads(threads):
        found = kernels.reband(
            backend.put(band),
            backend.put(count),
            backend.put(start),
            backend.put(commit),
            backend.put(touched, bool),
            backend.put(threshold),
        )
    *columns, first = (backend.get(array).tolist() for array in found)
    assert list(zip(*columns, strict=True)) == expected
    assert first == falling
