"""Values of programs after a change, from those before: equal to those of a run over the new graph."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from edgemill.kernels.graph import Topology
from edgemill.tasks.programs import Entries
from edgemill.tasks.programs.local_runs import run_in_one_block
from edgemill.tasks.programs.shipped.bfs import BreadthFirst
from edgemill.tasks.programs.shipped.components import Components
from edgemill.tasks.programs.shipped.pagerank import PageRank
from edgemill.tasks.update.earlier_values import components_after, ranks_to_start, search_after
from edgemill.tasks.update.merging import Change, NumberedGraph, compare
from examples import examples

VERTICES = 12
PAIRS = list(combinations(range(VERTICES), 2))
SOURCE = 3
Edge = tuple[int, int]


def graph(edges: set[Edge]) -> NumberedGraph:
    """With all ends, and the source, as vertices. Ids are not their positions."""
    ids = np.unique([SOURCE, *(end for edge in edges for end in edge)])
    ends = np.searchsorted(ids, np.array(sorted(edges), np.int64).reshape(-1, 2)).astype(np.int32)
    return NumberedGraph(10 * ids, Topology(ends[:, 0].copy(), ends[:, 1].copy(), len(ids)))


def run(program: Any, whole: NumberedGraph) -> dict[str, NDArray[Any]]:
    entries = Entries(np.asarray(whole.edges.low), np.asarray(whole.edges.high))
    return run_in_one_block(program, entries, len(whole.ids), False).state


@st.composite
def changes(draw: st.DrawFn) -> tuple[set[Edge], set[Edge]]:
    before = draw(st.sets(st.sampled_from(PAIRS), max_size=20))
    lost = draw(st.sets(st.sampled_from(sorted(before)), max_size=3)) if before else set()
    return before, (before - lost) | draw(st.sets(st.sampled_from(PAIRS), max_size=4))


def made(before: set[Edge], after: set[Edge]) -> tuple[NumberedGraph, NumberedGraph, Change]:
    one, other = graph(before), graph(after)
    return one, other, compare(one, other)


@given(drawn=changes(), grows=st.booleans())
@settings(max_examples=examples(200))
def test_components(drawn: tuple[set[Edge], set[Edge]], grows: bool) -> None:
    before, after = drawn
    one, other, change = made(before, before | after if grows else after)
    found = components_after(change, run(Components(), one)["component"])
    if grows:
        assert found is not None
    if found is not None:
        assert np.array_equal(found, run(Components(), other)["component"])


@given(drawn=changes())
@settings(max_examples=examples(400))
def test_search(drawn: tuple[set[Edge], set[Edge]]) -> None:
    one, other, change = made(*drawn)

    def searched(whole: NumberedGraph) -> dict[str, NDArray[Any]]:
        return run(BreadthFirst(source=int(np.searchsorted(whole.ids, 10 * SOURCE))), whole)

    then, now = searched(one), searched(other)
    found = search_after(change, then["level"], then["parent"])
    if found is not None:
        assert np.array_equal(found[0], now["level"]) and np.array_equal(found[1], now["parent"])
    elif np.array_equal(one.ids, other.ids):  # a search runs again for a reason
        assert not all(np.array_equal(then[name], now[name]) for name in then)


def test_searches_that_stay() -> None:
    """A path 3-4-5 with an edge far away: new edges between levels give parents, and others change nothing."""
    path = {(3, 4), (4, 5), (8, 9)}
    cases = {
        frozenset({(8, 10)}): True,  # far from the source
        frozenset({(3, 6), (4, 6)}): False,  # a vertex is reached
        frozenset({(3, 5)}): False,  # a level falls
    }
    then = run(BreadthFirst(source=0), graph(path))
    for added, stays in cases.items():
        found = search_after(made(path, path | added)[2], then["level"], then["parent"])
        assert (found is not None) == stays
    square = {(3, 4), (3, 5), (5, 6)}
    then = run(BreadthFirst(source=0), graph(square))
    found = search_after(made(square, square | {(4, 6), (4, 5)})[2], then["level"], then["parent"])
    assert found is not None and found[1].tolist() == [0, 0, 0, 1]
    assert search_after(made(square, square - {(3, 4)})[2], then["level"], then["parent"]) is None


@given(drawn=changes())
@settings(max_examples=examples(50))
def test_ranks(drawn: tuple[set[Edge], set[Edge]]) -> None:
    one, other, change = made(*drawn)
    begin = ranks_to_start(change, run(PageRank(), one)["rank"])
    assert len(begin) == len(other.ids) and abs(begin.sum() - 1) < 1e-12 and (begin > 0).all()
    if change.is_empty:
        assert np.allclose(begin, run(PageRank(), other)["rank"], atol=1e-12)
