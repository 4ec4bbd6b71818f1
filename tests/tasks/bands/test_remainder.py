"""Shards that stop when few edges are left, whose λ is found elsewhere and goes back to the groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import strategies
from carrying import in_threads
from edgemill.kernels.runtime.threads import kernel_threads
from edgemill.tasks import checkpoint_values
from edgemill.tasks.bands.copies import graph_copy
from edgemill.tasks.bands.filtering import CoarseFilter
from edgemill.tasks.bands.peeling import BandState, band_intervals, peel_band
from edgemill.tasks.bands.remainder import (
    HandedOver,
    Remainder,
    handed_intervals,
    intervals_of_group,
    merge_remaining,
    remaining_edges,
)
from edgemill.tasks.bands.sums import WorkerSums
from edgemill.tasks.bound.intervals import Intervals
from edgemill.tasks.bound.peel import Peeled, peel, peel_intervals
from edgemill.tasks.errors import InternalError
from edgemill.tasks.graph import Subgraph
from edgemill.tasks.shards import MemoryCarrier, ShardState
from examples import examples
from oracles import brute_force_lambda, simple_edges
from sharding import Edge, Graph, drawn, intervals, levels, ordered, other_peel, peel_in_groups, shard_edges

Peel = Callable[[Subgraph], Intervals]


class Handed(NamedTuple):
    """Groups that have stopped, and what they left."""

    states: list[HandedOver]
    rest: Remainder


def alone(graph: Subgraph) -> Intervals:
    """By one worker."""
    with kernel_threads(1):
        return peel_intervals(graph, peel(graph))


def in_bands(graph: Subgraph) -> Intervals:
    """By three workers."""
    copy = graph_copy(graph)
    carriers = MemoryCarrier.open(3)

    def filtered(rank: int) -> BandState:
        with kernel_threads(1):
            search = CoarseFilter(copy.topology(), copy.support, WorkerSums(carriers[rank]))
            return BandState.of(search.run())

    state = in_threads(filtered, 3)[0]
    found = {band: peel_band(copy.topology(), state.bands, band) for band in state.unfinished}
    return band_intervals(graph, state.with_bands(found))


def handed(graph: Graph, shards: int, peeled: Sequence[ShardState]) -> Handed:
    """What follows on shards that have stopped."""
    states = [HandedOver.of(state) for state in peeled]
    groups = len(states)
    parts = [remaining_edges(shard_edges(graph, shards, g, groups), states[g]) for g in range(groups)]
    with kernel_threads(1):
        return Handed(states, merge_remaining(parts))


def back(found: Intervals, given: Handed) -> list[Intervals]:
    """[groups] the intervals of all edges of each."""
    parts = [intervals_of_group(found, given.rest.group, g) for g in range(len(given.states))]
    return [handed_intervals(state, part) for state, part in zip(given.states, parts, strict=True)]


def with_bounds(peeled: Sequence[ShardState], found: Sequence[Intervals]) -> list[ShardState]:
    """States of shards with other bounds of λ."""
    return [replace(state, low=own.low, high=own.high) for state, own in zip(peeled, found, strict=True)]


def by_both(graph: Graph, shards: int, groups: int, until: int, search: Peel) -> dict[Edge, int]:
    """λ by edge, from shards until so many edges are left, and then by the other search."""
    peeled = peel_in_groups(graph, shards, groups, until=until)
    left = peeled[0].left
    assert all(state.left == left <= until for state in peeled)
    if not left:
        return levels(graph, shards, peeled)
    given = handed(graph, shards, peeled)
    assert given.rest.graph.topology.edges == left == given.states[0].left
    assert [state.left for state in given.states[1:]] == [0] * (groups - 1)
    found = with_bounds(peeled, back(search(given.rest.graph), given))
    assert all(state.low is state.high for state in found)
    return levels(graph, shards, found)


SHAPES: dict[str, list[Edge]] = {
    "triangle": [(0, 1), (0, 2), (1, 2)],
    "no triangles": [(u, v) for u in range(5) for v in range(5, 9)],
    "wheel": [(0, rim) for rim in range(1, 30)] + [(rim, rim % 29 + 1) for rim in range(1, 30)],
    "hub and its book": [(0, 1)] + [(end, page) for page in range(2, 60) for end in (0, 1)],
    "clique": list(combinations(range(14), 2)),
    "cliques of all sizes": [(100 * k + u, 100 * k + v) for k in range(2, 13) for u, v in combinations(range(k), 2)],
    "hubs": drawn(3, 60, 700),
}


@pytest.mark.parametrize("search", [alone, in_bands])
@pytest.mark.parametrize(("groups", "shards"), [(1, 1), (1, 3), (2, 2), (2, 5), (3, 7)])
@pytest.mark.parametrize("name", SHAPES)
def test_shapes(name: str, groups: int, shards: int, search: Peel) -> None:
    """For every share of the edges: none, all, and those in between; a group may own none of those that are left."""
    edges = sorted(simple_edges(SHAPES[name]))
    graph, expected = ordered(edges), brute_force_lambda(edges)
    for until in sorted({0, 1, len(edges) // 10, len(edges) // 3, len(edges) * 2 // 3, len(edges)}):
        assert by_both(graph, shards, groups, until, search) == expected


@given(
    rows=strategies.simple_graphs(14),
    groups=st.integers(1, 3),
    more=st.integers(0, 4),
    until=st.integers(0, 95),
    search=st.sampled_from([alone, in_bands]),
)
@settings(max_examples=examples(150))
def test_drawn_graphs(rows: list[Edge], groups: int, more: int, until: int, search: Peel) -> None:
    edges = sorted(simple_edges(rows))
    assert by_both(ordered(edges), groups + more, groups, until, search) == brute_force_lambda(edges)


@pytest.mark.parametrize("share", [0.1, 0.3, 0.6, 0.9])
def test_a_larger_graph(share: float) -> None:
    graph = ordered(drawn(5, 300, 9000))
    until = int(share * np.count_nonzero(graph.support))
    for search in (alone, in_bands):
        assert by_both(graph, 5, 2, until, search) == other_peel(graph)


def stopped() -> tuple[Graph, list[ShardState], Handed]:
    graph = ordered(SHAPES["hubs"])
    peeled = peel_in_groups(graph, 4, 2, until=300)
    return graph, peeled, handed(graph, 4, peeled)


def test_what_is_left_has_its_triangles() -> None:
    """The counts that shards end with are those among the edges that are left."""
    graph, peeled, given = stopped()
    topology = given.rest.graph.topology
    adjacent = np.zeros((topology.vertices, topology.vertices), np.int32)
    adjacent[topology.low, topology.high] = adjacent[topology.high, topology.low] = 1
    assert (topology.low < topology.high).all()
    assert adjacent.any(0).all()  # each vertex has an edge
    expected = (adjacent @ adjacent)[topology.low, topology.high]
    np.testing.assert_array_equal(given.rest.graph.support, expected)
    assert expected.min() >= given.states[0].first_level == peeled[0].level > 0
    assert 0 < peeled[0].left < np.count_nonzero(graph.support)


def test_intervals_before_the_rest_is_known() -> None:
    """λ is between the level at which shards stopped and the triangles, and nothing is known of it later."""
    graph, peeled, given = stopped()
    found = [handed_intervals(state, None) for state in given.states]
    for own, state in zip(found, peeled, strict=True):
        np.testing.assert_array_equal(own.low, state.low)
        np.testing.assert_array_equal(own.high, state.high)
    lam = other_peel(graph)
    bounds = intervals(graph, 4, with_bounds(peeled, found))
    assert all(low <= lam[edge] <= high for edge, (low, high) in bounds.items())


def test_intervals_of_a_filter_that_has_not_begun() -> None:
    """A lower bound of the rest may be less than what shards know."""
    graph, peeled, given = stopped()
    size = given.rest.graph.topology.edges
    unknown = Intervals(np.zeros(size, np.int32), given.rest.graph.support)
    bounds = intervals(graph, 4, with_bounds(peeled, back(unknown, given)))
    lam = other_peel(graph)
    assert all(low <= lam[edge] <= high for edge, (low, high) in bounds.items())
    assert min(low for low, high in bounds.values() if low < high) == given.states[0].first_level


def test_shards_that_have_not_begun() -> None:
    """Shards need not be built to leave all edges."""
    graph = ordered(SHAPES["hubs"])
    peeled = peel_in_groups(graph, 4, 2, until=10**6)
    assert peeled[0].levels == 0
    for state in peeled:
        expected = HandedOver.of(state)
        found = HandedOver.untouched(shard_edges(graph, 4, state.group, 2))
        assert (found.first_level, found.handed, found.left) == (0, expected.handed, expected.left)
        assert (found.evaluations, found.levels) == (0, 0)
        assert len(found.figures.entries) == len(expected.figures.entries) == 2
        np.testing.assert_array_equal(found.low, expected.low)
        np.testing.assert_array_equal(found.count, expected.count)


def test_what_states_tell() -> None:
    """The first group tells of all remaining edges."""
    graph, peeled, (states, rest) = stopped()
    with kernel_threads(1):
        part = peel(rest.graph, None, 0)
        whole = peel(rest.graph)
    first = replace(states[0], found=part)
    assert part.left
    assert (first.left, first.level, first.exchanges) == (part.left, part.level, states[0].exchanges)
    ended = replace(states[0], found=whole)
    assert (ended.left, ended.levels) == (0, states[0].figures.levels + whole.levels)
    assert ended.evaluations + states[1].evaluations == np.count_nonzero(graph.support)
    assert states[0].level == peeled[0].level


def test_stored_states(tmp_path: Path) -> None:
    _, _, (states, rest) = stopped()
    with kernel_threads(1):
        part = peel(rest.graph, None, 0)
    for number, state in enumerate((replace(states[0], found=part), states[1])):
        stored = checkpoint_values.store(state, str(tmp_path / str(number)), {})
        found = checkpoint_values.restore(stored, {})
        assert isinstance(found, HandedOver)
        np.testing.assert_array_equal(found.low, state.low)
        np.testing.assert_array_equal(found.count, state.count)
        assert (found.left, found.level, found.figures) == (state.left, state.level, state.figures)
        assert isinstance(found.found, Peeled) is (number == 0)


def changed(array: NDArray[np.int32], to: int) -> NDArray[np.int32]:
    other = array.copy()
    other[0] = to
    return other


def test_edges_that_get_lost() -> None:
    graph, _, given = stopped()
    edges = [shard_edges(graph, 4, g, 2) for g in range(2)]
    parts = [remaining_edges(own, state) for own, state in zip(edges, given.states, strict=True)]
    with pytest.raises(InternalError, match="edges remained"):
        merge_remaining(parts[:1])
    with pytest.raises(InternalError, match="group 1"):
        remaining_edges(edges[1], given.states[0])


def test_answers_that_are_none() -> None:
    _, _, given = stopped()
    found = alone(given.rest.graph)
    low = changed(found.low, given.states[0].first_level - 1)
    with pytest.raises(InternalError, match="at level"):
        back(Intervals(low, low), given)
    with pytest.raises(InternalError, match="at level"):
        handed_intervals(given.states[0], Intervals(found.low, found.low))
