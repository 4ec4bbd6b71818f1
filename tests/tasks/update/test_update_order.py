"""λ after batches of insertions and deletions: equal to λ from nothing, and the order valid, night by night."""

from __future__ import annotations

import sys
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import oracles
import strategies
from edgemill.kernels.cpu.update import replay
from edgemill.kernels.graph import Topology
from edgemill.kernels.runtime.threads import kernel_threads
from edgemill.tasks.update import updating
from edgemill.tasks.update.order import Order, find_violation, order_of
from edgemill.tasks.update.updating import OverBudget, Updated, update_order
from examples import examples

VERTICES = 10
PAIRS = list(combinations(range(VERTICES), 2))
Edge = tuple[int, int]


def topology(edges: set[Edge], vertices: int = VERTICES) -> Topology:
    low, high = (np.array([edge[end] for edge in sorted(edges)], np.int32) for end in (0, 1))
    return Topology(low, high, vertices)


def by_edge(edges: Topology, values: NDArray[Any]) -> dict[Edge, int]:
    return dict(zip(zip(edges.low.tolist(), edges.high.tolist(), strict=True), values.tolist(), strict=True))


def full(edges: set[Edge]) -> tuple[Topology, Order]:
    graph = topology(edges)
    lam = oracles.brute_force_lambda(edges)
    return graph, order_of(graph, np.array([lam[edge] for edge in sorted(edges)], np.int32))


def arrays(found: Updated) -> list[NDArray[Any]]:
    return [*vars(found.edges).values(), *vars(found.order).values(), found.changed, found.support_change]


def night(
    edges: Topology,
    order: Order,
    off: set[Edge],
    on: set[Edge],
    most: int | None = None,
    peels_rest: bool = False,
) -> Updated:
    """Update and check all answers against those by definition."""
    before = set(zip(edges.low.tolist(), edges.high.tolist(), strict=True))
    removed = np.array([edge in off for edge in sorted(before)], np.bool_)
    arguments = edges, order, removed, topology(on), most
    found = update_order(*arguments, peels_rest=peels_rest)
    by_all_threads = update_order(*arguments, in_one_thread=False, peels_rest=peels_rest)
    assert all(np.array_equal(*pair) for pair in zip(arrays(found), arrays(by_all_threads), strict=True))
    after = (before - off) | on
    known = by_edge(found.edges, found.order.lam)
    assert list(known) == sorted(after) and known == oracles.brute_force_lambda(after)
    assert find_violation(found.edges, found.order) is None
    numbered = {e: edge for e, edge in enumerate(sorted(before))}
    assert [numbered.get(e) for e in found.origin.tolist()] == [e if e not in on else None for e in sorted(after)]
    old = by_edge(edges, order.lam)
    assert by_edge(found.edges, found.changed) == {edge: old.get(edge) != lam for edge, lam in known.items()}
    was, support = oracles.brute_force_support(before), oracles.brute_force_support(after)
    assert by_edge(found.edges, found.support_change) == {e: n - was.get(e, 0) for e, n in support.items()}
    return found


@st.composite
def batches(draw: st.DrawFn) -> tuple[str, list[Edge]]:
    """What a night brings: some edges, all edges of a vertex, a clique, or a change of everything."""
    kind = draw(st.sampled_from(["some", "some", "one", "star", "clique", "everything", "nothing"]))
    if kind in ("some", "one"):
        return "flip", draw(st.lists(st.sampled_from(PAIRS), unique=True, max_size=12 if kind == "some" else 1))
    if kind == "star":
        hub = draw(st.integers(0, VERTICES - 1))
        return draw(st.sampled_from(["on", "off", "flip"])), [pair for pair in PAIRS if hub in pair]
    if kind == "clique":
        members = sorted(draw(st.sets(st.integers(0, VERTICES - 1), min_size=3, max_size=7)))
        return draw(st.sampled_from(["on", "off"])), list(combinations(members, 2))
    return ("flip", PAIRS) if kind == "everything" else ("on", [])


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few edges are removed in several steps, too."""
    monkeypatch.setattr(updating, "LEAST_STEP", 1)
    monkeypatch.setattr(updating, "GROWTH", 2)


@pytest.fixture(params=["whole levels", "parts of levels"])
def parts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Levels are replayed as a whole, and in parts where two edges or more would stand at once."""
    if request.param == "parts of levels":
        monkeypatch.setattr(sys.modules[replay.__module__], "AT_ONCE", 1)
        monkeypatch.setattr(sys.modules[replay.__module__], "SHORTEST", 1)


