"""Estimates by wedge sampling, and cliques in the innermost core, against known graphs and NetworkX."""

from __future__ import annotations

from dataclasses import dataclass

import networkx as nx
import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import settings as how
from hypothesis import strategies as st

from edgemill.tasks.estimate import cliques, wedges
from edgemill.tasks.estimate.wedges import Draws, Interval
from edgemill.tasks.partition import RangePartitioner
from edgemill.tasks.programs import Entries, GraphBlock, cut_blocks, run_blocks
from edgemill.tasks.programs.shipped.coreness import Coreness
from edgemill.tasks.shards import MemoryCarrier
from examples import examples
from known_graphs import SKIP_REASON, KnownGraph, known_graphs
from oracles import networkx_lambda
from vertex_programs import Drawn, graphs

QUICK = ("ca-GrQc", "email-Eu-core", "facebook_combined")
"""Known graphs that are tried each time."""


@dataclass(frozen=True)
class Found:
    triangles: Interval
    clustering: Interval
    low: int
    """Bounds of the largest λ."""
    high: int


def estimate(edges: Entries, vertices: int, groups: int, samples: int, seed: int, directed: bool = False) -> Found:
    home = RangePartitioner(np.arange(1, groups, dtype=np.int64) * vertices // groups)
    blocks = cut_blocks(edges, vertices, home, directed, "either")
    before = wedges.sums_before([wedges.count_wedges(block) for block in blocks])
    total = before[-1]
    assert total.vertices == vertices
    draws = Draws(seed, samples, total.wedges, total.centres)
    sent = [wedges.draw_wedges(block, home, draws, before[g]) for g, block in enumerate(blocks)]
    parts = [{own.sender: own.parts[g] for own in sent if g in own.parts} for g in range(groups)]
    closed = np.sum([wedges.count_closed(block, parts[g]) for g, block in enumerate(blocks)], axis=0)
    transitivity = wedges.share_of(int(closed[0]), len(draws.wedge), draws.has_all)
    clustering = wedges.share_of(int(closed[1]), samples if total.centres else 0)

    states = run_blocks(Coreness(), blocks, home, MemoryCarrier.open(groups), threads=1)
    core = max(map(cliques.highest_core, states))
    first = cliques.first_vertices([cliques.core_vertices(own, core) for own in states])
    size = cliques.grow_clique([cliques.core_edges(block, first) for block in blocks])
    share = total.centres / max(total.vertices, 1)
    return Found(transitivity.times(total.wedges / 3), clustering.times(share), max(size - 2, 0), max(core - 1, 0))


def read(graph: KnownGraph) -> tuple[Entries, int]:
    table = pq.read_table(graph.path)
    ends = np.stack([table["src"].to_numpy(), table["dst"].to_numpy()])
    ids, code = np.unique(ends, return_inverse=True)
    low, high = np.sort(code.reshape(2, -1), axis=0)
    pairs = np.unique(np.stack([low, high])[:, low != high], axis=1).astype(np.int32)
    return Entries(pairs[0].copy(), pairs[1].copy()), len(ids)


@pytest.mark.skipif(SKIP_REASON is not None, reason=SKIP_REASON or "")
@pytest.mark.parametrize(
    "graph",
    [
        pytest.param(graph, id=graph.name, marks=[] if graph.name in QUICK else [pytest.mark.slow])
        for graph in known_graphs(max_edges=100_000)
    ],
)
def test_intervals_contain_the_answers_of_known_graphs(graph: KnownGraph) -> None:
    """λ is always within its bounds; triangles with 8 of 10 seeds or more."""
    edges, vertices = read(graph)
    bounds = estimate(edges, vertices, groups=2, samples=100, seed=0)
    assert bounds.low <= graph.lambda_max <= bounds.high
    (block,) = cut_blocks(edges, vertices, RangePartitioner(), False, "either")
    found = [estimate_cheaply(block, 50_000, seed)[0] for seed in range(10)]
    assert sum(own.low <= graph.triangles <= own.high for own in found) >= 8
    assert found[0].high - found[0].low <= max(0.35 * graph.triangles, 600)


def test_intervals_contain_the_answer_as_often_as_they_say() -> None:
    """Of 400 seeds, about 380; fewer than 365 have a probability below one in a thousand."""
    graph = nx.planted_partition_graph(4, 20, 0.5, 0.05, seed=3)
    ends = np.array(graph.edges, np.int32)
    edges = Entries(ends[:, 0].copy(), ends[:, 1].copy())
    (block,) = cut_blocks(edges, len(graph), RangePartitioner(), False, "either")
    triangles, clustering = sum(nx.triangles(graph).values()) / 3, nx.average_clustering(graph)
    found = [estimate_cheaply(block, 300, seed) for seed in range(400)]
    assert sum(own.low <= triangles <= own.high for own, _ in found) >= 365
    assert sum(own.low <= clustering <= own.high for _, own in found) >= 365
    assert abs(np.mean([own.likely for own, _ in found]) / triangles - 1) < 0.02
    assert abs(np.mean([own.likely for _, own in found]) / clustering - 1) < 0.02


def estimate_cheaply(block: GraphBlock, samples: int, seed: int) -> tuple[Interval, Interval]:
    """Triangles and the mean of the clustering coefficients, of a graph in one block."""
    home, (before, total) = RangePartitioner(), wedges.sums_before([wedges.count_wedges(block)])
    draws = Draws(seed, samples, total.wedges, total.centres)
    drawn, by_centre = wedges.count_closed(block, wedges.draw_wedges(block, home, draws, before).parts)
    of_all = wedges.share_of(drawn, len(draws.wedge), draws.has_all).times(total.wedges / 3)
    return of_all, wedges.share_of(by_centre, samples).times(total.centres / total.vertices)


@given(graphs(most=20), st.integers(1, 6), st.integers(0, 2**32), st.sampled_from([3, 10_000]))
@how(max_examples=examples(80))
def test_the_seed_alone_decides(graph: Drawn, groups: int, seed: int, samples: int) -> None:
    groups = min(groups, graph.vertices)
    whole, cut = (
        estimate(graph.entries(), graph.vertices, count, samples, seed, graph.directed) for count in (1, groups)
    )
    assert whole == cut
    simple = nx.Graph(graph.networkx().to_undirected())
    simple.remove_edges_from(list(nx.selfloop_edges(simple)))
    highest = max(networkx_lambda(simple.edges).values(), default=0)
    assert whole.low <= highest <= whole.high
    if samples == 10_000:  # more than all wedges
        triangles = sum(nx.triangles(simple).values()) / 3
        assert whole.triangles.low == whole.triangles.high == pytest.approx(triangles)


def test_a_clique_is_found_whole() -> None:
    ring = nx.disjoint_union(nx.complete_graph(12), nx.cycle_graph(30))
    ends = np.array(ring.edges, np.int32)
    found = estimate(Entries(ends[:, 0].copy(), ends[:, 1].copy()), 42, groups=3, samples=100, seed=0)
    assert (found.low, found.high) == (10, 10)


def test_wedges_are_numbered_by_pairs_of_positions() -> None:
    number = np.concatenate([np.arange(2000), 2**52 + np.arange(50), [10**15 * (10**3 - 1) // 2]])
    low, high = wedges._pair(number)
    assert np.array_equal(high * (high - 1) // 2 + low, number)
    assert np.all((low >= 0) & (low < high))
