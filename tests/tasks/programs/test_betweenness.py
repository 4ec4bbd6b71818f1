"""Betweenness against NetworkX and igraph, on any number of blocks, exact and estimated."""

from __future__ import annotations

import igraph
import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import hypergeom

from edgemill.tasks.errors import InputError
from edgemill.tasks.programs import Entries, cut_blocks, run_blocks
from edgemill.tasks.programs.batches.program import SourceSample
from edgemill.tasks.programs.batches.running import Forecast, drawn_sources
from edgemill.tasks.programs.shipped.betweenness import Betweenness
from edgemill.tasks.shards import MemoryCarrier
from examples import examples
from vertex_programs import Drawn, by_blocks, cut, graphs

FEW = settings(max_examples=examples(40))


def undirected(graph: nx.Graph) -> Drawn:
    """A NetworkX graph with vertices 0 … V - 1."""
    edges = tuple((min(e), max(e)) for e in graph.edges)
    return Drawn(len(graph), edges, (1.0,) * len(edges), False)


@given(graphs(), st.booleans(), st.integers(1, 64), st.sampled_from([1, 3]))
@FEW
def test_all_sources(graph: Drawn, normalized: bool, batch: int, blocks: int) -> None:
    found = by_blocks(Betweenness(batch=batch, normalized=normalized), graph, blocks)
    theirs = nx.betweenness_centrality(graph.networkx(), normalized=normalized)
    assert np.allclose(found.state["betweenness"], [theirs[v] for v in range(graph.vertices)], atol=1e-12)
    assert not found.state["error"].any() and "error_of_all" not in found.facts
    if not normalized:
        others = igraph.Graph(graph.vertices, graph.edges, directed=graph.directed).betweenness()
        assert np.allclose(found.state["betweenness"], others, atol=1e-12)


@given(graphs(30), st.none() | st.integers(1, 20), st.sampled_from([1, 7, 64]), st.integers(2, 16), st.booleans())
@FEW
def test_bits_do_not_depend_on_the_partitioning(
    graph: Drawn, sources: int | None, batch: int, blocks: int, by_range: bool
) -> None:
    program = Betweenness(sources=sources, batch=batch)
    whole, cut = (by_blocks(program, graph, count, by_range) for count in (1, blocks))
    assert (whole.steps, whole.facts) == (cut.steps, cut.facts)
    for name, values in whole.state.items():
        assert values.tobytes() == cut.state[name].tobytes()


@given(graphs(), st.integers(1, 13), st.integers(0, 9))
@FEW
def test_some_sources(graph: Drawn, count: int, seed: int) -> None:
    """The estimate is the betweenness of paths from the drawn sources, scaled."""
    drawn = drawn_sources(graph.vertices, count, seed).tolist()
    found = by_blocks(Betweenness(sources=count, seed=seed, normalized=False), graph, 1)
    directed = graph.networkx().to_directed()
    theirs = nx.betweenness_centrality_subset(directed, drawn, range(graph.vertices))
    scale = graph.vertices / len(drawn) / (1 if graph.directed else 2)
    assert np.allclose(found.state["betweenness"], [scale * theirs[v] for v in range(graph.vertices)])
    assert found.facts["sources"] == len(drawn) == min(count, graph.vertices)


def test_intervals_contain_the_betweenness() -> None:
    graph = undirected(nx.barabasi_albert_graph(200, 3, seed=1))
    exact = by_blocks(Betweenness(), graph, 1).state["betweenness"]
    for seed in range(10):
        found = by_blocks(Betweenness(sources=100, seed=seed), graph, 1)
        off, error = np.abs(found.state["betweenness"] - exact), found.state["error"]
        assert (off <= error).mean() >= 0.95
        assert off.max() <= found.facts["error_of_all"] < 0.3
        assert 0 < error.min() <= error.max() < found.facts["error_of_all"]