@pytest.mark.usefixtures("steps", "parts")
@given(start=strategies.simple_graphs(VERTICES), nights=st.lists(batches(), min_size=1, max_size=30))
@settings(max_examples=examples(200), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_thirty_nights(start: strategies.EdgeList, nights: list[tuple[str, list[Edge]]]) -> None:
    edges, order = full(set(start))
    present = set(start)
    for kind, pairs in nights:
        off = {pair for pair in pairs if pair in present and kind != "on"}
        on = {pair for pair in pairs if pair not in present and kind != "off"}
        found = night(edges, order, off, on)
        edges, order, present = found.edges, found.order, (present - off) | on


@pytest.mark.usefixtures("steps", "parts")
@pytest.mark.parametrize("vertices", [4, pytest.param(5, marks=pytest.mark.slow)])
def test_every_small_graph_becomes_every_other(vertices: int) -> None:
    """For five vertices: every graph by every batch of up to three edges. Waits for a second thread, which has nothing
    to do for such graphs, would take most of the time.
    """
    pairs = list(combinations(range(vertices), 2))
    graphs = [{pair for bit, pair in enumerate(pairs) if number >> bit & 1} for number in range(1 << len(pairs))]
    lam = [oracles.brute_force_lambda(graph) for graph in graphs]
    with kernel_threads(1):
        for number, graph in enumerate(graphs):
            edges, order = topology(graph), full(graph)[1]
            for other, after in enumerate(graphs):
                if vertices > 4 and (number ^ other).bit_count() > 3:
                    continue
                removed = np.array([edge not in after for edge in sorted(graph)], np.bool_)
                found = update_order(edges, order, removed, topology(after - graph))
                assert by_edge(found.edges, found.order.lam) == lam[other]
                assert find_violation(found.edges, found.order) is None


def test_new_and_vanished_vertices() -> None:
    """The numbers of vertices may grow; a vertex without edges stays a number."""
    clique = set(combinations(range(5), 2))
    edges, order = full(clique)
    found = update_order(
        edges, order, np.array([0 in edge for edge in sorted(clique)]), topology({(1, 11), (2, 11)}, 12)
    )
    assert found.edges.vertices == 12
    assert by_edge(found.edges, found.order.lam) == oracles.brute_force_lambda(
        {edge for edge in clique if 0 not in edge} | {(1, 11), (2, 11)}
    )


def test_a_budget_ends_the_update() -> None:
    edges, order = full(set(combinations(range(8), 2)))
    star = topology({(vertex, 8) for vertex in range(8)}, 9)
    with pytest.raises(OverBudget, match="stopped after") as stopped:
        update_order(edges, order, np.zeros(28, np.bool_), star, 5)
    assert stopped.value.work > 5 and stopped.value.triangles <= stopped.value.work
    assert update_order(edges, order, np.zeros(28, np.bool_), star, 10**6).triangles > 5


@pytest.mark.usefixtures("steps")
def test_the_first_steps_tell_that_the_budget_will_not_do() -> None:
    """Apart from each other, 64 cliques lose an edge each: the work grows as the number of edges."""
    cliques = [set(combinations(range(first, first + 8), 2)) for first in range(0, 512, 8)]
    pairs = sorted(set().union(*cliques))
    graph, removed = topology(set(pairs), 512), np.array([not pair[0] % 8 and pair[1] % 8 == 1 for pair in pairs])
    order = order_of(graph, np.full(len(pairs), 6, np.int32))
    whole = update_order(graph, order, removed, topology(set(), 512))
    assert set(whole.order.lam.tolist()) == {5} and np.count_nonzero(removed) == 64
    with pytest.raises(OverBudget) as early:
        update_order(graph, order, removed, topology(set(), 512), whole.work * 9 // 10)
    assert early.value.is_expected and early.value.work == whole.work
    assert early.value.triangles < whole.triangles * 3 // 4
    assert update_order(graph, order, removed, topology(set(), 512), whole.work).work == whole.work


def test_insertions_are_expected_to_be_as_much_work_as_deletions(steps: None) -> None:
    edges, order = full(set(combinations(range(9), 2)))
    removed = np.arange(edges.edges) < 4
    work = update_order(edges, order, removed, topology(set())).work
    with pytest.raises(OverBudget) as early:
        update_order(edges, order, removed, topology({(vertex, 9) for vertex in range(8)}), 2 * work)
    assert early.value.is_expected and early.value.work > 2 * work


def test_lists_grow_while_a_schedule_is_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is room for one triangle at first. The list of the added edge has 28, and those of old edges follow."""
    monkeypatch.setattr(sys.modules[replay.__module__], "ENTRIES", 1)
    found = update_order(*completed_clique())
    assert set(found.order.lam.tolist()) == {28} and find_violation(found.edges, found.order) is None


def completed_clique() -> tuple[Topology, Order, NDArray[np.bool_], Topology]:
    """A clique of 30 vertices that lacks an edge, and the edge: all edges stand at level 27."""
    edges = topology(set(combinations(range(30), 2)) - {(0, 1)}, 30)
    order = order_of(edges, np.full(edges.edges, 27, np.int32))
    return edges, order, np.zeros(edges.edges, np.bool_), topology({(0, 1)}, 30)


def test_edges_that_are_about_to_stand_tell_that_the_budget_will_not_do() -> None:
    whole = update_order(*completed_clique())
    most = whole.work // 2
    with pytest.raises(OverBudget) as early:
        update_order(*completed_clique(), most)
    assert early.value.is_expected and early.value.has_room
    assert early.value.work > most > updating.REPLAYED * early.value.triangles


def test_lists_that_take_too_much_memory_end_the_update(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a budget, too."""
    monkeypatch.setattr(sys.modules[replay.__module__], "ENTRIES", 1)
    with pytest.raises(OverBudget) as stopped:
        update_order(*completed_clique(), most_listed=1000)
    assert not stopped.value.has_room and 0 < stopped.value.triangles <= 1000
    assert update_order(*completed_clique(), most_listed=10**6).triangles > 1000


def test_the_rest_is_peeled_where_following_it_is_more_work() -> None:
    """All edges of a clique stand at once. Those of triangles apart have a lower level, and keep their places."""
    triangles = {pair for v in range(30, 42, 3) for pair in combinations(range(v, v + 3), 2)}
    clique = set(combinations(range(30), 2))
    edges = topology(clique - {(0, 1)} | triangles, 42)
    order = order_of(edges, np.where(edges.high < 30, 27, 1).astype(np.int32))
    removed, added = np.zeros(edges.edges, np.bool_), topology({(0, 1)}, 42)
    found = update_order(edges, order, removed, added, peels_rest=True)
    assert (found.peeled_from, found.peeled) == (27, len(clique))
    whole = update_order(edges, order, removed, added)
    assert whole.peeled_from is None and whole.work > found.work
    assert find_violation(found.edges, found.order) is None
    assert np.array_equal(found.order.lam, whole.order.lam)
    assert np.array_equal(found.support_change, whole.support_change)
    assert np.array_equal(found.changed, whole.changed)
    low = found.edges.high >= 30
    assert np.array_equal(found.order.time[low], whole.order.time[low])


@pytest.mark.parametrize("limit", ["budget", "memory"])
def test_the_rest_is_peeled_beyond_a_limit(monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    monkeypatch.setattr(sys.modules[replay.__module__], "ENTRIES", 1)
    most, listed = (updating.REPLAYED * 200, None) if limit == "budget" else (None, 200)
    with pytest.raises(OverBudget):
        update_order(*completed_clique(), most, most_listed=listed)
    found = update_order(*completed_clique(), most, most_listed=listed, peels_rest=True)
    assert set(found.order.lam.tolist()) == {28} and find_violation(found.edges, found.order) is None
    assert (found.peeled_from, found.peeled) == (27, found.edges.edges)


def test_a_budget_that_the_added_edges_exceed_leaves_no_rest() -> None:
    with pytest.raises(OverBudget):
        update_order(*completed_clique(), 5, peels_rest=True)


@pytest.mark.usefixtures("steps")
@given(
    start=strategies.simple_graphs(VERTICES),
    nights=st.lists(batches(), min_size=1, max_size=12),
    budgets=st.lists(st.sampled_from([0, 4, 20, 80, 200, None]), min_size=12, max_size=12),
)
@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_nights_within_budgets(
    start: strategies.EdgeList, nights: list[tuple[str, list[Edge]]], budgets: list[int | None]
) -> None:
    """A night of which the rest is peeled is as exact, and the next one goes on from it."""
    edges, order = full(set(start))
    present = set(start)
    for (kind, pairs), most in zip(nights, budgets, strict=False):
        off = {pair for pair in pairs if pair in present and kind != "on"}
        on = {pair for pair in pairs if pair not in present and kind != "off"}
        try:
            found = night(edges, order, off, on, most, peels_rest=True)
        except OverBudget:
            continue
        edges, order, present = found.edges, found.order, (present - off) | on


def test_nothing_changes_nothing() -> None:
    edges, order = full(set(combinations(range(6), 2)))
    found = night(edges, order, set(), set())
    assert not found.changed.any() and (found.order.time == order.time).all()


@given(
    start=strategies.simple_graphs(VERTICES),
    place=st.integers(0),
    field=st.sampled_from(list(vars(Order)["__dataclass_fields__"])),
)
@settings(max_examples=examples(60))
def test_a_wrong_entry_is_found(start: strategies.EdgeList, place: int, field: str) -> None:
    edges, order = full(set(start))
    assert find_violation(edges, order) is None
    if start:
        wrong = {name: array.copy() for name, array in vars(order).items()}
        wrong[field][place % len(start)] = -1 if field == "time" else wrong[field][place % len(start)] + 1
        assert find_violation(edges, Order(**wrong)) is not None


def test_a_wrong_lambda_has_no_order() -> None:
    edges, order = full(set(combinations(range(6), 2)))
    for wrong in (order.lam + 1, order.lam - 1):
        with pytest.raises(ValueError, match="not that of the edges"):
            order_of(edges, wrong.astype(np.int32))


def test_edges_without_more_triangles_than_the_level_fall_first() -> None:
    """Another triangle gives its level two edges that fall before its own."""
    clique = set(combinations(range(4), 2))
    apart = {(5, 6), (5, 7), (6, 7)}
    edges, order = full(clique | apart | {(0, 4)})
    found = night(edges, order, set(), {(1, 4)})
    lam, time = by_edge(found.edges, found.order.lam), by_edge(found.edges, found.order.time)
    assert (lam[0, 4], lam[1, 4], {lam[edge] for edge in apart}) == (1, 1, {1})
    assert {time[0, 4], time[1, 4]} == {0, 1}
    before = by_edge(edges, order.time)
    assert {edge: time[edge] - 2 for edge in apart} == {edge: before[edge] for edge in apart}
    assert {time[edge] for edge in clique} == {before[edge] for edge in clique}  # no edge of their level fell early


def test_an_edge_whose_triangles_end_at_the_level_falls_last() -> None:
    """Its triangles keep no other edge: each has an edge that falls as scheduled."""
    triangles = [(0, 2, 4), (1, 2, 5), (0, 3, 6), (1, 3, 7)]
    edges, _ = full({edge for triangle in triangles for edge in combinations(triangle, 2)})
    outer = edges.high > 3
    first = outer & (edges.low < 2)
    time = np.empty(edges.edges, np.int32)
    time[np.concatenate([np.flatnonzero(own) for own in (first, outer & ~first, ~outer)])] = np.arange(edges.edges)
    ones = np.ones(edges.edges, np.int32)
    order = Order(ones, time, ones, first.astype(np.int32))
    assert find_violation(edges, order) is None
    found = night(edges, order, set(), {(0, 1)})
    assert by_edge(found.edges, found.order.lam)[0, 1] == 1
    assert by_edge(found.edges, found.order.time)[0, 1] == found.order.time.max() == edges.edges
