"""Distances against NetworkX, on any number of blocks, exact and estimated."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from edgemill.tasks.programs import cut_blocks, run_blocks
from edgemill.tasks.programs.batches.running import drawn_sources
from edgemill.tasks.programs.block import NO_PATH
from edgemill.tasks.programs.pairs import collect_pairs, send_pairs
from edgemill.tasks.programs.shipped.distances import Distances
from edgemill.tasks.shards import MemoryCarrier
from examples import examples
from vertex_programs import Drawn, by_blocks, cut, graphs

FEW = settings(max_examples=examples(40))


def all_distances(graph: Drawn) -> NDArray[np.int64]:
    """[source, target] distances, -1 for pairs without a path."""
    found = np.full((graph.vertices, graph.vertices), -1)
    for u, distances in nx.all_pairs_shortest_path_length(graph.networkx()):
        for v, distance in distances.items():
            found[u, v] = distance
    return found


@given(graphs(), st.booleans(), st.sampled_from([64, 128]), st.sampled_from([1, 3]))
@FEW
def test_all_sources(graph: Drawn, improved: bool, batch: int, blocks: int) -> None:
    found = by_blocks(Distances(batch=batch, wasserman_faust=improved), graph, blocks)
    theirs = nx.closeness_centrality(graph.networkx(), wf_improved=improved)
    assert np.allclose(found.state["closeness"], [theirs[v] for v in range(graph.vertices)], rtol=1e-12)
    distances = all_distances(graph)
    assert found.state["eccentricity"].tolist() == distances.max(axis=1).tolist()
    assert not found.state["slack"].any() and not found.state["error"].any()
    check_facts(found.facts, distances)


@given(graphs(30), st.none() | st.integers(1, 20), st.integers(1, 6), st.integers(1, 4))
@FEW
def test_the_table_has_all_distances(graph: Drawn, sources: int | None, blocks: int, buckets: int) -> None:
    program, home = Distances(sources=sources, batch=64, table=True), cut(blocks, True, graph.vertices)
    parts = cut_blocks(graph.entries(), graph.vertices, home, graph.directed, program.view)
    outcomes = run_blocks(program, parts, home, MemoryCarrier.open(blocks), threads=2)
    starts = np.arange(buckets + 1) * graph.vertices // buckets
    sent = [send_pairs(outcome, starts) for outcome in outcomes]
    searched = drawn_sources(graph.vertices, sources, 0)
    distances = all_distances(graph)
    rows = []
    for b in range(buckets):
        found = collect_pairs(b, graph.vertices, {g: own.parts[b] for g, own in enumerate(sent) if b in own.parts})
        assert found.column.tolist() == list(range(graph.vertices))
        expected = distances[found.row]
        assert found.distance.tolist() == np.where(expected > 0, expected, NO_PATH).tolist()
        rows += found.row.tolist()
    assert rows == sorted(searched.tolist())


def check_facts(facts: dict[str, Any], distances: NDArray[np.int64]) -> None:
    """The facts of all sources, by definition."""
    pairs = distances[distances > 0]
    assert facts["longest"] == distances.max()
    assert facts["hop_plot"] == np.bincount(pairs, minlength=1)[1:].tolist()
    assert np.isclose(facts["mean_distance"], pairs.mean() if len(pairs) else 0)
    size = (distances >= 0).sum(axis=1)
    ends = distances.max(axis=1)[size == size.max()]
    assert facts["largest"] == size.max()
    assert facts["diameter"] == [ends.max()] * 2 and facts["radius"] == [ends.min()] * 2
    if len(pairs):
        below = (pairs < facts["effective_diameter"]).mean()
        assert below <= 0.9 + 1e-9 <= (pairs <= np.ceil(facts["effective_diameter"] + 1e-9)).mean() + 2e-9


@given(graphs(30), st.none() | st.integers(1, 20), st.integers(2, 16), st.booleans())
@FEW
def test_bits_do_not_depend_on_the_partitioning(graph: Drawn, sources: int | None, blocks: int, by_range: bool) -> None:
    whole, cut = (by_blocks(Distances(sources=sources, batch=64), graph, count, by_range) for count in (1, blocks))
    assert (whole.steps, whole.facts) == (cut.steps, cut.facts)
    for name, values in whole.state.items():
        assert values.tobytes() == cut.state[name].tobytes()


@given(graphs(30), st.integers(1, 10), st.integers(0, 9))
@FEW
def test_bounds_contain_eccentricity_diameter_and_radius(graph: Drawn, sources: int, seed: int) -> None:
    found = by_blocks(Distances(sources=sources, seed=seed), graph, 1)
    distances = all_distances(graph)
    exact, least, slack = distances.max(axis=1), found.state["eccentricity"], found.state["slack"]
    assert (least <= exact).all() and (exact[slack >= 0] <= (least + slack)[slack >= 0]).all()
    size = (distances >= 0).sum(axis=1)
    largest = exact[size == size.max()]
    if not graph.directed:  # the bounds meet, with more searches if need be
        assert found.facts["largest"] == size.max()
        assert found.facts["diameter"] == [largest.max()] * 2 and found.facts["radius"] == [largest.min()] * 2
    elif sources < graph.vertices:
        low, high = found.facts["diameter"]
        assert high is None and low <= exact.max()


@pytest.mark.slow
def test_few_searches_bound_the_diameter_of_a_large_graph() -> None:
    graph = nx.connected_watts_strogatz_graph(1500, 6, 0.05, seed=3)
    drawn = Drawn(1500, tuple((min(e), max(e)) for e in graph.edges), (1.0,) * graph.size(), False)
    found = by_blocks(Distances(sources=64), drawn, 2)
    diameter, radius = nx.diameter(graph, usebounds=True), nx.radius(graph, usebounds=True)
    assert found.facts["diameter"] == [diameter] * 2 and found.facts["radius"] == [radius] * 2
    assert found.facts["further_searches"] < 700


def test_intervals_contain_closeness_and_hop_plot() -> None:
    graph = nx.barabasi_albert_graph(300, 2, seed=1)
    drawn = Drawn(310, tuple((min(e), max(e)) for e in graph.edges), (1.0,) * graph.size(), False)
    exact = by_blocks(Distances(), drawn, 1)
    closeness, hops = [], []
    for seed in range(10):
        found = by_blocks(Distances(sources=80, seed=seed, batch=128), drawn, 1)
        joined = slice(0, 300)
        off = np.abs(found.state["closeness"] - exact.state["closeness"])[joined]
        closeness.append(float((off <= found.state["error"][joined]).mean()))
        assert not found.state["error"][300:].any()
        for d, error in enumerate(found.facts["hop_plot_error"]):
            hops.append(abs(found.facts["hop_plot"][d] - exact.facts["hop_plot"][d]) <= error)
    assert 0.88 < np.mean(closeness) < 0.995
    assert np.mean(hops) > 0.8