@pytest.mark.parametrize("total", [20, 100, 1500])
def test_certain_bounds_fail_no_more_often_than_they_may(total: int) -> None:
    """Exactly, for values of 0 and 1: how many ones a sample has is hypergeometric."""
    for count in (2, total // 3, total // 2, total // 2 + 1, total - 1):
        sample = SourceSample(total, np.arange(count))
        found = np.arange(count + 1.0)
        width = sample.certain_half_width(found, found, 1.0)
        for ones in {1, total // 50 + 1, total // 5, total // 2, total - 2}:
            off = np.abs(found * sample.scale - ones)
            chance = hypergeom.pmf(found, total, ones, count)
            assert chance[off > width].sum() <= 0.05
            for doubt in (0.5, 0.05, 1e-4):
                assert chance[off > sample.certain_spread(1.0, doubt)].sum() <= doubt
    whole = SourceSample(total, np.arange(total))
    assert whole.certain_half_width(5.0, 5.0, 1.0) == whole.certain_spread(1.0, 0.05) == 0


def test_a_stopped_run_estimates_from_the_sources_so_far() -> None:
    graph = undirected(nx.barabasi_albert_graph(60, 2, seed=2))
    stopped = by_blocks(Betweenness(batch=8), graph, 2, most_steps=3)
    sampled = by_blocks(Betweenness(batch=8, sources=24), graph, 1)
    assert not stopped.converged and sampled.converged
    assert stopped.facts == sampled.facts and stopped.facts["sources"] == 24
    for name, values in stopped.state.items():
        assert values.tobytes() == sampled.state[name].tobytes()


def test_a_long_path_is_read_where_the_searches_are() -> None:
    size = 500
    graph = undirected(nx.path_graph(size))
    found = by_blocks(Betweenness(sources=4), graph, 2, by_range=True)
    assert found.entries <= 30 * 4 * size  # not every row in every level


@pytest.mark.parametrize("directed", [False, True])
def test_one_block_in_threads_gives_the_bits_of_several(directed: bool) -> None:
    """A random graph, in which levels are listed, marked and read whole, and a path with more levels than are kept at
    first; more sources than one batch has.
    """
    random, path = 16_000, 700
    ends = np.random.default_rng(3).integers(0, random, (140_000, 2), np.int32)
    ends = np.unique(ends if directed else np.sort(ends, axis=1), axis=0)
    line = np.arange(random, random + path, dtype=np.int32)
    edges = np.concatenate((ends, np.stack((line[:-1], line[1:]), axis=1)))
    entries, program = Entries(edges[:, 0].copy(), edges[:, 1].copy()), Betweenness(sources=24, batch=16)
    found = []
    for blocks, threads in ((1, 2), (1, 1), (2, 2)):
        home = cut(blocks, True, random + path)
        made = cut_blocks(entries, random + path, home, directed, "in")
        parts = run_blocks(program, made, home, MemoryCarrier.open(blocks), threads=threads)
        order = np.argsort(np.concatenate([part.number for part in parts]))
        found.append({name: np.concatenate([part.state[name] for part in parts])[order] for name in parts[0].state})
    for other in found[1:]:
        assert all(values.tobytes() == other[name].tobytes() for name, values in found[0].items())


def diamonds(count: int) -> Drawn:
    """A chain in which the number of paths from end to end doubles `count` times."""
    edges = [(3 * i + a, 3 * i + b) for i in range(count) for a, b in ((0, 1), (0, 2), (1, 3), (2, 3))]
    return Drawn(3 * count + 1, tuple(edges), (1.0,) * len(edges), False)


@pytest.mark.parametrize("blocks", [1, 2])
def test_numbers_of_paths_above_2_to_the_64(blocks: int) -> None:
    graph = diamonds(70)
    found = by_blocks(Betweenness(normalized=False), graph, blocks).state["betweenness"]
    theirs = nx.betweenness_centrality(graph.networkx(), normalized=False)
    assert np.allclose(found, [theirs[v] for v in range(graph.vertices)], rtol=1e-12)


def test_numbers_of_paths_above_float64_are_refused() -> None:
    with pytest.raises(InputError, match=r"limit.*float64"):
        by_blocks(Betweenness(sources=2), diamonds(2100), 1)


@given(st.integers(0, 300), st.integers(0, 2**31), st.integers(0, 300))
def test_sources_are_distinct_and_every_first_part_is_a_sample(vertices: int, seed: int, count: int) -> None:
    drawn = drawn_sources(vertices, None, seed)
    assert sorted(drawn.tolist()) == list(range(vertices))
    assert drawn_sources(vertices, count, seed).tolist() == drawn[:count].tolist()


def test_every_vertex_is_drawn_about_as_often() -> None:
    times = np.bincount(np.concatenate([drawn_sources(50, 10, seed) for seed in range(500)]), minlength=50)
    assert times.min() > 60 and times.max() < 145  # 100 on average, a standard deviation of 9


def test_progress_and_prediction() -> None:
    graph, told = undirected(nx.path_graph(40)), []
    home = cut(2, True, 40)
    blocks = cut_blocks(graph.entries(), 40, home, False, "in")

    def progress(done: int, batches: int, spent: float, predicted: float | None) -> None:
        told.append((done, batches, spent, predicted))

    found = run_blocks(Betweenness(batch=8), blocks, home, MemoryCarrier.open(2), threads=2, progress=progress)
    assert [row[:2] for row in told] == [(done, 5) for done in range(1, 6)]
    assert [row[3] is None for row in told] == [True, True, False, False, False]
    forecast = Forecast(40, 8)
    for _, _, spent, predicted in told:
        forecast.add(spent)
        assert predicted == forecast.seconds
    assert found[0].facts["predicted_seconds"] == round(float(told[4][3] or 0), 3)
