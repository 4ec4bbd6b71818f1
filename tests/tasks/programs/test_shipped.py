"""The shipped programs against NetworkX, igraph and SciPy, on any number of blocks."""

from __future__ import annotations

from collections import Counter
from typing import Any

import igraph
import networkx as nx
import numpy as np
import pytest
import scipy.sparse
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from edgemill.kernels import programs as gathers
from edgemill.kernels.runtime.threads import kernel_threads
from edgemill.tasks.partition import RangePartitioner
from edgemill.tasks.programs import Entries, Program, cut_blocks, run_program
from edgemill.tasks.programs.shipped.bfs import BreadthFirst
from edgemill.tasks.programs.shipped.clustering import LocalClustering
from edgemill.tasks.programs.shipped.components import Components
from edgemill.tasks.programs.shipped.coreness import Coreness
from edgemill.tasks.programs.shipped.hits import Hits
from edgemill.tasks.programs.shipped.labels import LabelPropagation
from edgemill.tasks.programs.shipped.pagerank import PageRank
from edgemill.tasks.programs.shipped.sssp import ShortestPaths
from edgemill.tasks.programs.shipped.strong_components import StrongComponents
from edgemill.tasks.shards import MemoryCarrier
from examples import examples
from vertex_programs import Drawn, by_blocks, graphs

SHIPPED: list[Program] = [
    BreadthFirst(0),
    Components(),
    Coreness(),
    Hits(),
    Hits(iterations=3),
    LabelPropagation(4),
    LocalClustering(),
    PageRank(),
    PageRank(iterations=5, weighted=True, personal=(0,)),
    ShortestPaths(0),
    StrongComponents(),
]
FEW = settings(max_examples=examples(40))
MANY = 10**6


def rows(graph: Drawn, view: str) -> list[list[int]]:
    """The sources of the in-edges of each vertex, for a `Program.view`."""
    found: list[list[int]] = [[] for _ in range(graph.vertices)]
    for u, v in graph.edges:
        found[v].append(u)
        if (view != "in" or not graph.directed) and (graph.directed or u != v):
            found[u].append(v)
    if view == "either":
        return [sorted(set(row) - {v}) for v, row in enumerate(found)]
    return [sorted(row) for row in found]


@given(graphs(), st.sampled_from(SHIPPED), st.integers(2, 16), st.booleans())
@settings(max_examples=examples(80))
def test_results_are_bitwise_equal_for_every_partitioning(
    graph: Drawn, program: Program, blocks: int, by_range: bool
) -> None:
    whole, cut = (by_blocks(program, graph, count, by_range) for count in (1, blocks))
    stepwise = by_blocks(program, graph, 1, by_range, most_steps=MANY)  # a limit prevents a result at once
    assert (whole.converged, whole.moved) == (cut.converged, cut.moved) == (stepwise.converged, stepwise.moved)
    assert program.spreads or stepwise.steps == cut.steps
    assert stepwise.state.keys() == cut.state.keys() == program.state.keys()
    for found in (whole, stepwise):
        for name, values in found.state.items():
            assert values.tobytes() == cut.state[name].tobytes()


def by_functions(kind: type[Any]) -> Any:
    """The program by its functions alone, in supersteps: a class outside of the package has no faster forms."""
    return type(kind.__name__, (kind,), {"__module__": __name__})


FORMS: list[tuple[Any, dict[str, Any]]] = [
    (PageRank, {}),
    (PageRank, {"iterations": 3}),
    (Components, {}),
    (BreadthFirst, {"source": 0}),
    (ShortestPaths, {"source": 0, "delta": 2.0}),
    (ShortestPaths, {"source": 0, "delta": np.inf}),
]


@given(graphs(), st.integers(1, 3), st.sampled_from(FORMS))
@FEW
def test_forms_give_the_same_bits(graph: Drawn, blocks: int, form: tuple[Any, dict[str, Any]]) -> None:
    kind, given = form
    fast, slow = (by_blocks(one(**given), graph, blocks) for one in (kind, by_functions(kind)))
    assert (fast.steps, fast.converged, fast.moved) == (slow.steps, slow.converged, slow.moved)
    for name, values in fast.state.items():
        assert values.tobytes() == slow.state[name].tobytes()


