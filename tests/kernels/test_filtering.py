"""The passes of coarse filters, against a slow removal of edges from a set."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import strategies
from backends import BACKENDS, Backend, OnCpu, OnGpu, topology
from edgemill import kernels
from edgemill.kernels.filters import EDGE_WORK, Filtering, Frontier, Removed
from edgemill.kernels.runtime.threads import kernel_threads
from examples import examples
from mixing import mixed

VERTICES = 12
ENOUGH = 10**9
"""More work than all passes have."""
DENSE = "edgemill.kernels.cpu.peeling.filtering.DENSE"
LISTS, BITS = 0, 10**9
"""Values of DENSE with which CPUs send lists alone, or bits alone."""
Edge = tuple[int, int]

on_each = pytest.mark.parametrize("backend", BACKENDS)
by_threads = pytest.mark.parametrize(
    ("backend", "threads"),
    [
        *(pytest.param(OnCpu(), threads, id=f"cpu-{threads}") for threads in (1, 2)),
        pytest.param(OnGpu(), 1, id="gpu", marks=pytest.mark.gpu),
    ],
)
packed_as = pytest.mark.parametrize(
    ("backend", "dense"),
    [
        pytest.param(OnCpu(), LISTS, id="cpu-lists"),
        pytest.param(OnCpu(), BITS, id="cpu-bits"),
        pytest.param(OnGpu(), BITS, id="gpu", marks=pytest.mark.gpu),
    ],
)


class Slow:
    """SLOW. The edges that are left, as a set."""

    def __init__(self, edges: list[Edge]) -> None:
        number = {edge: e for e, edge in enumerate(edges)}
        vertices = sorted({end for edge in edges for end in edge})
        found = ([*combinations(three, 2)] for three in combinations(vertices, 3))
        self.triangles = [[number[side] for side in sides] for sides in found if number.keys() >= {*sides}]
        self.left = set(range(len(edges)))

    def counts(self) -> dict[int, int]:
        """The triangles of each edge that is left."""
        sides = [e for triangle in self.triangles if self.left >= {*triangle} for e in triangle]
        found = dict.fromkeys(sorted(self.left), 0)
        for e in sides:
            found[e] += 1
        return found

    def frontier(self, limit: int) -> Frontier:
        """What the next pass removes."""
        below = [c for c in self.counts().values() if c < limit]
        return Frontier(len(below), sum(below))

    def remove(self, limit: int) -> Removed:
        """One pass."""
        before = self.counts()
        self.left -= {e for e, c in before.items() if c < limit}
        triangles = (sum(before.values()) - sum(self.counts().values())) // 3
        gone = len(before) - len(self.left)
        # A triangle that goes with an edge lowers the counts of its other edges too: those that are left, by one each.
        lowered = sum(before[e] - c for e, c in self.counts().items())
        of_gone = sum(c for e, c in before.items() if e not in self.left)
        assert 3 * triangles == lowered + of_gone
        return Removed(gone, triangles, 1)


def digest(counts: Iterable[tuple[int, int]]) -> int:
    """By the definition that both backends share."""
    return int(mixed(np.array([e << 32 | c for e, c in counts], np.uint64)).sum(dtype=np.uint64))


def check(backend: Backend, part: Filtering, slow: Slow, numbers: list[int], limit: int) -> None:
    """The counts of the edges that are left, what a survey tells of them, and a negative count of each other edge."""
    counts = slow.counts()
    own = backend.get(part.count).tolist()
    assert [counts.get(e, -1) for e in numbers] == [max(c, -1) for c in own]
    assert part.left == len(counts) and part.topology.edges == len(numbers)
    survey = part.survey(limit)
    assert survey.counts == sum(counts.values())
    assert survey.least == min(counts.values(), default=2**31 - 1)
    assert survey.digest == digest((i, counts[e]) for i, e in enumerate(numbers) if e in counts)
    for t in (0, 1, limit + 1, limit + 3):
        assert survey.listed[t] == sum(c + EDGE_WORK for c in counts.values() if c < t)


def same(values: list[Any]) -> Any:
    """What all workers have found."""
    assert all(value == values[0] for value in values)
    return values[0]


def add(parts: list[Filtering], edges: int) -> None:
    """Apply the sums of all workers to the counts of each."""
    packets = [part.pack(0, edges) for part in parts]
    assert [parts[0].collect(words, 0) for words, _ in packets] == [total for _, total in packets]
    words, total = parts[0].pack(0, edges)
    assert total == sum(total for _, total in packets) % 2**64
    assert all(part.apply(words, 0) == total for part in parts)
    assert all(part.pack(0, edges)[1] == 0 for part in parts)


@by_threads
@given(graph=strategies.simple_graphs(VERTICES), workers=st.integers(1, 4), drawn=st.data())
@settings(max_examples=examples(120))
def test_passes(backend: Backend, threads: int, graph: list[Edge], workers: int, drawn: st.DataObject) -> None:
    """Thresholds that ascend, passes of each kind in turn, back to an earlier threshold, with edges numbered anew."""
    with pytest.MonkeyPatch.context() as patch, kernel_threads(threads):
        patch.setattr(DENSE, drawn.draw(st.sampled_from([LISTS, BITS])))
        check_passes(backend, sorted(graph), workers, lambda *values: drawn.draw(st.sampled_from(values)))


def check_passes(backend: Backend, edges: list[Edge], workers: int, choose: Callable[..., Any]) -> None:
    slow, numbers, threshold = Slow(edges), list(range(len(edges))), 0
    whole, start = topology(backend, edges, VERTICES), list(slow.counts().values())
    parts = [kernels.filtering(whole, backend.put(start)) for _ in range(workers)]
    for _ in range(5):
        for part in parts:
            check(backend, part, slow, numbers, threshold)
        kept, left = [part.count.copy() for part in parts], {*slow.left}
        limit = threshold + choose(1, 2, 3, 9)
        if not jump(parts, slow, limit, choose) or choose(False, False, True):
            for part, count in zip(parts, kept, strict=True):
                part.restore(count, len(left))
            slow.left = left
            continue
        threshold = limit
        if same([part.wasteful for part in parts]):
            found = [part.smaller() for part in parts]
            numbers = [numbers[i] for i in same([backend.get(remain).tolist() for remain, _ in found])]
            assert numbers == sorted(slow.left)
            parts = [part for _, part in found]
    for part in parts:
        check(backend, part, slow, numbers, threshold)


def jump(parts: list[Filtering], slow: Slow, limit: int, choose: Callable[..., Any]) -> bool:
    """Remove all edges below a limit; False if a worker was lost meanwhile."""
    edges, workers = parts[0].topology.edges, len(parts)
    frontier: Frontier = same([part.find(limit) for part in parts])
    while frontier.edges:
        assert frontier == slow.frontier(limit)
        assert frontier.work == frontier.triangles + EDGE_WORK * frontier.edges
        kind = choose("alone", "alone", "divided", "divided", "divided", "lost", "lost with packets")
        if kind == "alone":
            enough = choose(0, 200, ENOUGH)
            removed, frontier = same([part.remove_alone(enough) for part in parts])
            passes = [slow.remove(limit)]
            while len(passes) < removed.passes:
                assert slow.frontier(limit).work <= enough
                passes.append(slow.remove(limit))
            assert removed == (*(sum(own[i] for own in passes) for i in (0, 1)), len(passes))
            continue
        shares = [part.remove_share(worker, workers) for worker, part in enumerate(parts)]
        if kind == "divided":
            add(parts, edges)
            assert Removed(frontier.edges, sum(shares), 1) == slow.remove(limit)
            frontier = same([part.end_pass() for part in parts])
            continue
        if kind == "lost with packets":
            for part in parts:
                parts[0].collect(part.pack(0, edges)[0], 0)
        return False
    assert slow.frontier(limit) == frontier == (0, 0)
    return True


@packed_as
@pytest.mark.parametrize("collected", [False, True])
def test_a_pass_that_is_given_up(
    monkeypatch: pytest.MonkeyPatch, backend: Backend, dense: int, collected: bool
) -> None:
    """Nothing of it is left in the next one, whatever a worker had of it when another one was lost."""
    monkeypatch.setattr(DENSE, dense)
    size = 25  # a GPU deals out runs of 64 edges
    edges = [edge for i, edge in enumerate(combinations(range(size), 2)) if i % 5]
    slow, whole = Slow(edges), topology(backend, edges, size)
    start = list(slow.counts().values())
    limit = sorted(start)[len(start) // 3] + 1
    parts = [kernels.filtering(whole, backend.put(start)) for _ in range(3)]
    for _ in range(2):
        for worker, part in enumerate(parts):
            part.find(limit)
            assert part.remove_share(worker, 3)
        if collected:
            words, total = parts[2].pack(0, len(edges))
            assert total and parts[0].collect(words, 0) == total
        for part in parts:
            part.restore(backend.put(start), len(start))
            check(backend, part, slow, list(range(len(edges))), 0)
    assert 0 < slow.frontier(limit).edges < len(edges)
    assert jump(parts, slow, limit, lambda *kinds: "divided")
    for part in parts:
        check(backend, part, slow, list(range(len(edges))), limit)


PAGES = 5000


@on_each
@pytest.mark.parametrize("alone", [True, False])
def test_an_edge_of_many_triangles(backend: Backend, alone: bool) -> None:
    """The two hubs of a book, whose rows all threads of a GPU share. With its pages it goes in one pass, or after them.

    Only the first and last edges are looked at: (0, 1), then those of hub 0, then those of hub 1.
    """
    edges = [(hub, page) for hub in (0, 1) for page in range(1 + hub, 2 + PAGES)]
    for limit in (2, PAGES + 1):
        parts = [
            kernels.filtering(topology(backend, edges, PAGES + 2), backend.put([PAGES] + [1] * (2 * PAGES)))
            for _ in range(1 if alone else 3)
        ]
        assert [part.survey(0)[1:3] for part in parts] == [(1, 3 * PAGES)] * len(parts)
        everything = limit > PAGES
        first = Frontier(2 * PAGES + everything, (2 + everything) * PAGES if everything else 2 * PAGES)
        assert same([part.find(limit) for part in parts]) == first
        if alone:
            removed, following = parts[0].remove_alone(0)
            assert removed == (first.edges, PAGES, 1)
        else:
            assert sum(part.remove_share(w, len(parts)) for w, part in enumerate(parts)) == PAGES
            add(parts, len(edges))
            following = same([part.end_pass() for part in parts])
        assert following == ((0, 0) if everything else (1, 0))
        for part in parts:
            count = backend.get(part.count)
            assert part.left == (not everything) and (count[1:] < 0).all() and (count[0] < 0) == everything
            assert everything or (part.remove_alone(0) == (Removed(1, 0, 1), Frontier(0, 0)) and part.left == 0)


@on_each
def test_no_edges(backend: Backend) -> None:
    part = kernels.filtering(topology(backend, [], 1), backend.put([]))
    assert part.survey(0)[1:] == (2**31 - 1, 0, 0) and not part.survey(0).listed.any()
    assert part.find(5) == Frontier(0, 0) and part.left == 0 and not part.wasteful
    words, total = part.pack(0, 0)
    assert total == part.collect(words, 0) == part.apply(words, 0) == 0


@on_each
def test_counts_beyond_the_bins(backend: Backend) -> None:
    """A survey tells more counts apart if the least one is large."""
    counts = [40_000, 70_000, 3_000_000]
    part = kernels.filtering(topology(backend, [(0, 1), (0, 2), (1, 2)], 3), backend.put(counts))
    survey = part.survey(0)
    assert (survey.least, survey.counts) == (40_000, sum(counts))
    assert survey.listed[40_000] == 0 and survey.listed[40_001] == 40_000 + EDGE_WORK
    assert survey.listed[70_001] == 110_000 + 2 * EDGE_WORK == survey.listed[-1]