@pytest.mark.parametrize("directed", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("kind", "given"), [*FORMS[2:], (ShortestPaths, {"source": 0, "delta": None})])
def test_forms_in_several_threads(kind: Any, given: dict[str, Any], directed: bool) -> None:
    """Layers of 4096 vertices, each with 8 edges to the next: lists are long enough for all threads."""
    draw, layers, width = np.random.default_rng(5), 24, 4096
    source = np.repeat(np.arange(layers * width, dtype=np.int32), 8)
    target = (source // width + 1) * width + draw.integers(0, width, len(source), np.int32)
    edges = Entries(source, target, draw.integers(0, 9, len(source)).astype(np.float64))
    (block,) = cut_blocks(edges, (layers + 1) * width, RangePartitioner(), directed, kind.view)
    found = []
    with kernel_threads(2):
        for one in (kind, by_functions(kind)):
            (carrier,) = MemoryCarrier.open(1)
            found.append(run_program(one(**given), block, RangePartitioner(), carrier))
    fast, slow = found
    assert fast.exchanges == 0 < slow.exchanges
    assert fast.steps == slow.steps or given.get("delta", 0) is None
    for name, values in fast.state.items():
        assert values.tobytes() == slow.state[name].tobytes()


@given(graphs(), st.data())
@FEW
def test_levels_and_parents(graph: Drawn, data: st.DataObject) -> None:
    source = data.draw(st.integers(0, graph.vertices - 1))
    found = by_blocks(BreadthFirst(source), graph, data.draw(st.sampled_from([1, 3]))).state
    levels = nx.single_source_shortest_path_length(graph.networkx(), source)
    assert found["level"].tolist() == [levels.get(v, -1) for v in range(graph.vertices)]
    for v, row in enumerate(rows(graph, "in")):
        above = [u for u in row if v in levels and levels.get(u, -2) == levels[v] - 1]
        assert found["parent"][v] == (v if v == source else min(above, default=-1))


@given(graphs(), st.data())
@FEW
def test_distances_and_predecessors(graph: Drawn, data: st.DataObject) -> None:
    source = data.draw(st.integers(0, graph.vertices - 1))
    found = by_blocks(ShortestPaths(source), graph, data.draw(st.sampled_from([1, 3]))).state
    levels = nx.single_source_shortest_path_length(graph.networkx(), source)
    distances = nx.single_source_dijkstra_path_length(graph.networkx(), source)
    assert np.allclose(found["distance"], [distances.get(v, np.inf) for v in range(graph.vertices)], rtol=1e-12)
    weight = {**dict(zip(graph.edges, graph.weights, strict=True))}
    if not graph.directed:
        weight |= {(v, u): w for (u, v), w in weight.items()}
    found_distance, before = found["distance"], found["predecessor"].tolist()
    tight = {
        v: [u for (u, w), x in weight.items() if w == v and found_distance[u] + x == found_distance[v]] for v in levels
    }
    known = {source: source}
    for v in levels:
        if v != source and found_distance[first := min(tight[v])] < found_distance[v]:
            known[v] = first
    senders = set(known)
    while senders:
        found_now = {
            v: min(senders.intersection(tight[v])) for v in levels.keys() - known if senders.intersection(tight[v])
        }
        known |= found_now
        senders = set(found_now)
    assert before == [known.get(v, -1) for v in range(graph.vertices)]
    for v in levels:  # a tree
        for _ in range(graph.vertices):
            v = before[v]
        assert v == source


@given(graphs(), st.sampled_from([1, 3, 7]), st.sampled_from([1e-7, 0.2, 1.0, 3.0, 1e9, np.inf]))
@FEW
def test_windows_do_not_change_distances(graph: Drawn, blocks: int, delta: float) -> None:
    """Weights are 0 to 1e6: in an infinite window nothing waits, and in the smallest each distance has its own."""
    one, whole = by_blocks(ShortestPaths(0, np.inf), graph, 1), by_blocks(ShortestPaths(0, delta), graph, 1)
    cut = by_blocks(ShortestPaths(0, delta), graph, blocks, most_steps=MANY)
    stepwise = by_blocks(ShortestPaths(0, delta), graph, 1, most_steps=MANY)
    assert (cut.steps, cut.converged, cut.exchanges) == (stepwise.steps, True, stepwise.exchanges)
    assert (whole.steps, whole.converged) == (cut.steps, True)
    assert one.steps <= cut.steps
    for name, values in one.state.items():
        assert values.tobytes() == cut.state[name].tobytes() == whole.state[name].tobytes()


def test_small_windows_read_fewer_edges() -> None:
    """A path of short edges, and long edges from the source to all its vertices, which shorter paths replace."""
    size = 200
    short = tuple((v, v + 1) for v in range(size - 1))
    long = tuple((0, v) for v in range(2, size))
    graph = Drawn(size, short + long, (1.0,) * len(short) + tuple(2.0 * v for _, v in long), True)
    near, all_at_once = (by_blocks(ShortestPaths(0, delta), graph, 2) for delta in (1.0, np.inf))
    assert near.state["distance"].tolist() == all_at_once.state["distance"].tolist() == list(range(size))
    assert 4 * near.entries < all_at_once.entries


@given(graphs(), st.sampled_from([1, 3]))
@FEW
def test_components_have_the_smallest_number(graph: Drawn, blocks: int) -> None:
    ends = np.array(graph.edges).reshape(-1, 2)
    matrix = scipy.sparse.coo_array((np.ones(len(ends)), ends.T), shape=(graph.vertices,) * 2)
    _, label = scipy.sparse.csgraph.connected_components(matrix, connection="weak")
    least = [int(np.flatnonzero(label == own)[0]) for own in label]
    assert by_blocks(Components(), graph, blocks).state["component"].tolist() == least


@pytest.mark.parametrize("directed", [False, True])
def test_components_of_sparse_graphs_in_blocks(directed: bool) -> None:
    """Labels have to pass edges both ways between blocks, also those of the largest component."""
    rng = np.random.default_rng(7)
    for vertices in [4, 6, 10, 20, 40] * 20:
        pairs = rng.integers(0, vertices, (int(vertices * rng.choice([0.6, 1.0, 1.5, 2.0])), 2))
        edges = {(int(u), int(v)) if directed else (int(min(u, v)), int(max(u, v))) for u, v in pairs}
        graph = Drawn(vertices, tuple(sorted(edges)), (0.0,) * len(edges), directed)
        known = nx.Graph(sorted(edges))
        known.add_nodes_from(range(vertices))
        least = [min(nx.node_connected_component(known, v)) for v in range(vertices)]
        for blocks in (2, 5):
            found = by_blocks(Components(), graph, blocks, bool(vertices % 4))
            assert found.converged and found.state["component"].tolist() == least


@given(graphs(), st.integers(1, 4))
@settings(max_examples=examples(100))
def test_strong_components_have_the_smallest_number(graph: Drawn, blocks: int) -> None:
    ends = np.array([*graph.edges, *(() if graph.directed else ((v, u) for u, v in graph.edges))]).reshape(-1, 2)
    matrix = scipy.sparse.coo_array((np.ones(len(ends)), ends.T), shape=(graph.vertices,) * 2)
    _, label = scipy.sparse.csgraph.connected_components(matrix, connection="strong")
    least = [int(np.flatnonzero(label == own)[0]) for own in label]
    found = by_blocks(StrongComponents(), graph, blocks)
    assert found.converged and found.state["component"].tolist() == least


@pytest.mark.parametrize("blocks", [1, 3])
@pytest.mark.parametrize("step", [1, -1])
def test_a_chain_of_circles_takes_two_rounds(step: int, blocks: int) -> None:
    """All vertices of a chain have the same smallest vertex above them, so that a round alone finds one component."""
    size = 60
    circles = [pair for v in range(0, size, 3) for pair in ((v, v + 1), (v + 1, v + 2), (v + 2, v))]
    chain = [(v, v + 3) if step > 0 else (v + 3, v) for v in range(0, size - 3, 3)]
    found = by_blocks(StrongComponents(), Drawn(size, (*circles, *chain), (1.0,) * (size + len(chain)), True), blocks)
    assert found.state["component"].tolist() == [v - v % 3 for v in range(size)]
    assert found.steps <= 2 * size


def test_paths_are_trimmed_from_both_ends() -> None:
    graph = Drawn(101, tuple((v, v + 1) for v in range(100)), (1.0,) * 100, True)
    found = by_blocks(StrongComponents(), graph, 2)
    assert found.state["component"].tolist() == list(range(101)) and found.steps == 101


@given(graphs(), st.integers(0, 5), st.sampled_from([1, 3]))
@FEW
def test_labels_are_the_smallest_most_frequent_ones(graph: Drawn, steps: int, blocks: int) -> None:
    label = list(range(graph.vertices))
    for _ in range(steps):
        counts = [Counter(label[u] for u in row) for row in rows(graph, "both")]
        label = [min(own, key=lambda k: (-own[k], k)) if own else label[v] for v, own in enumerate(counts)]
    assert by_blocks(LabelPropagation(steps), graph, blocks).state["label"].tolist() == label


@given(graphs(), st.sampled_from([1, 3]))
@FEW
def test_coreness(graph: Drawn, blocks: int) -> None:
    simple = nx.Graph(graph.networkx())
    simple.remove_edges_from([(v, v) for v in simple])
    found = by_blocks(Coreness(), graph, blocks).state["core"].tolist()
    assert found == [nx.core_number(simple)[v] for v in range(graph.vertices)]
    assert found == igraph.Graph.from_networkx(simple).coreness()


@given(graphs(), st.sampled_from([1, 3]))
@FEW
def test_links_between_neighbours(graph: Drawn, blocks: int) -> None:
    edges = set(graph.edges) | (set() if graph.directed else {(v, u) for u, v in graph.edges})
    found = by_blocks(LocalClustering(), graph, blocks).state
    for v, row in enumerate(rows(graph, "either")):
        links = sum((u, w) in edges for u in row for w in row if u != w)
        assert found["links"][v] == links
        assert found["clustering"][v] == (links / (len(row) * (len(row) - 1)) if len(row) > 1 else 0)
    if not graph.directed:
        simple = nx.Graph(edge for edge in graph.edges if edge[0] != edge[1])
        triangles = nx.triangles(simple)
        assert found["links"].tolist() == [2 * triangles.get(v, 0) for v in range(graph.vertices)]


@given(graphs(), st.booleans(), st.booleans(), st.sampled_from([1, 3]))
@FEW
def test_ranks(graph: Drawn, weighted: bool, personal: bool, blocks: int) -> None:
    start = (0, graph.vertices - 1) if personal else ()
    program = PageRank(tolerance=1e-13, weighted=weighted, personal=start)
    found = by_blocks(program, graph, blocks)
    rank = found.state["rank"]
    assert found.converged and found.moved < 1e-13 and abs(rank.sum() - 1) < 1e-12
    assert np.allclose(rank, linear_ranks(graph, weighted, start), rtol=1e-9, atol=1e-12)
    if not graph.edges:
        return
    # NetworkX and edgemill count a loop of an undirected graph once; igraph counts it twice.
    weight = "weight" if weighted and any(graph.weights) else None
    if weighted == (weight is not None):
        starts = {v: 1.0 for v in start} or None
        theirs = nx.pagerank(graph.networkx(), tol=1e-14, max_iter=500, personalization=starts, weight=weight)
        assert np.allclose(rank, [theirs[v] for v in range(graph.vertices)], atol=1e-10)


def linear_ranks(graph: Drawn, weighted: bool, start: tuple[int, ...]) -> Any:
    """Ranks by definition: the solution of a system of linear equations."""
    n = graph.vertices
    follow = np.zeros((n, n))  # from column to row
    for (u, v), weight in zip(graph.edges, graph.weights, strict=True):
        follow[v, u] += weight if weighted else 1
        if not graph.directed and u != v:
            follow[u, v] += weight if weighted else 1
    starts = np.full(n, 1 / n)
    if start:
        starts = np.isin(np.arange(n), start) / len(set(start))
    out = follow.sum(axis=0)
    follow = np.where(out > 0, follow / np.where(out > 0, out, 1), starts[:, None])
    return np.linalg.solve(np.eye(n) - 0.85 * follow, 0.15 * starts)


def adjacency(graph: Drawn) -> Any:
    matrix = np.zeros((graph.vertices, graph.vertices))
    for u, v in graph.edges:
        matrix[u, v] = 1
        matrix[v, u] = 1 if not graph.directed else matrix[v, u]
    return matrix


@given(graphs(), st.integers(1, 6), st.integers(1, 4))
@FEW
def test_hubs_and_authorities_by_turns(graph: Drawn, iterations: int, blocks: int) -> None:
    matrix = adjacency(graph)
    hub, authority = (matrix.sum(axis=1) > 0).astype(float), np.zeros(graph.vertices)
    for _ in range(iterations):
        authority = matrix.T @ hub
        authority /= authority.sum() or 1
        hub = matrix @ authority
        hub /= hub.sum() or 1
    found = by_blocks(Hits(iterations=iterations), graph, blocks)
    assert found.steps == 2 * iterations and found.entries == found.steps * int(matrix.sum())
    assert np.allclose(found.state["authority"], authority, rtol=1e-12, atol=0)
    assert np.allclose(found.state["hub"], hub, rtol=1e-12, atol=0)


@given(graphs(), st.integers(1, 4))
@FEW
def test_hubs_and_authorities_are_singular_vectors(graph: Drawn, blocks: int) -> None:
    matrix = adjacency(graph)
    left, values, right = np.linalg.svd(matrix)
    top = values >= values[0] * (1 - 1e-9)
    assume(not (~top & (values > 0.97 * values[0])).any())
    found = by_blocks(Hits(tolerance=1e-13), graph, blocks)
    assert found.converged and found.moved < 1e-13
    if not graph.edges:
        assert not found.state["hub"].any() and not found.state["authority"].any()
        return
    hub = left[:, top] @ left[:, top].T @ (matrix.sum(axis=1) > 0)
    authority = right[top].T @ right[top] @ matrix.T @ (matrix.sum(axis=1) > 0)
    assert np.allclose(found.state["hub"], hub / hub.sum(), atol=1e-10)
    assert np.allclose(found.state["authority"], authority / authority.sum(), atol=1e-10)


def test_hubs_and_authorities_equal_those_of_igraph() -> None:
    graph = Drawn(6, ((0, 1), (1, 2), (2, 0), (2, 3), (4, 0), (4, 3), (5, 3)), (1.0,) * 7, True)
    theirs = igraph.Graph(6, graph.edges, directed=True)
    found = by_blocks(Hits(tolerance=1e-12), graph, 2).state
    for name, scores in (("hub", theirs.hub_score()), ("authority", theirs.authority_score())):
        assert np.allclose(found[name], np.array(scores) / sum(scores), atol=1e-9)


def test_ranks_equal_those_of_igraph() -> None:
    graph = Drawn(5, ((0, 1), (1, 2), (2, 0), (2, 3), (4, 0)), (1.0, 2.0, 3.0, 4.0, 5.0), True)
    theirs = igraph.Graph(5, graph.edges, directed=True)
    assert np.allclose(by_blocks(PageRank(), graph, 2).state["rank"], theirs.pagerank(), atol=1e-8)
    weighted = by_blocks(PageRank(weighted=True), graph, 2).state["rank"]
    assert np.allclose(weighted, theirs.pagerank(weights=list(graph.weights)), atol=1e-8)


@pytest.mark.parametrize("blocks", [1, 2, 5])
def test_components_take_a_superstep_for_each_block_on_the_way(blocks: int) -> None:
    size = 300
    graph = Drawn(size, tuple((v, v + 1) for v in range(size - 1)), (1.0,) * (size - 1), False)
    found = by_blocks(Components(), graph, blocks, by_range=True)
    assert set(found.state["component"].tolist()) == {0}
    assert found.steps <= blocks + 1


@pytest.mark.parametrize("blocks", [1, 4])
@pytest.mark.parametrize("program", [BreadthFirst(0), ShortestPaths(0)], ids=lambda p: type(p).__name__)
def test_only_changed_vertices_of_a_long_path_are_read(program: Program, blocks: int) -> None:
    size = 300
    graph = Drawn(size, tuple((v, v + 1) for v in range(size - 1)), (1.0,) * (size - 1), False)
    found = by_blocks(program, graph, blocks, by_range=True)
    first = next(iter(found.state.values()))
    assert first.tolist() == list(range(size))
    assert found.steps == size + (2 if isinstance(program, ShortestPaths) else 0)  # predecessors take two more
    assert found.entries <= 32 * size  # a block with few entries may read them all


def test_components_of_several_blocks_need_no_rows_by_source(monkeypatch: pytest.MonkeyPatch) -> None:
    """Out-degrees of undirected edges are in-degrees."""

    def refused(*arguments: Any) -> Any:
        raise AssertionError("rows by source were made")

    monkeypatch.setattr(gathers, "transpose_rows", refused)
    path = Drawn(30, tuple((v, v + 1) for v in range(29)), (1.0,) * 29, False)
    assert not by_blocks(Components(), path, 3).state["component"].any()
