"""edgemill as a backend of NetworkX: NetworkX's own tests of its functions, and equal answers on drawn graphs."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
import warnings
from importlib.metadata import entry_points
from typing import Any

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import strategies
from edgemill.pipeline.networkx_backend import backend
from edgemill.pipeline.networkx_backend.backend import NetworkXGraph
from edgemill.pipeline.networkx_backend.info import get_info
from edgemill.tasks.programs.shipped.coreness import Coreness
from examples import examples
from support_path import SUPPORT_PATH

OFFERED = tuple(get_info()["functions"])
OF_NODES = ("triangles", "clustering", "generalized_degree")
ELSEWHERE = (
    "networkx.algorithms.centrality.tests.test_percolation_centrality",
    "networkx.algorithms.centrality.tests.test_group",
    "networkx.algorithms.tests.test_cycles",
    "networkx.algorithms.tests.test_smallworld",
    "networkx.algorithms.tests.test_threshold",
    "networkx.algorithms.approximation.tests.test_approx_clust_coeff",
    "networkx.algorithms.bipartite.tests.test_cluster",
    "networkx.generators.tests.test_classic",
    "networkx.generators.tests.test_geometric",
)
"""Other tests of NetworkX that call these functions."""


def networkx_tests(*arguments: str) -> tuple[dict[str, int], str]:
    """Run tests of NetworkX with this backend. Returns the calls of each function, and pytest's output."""
    environment = os.environ | {"NETWORKX_TEST_BACKEND": "edgemill", "NETWORKX_FALLBACK_TO_NX": "True"}
    paths = os.pathsep.join([SUPPORT_PATH, *filter(None, [os.environ.get("PYTHONPATH")])])
    options = ["-p", "networkx_calls", "-p", "no:cacheprovider", "-p", "no:randomly", "-q", "-c", os.devnull]
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "--rootdir", os.path.dirname(nx.__file__), "--pyargs", *arguments],
        capture_output=True,
        text=True,
        env=environment | {"PYTHONPATH": paths},
        cwd=os.path.dirname(nx.__file__),
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    (calls,) = [line for line in ended.stdout.splitlines() if line.startswith("calls: ")]
    return json.loads(calls.removeprefix("calls: ")), ended.stdout


def called(name: str) -> Any:
    """NetworkX's function."""
    return getattr(nx, name, None) or getattr(nx.community, name)


def test_networkx_finds_it() -> None:
    for group in ("networkx.backends", "networkx.backend_info"):
        found = [point for point in entry_points(group=group) if point.name == "edgemill"]
        assert len(found) == 1, f"{group} has no edgemill: install this checkout again"
    (info,) = entry_points(group="networkx.backend_info", name="edgemill")
    assert info.load() is get_info


@pytest.mark.slow
def test_networkx_s_own_tests() -> None:
    """The tests of the functions themselves call all of them."""
    calls, said = networkx_tests(
        "networkx.algorithms.tests.test_core",
        "networkx.algorithms.tests.test_cluster",
        "networkx.algorithms.link_analysis.tests.test_hits",
        "networkx.algorithms.link_analysis.tests.test_pagerank",
        "networkx.algorithms.tests.test_link_prediction",
        "networkx.algorithms.centrality.tests.test_betweenness_centrality",
        "networkx.algorithms.centrality.tests.test_closeness_centrality",
        "networkx.algorithms.tests.test_distance_measures",
        "networkx.algorithms.community.tests.test_leiden",
    )
    assert set(calls) == set(OFFERED), calls
    assert min(calls.values()) >= 2 and " passed" in said and "failed" not in said


@pytest.mark.slow
def test_networkx_s_other_tests() -> None:
    calls, said = networkx_tests(*ELSEWHERE)
    assert calls and " passed" in said


def test_names_and_parameters_are_networkx_s() -> None:
    for name in OFFERED:
        theirs = inspect.signature(called(name)).parameters
        ours = inspect.signature(getattr(backend, name)).parameters
        known = [own for own in theirs if own not in ("backend", "backend_kwargs")]
        assert list(ours) == known
        assert [ours[own].default for own in known] == [theirs[own].default for own in known]


def same_graph(left: nx.Graph, right: nx.Graph) -> bool:
    """The same nodes, edges and attributes, in the same order."""
    return bool(
        type(left) is type(right)
        and left.graph == right.graph
        and list(left.nodes(data=True)) == list(right.nodes(data=True))
        and {node: list(row.items()) for node, row in left.adjacency()}
        == {node: list(row.items()) for node, row in right.adjacency()}
    )


def answer(name: str, graph: nx.Graph, *args: Any, **kwargs: Any) -> Any:
    """The answer of edgemill, or the type of its error."""
    try:
        return getattr(nx, name)(graph, *args, **kwargs)
    except (nx.NetworkXException, ZeroDivisionError) as error:
        return type(error)


@given(
    rows=strategies.edge_lists(11),
    alone=st.sets(st.integers(0, 14)),
    k=st.integers(-1, 7) | st.just(3.5),
    data=st.data(),
)
@settings(max_examples=examples(40))
def test_the_same_answers(rows: list[tuple[int, int]], alone: set[int], k: float, data: st.DataObject) -> None:
    """Graphs have loops, isolated nodes, any hashable nodes, and attributes. Types of numbers are compared too."""
    names = data.draw(st.permutations([*range(10), "text", (1, 2), None.__class__, 3.5, frozenset({1})]))
    graph = nx.Graph(name="drawn")
    graph.add_nodes_from((names[node], {"place": node}) for node in alone)
    graph.add_edges_from((names[u], names[v], {"weight": u + v}) for u, v in rows)
    some = data.draw(st.lists(st.sampled_from([*graph, "absent"]), unique=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NetworkX warns each time that it caches a graph
        for name in OF_NODES:
            for arguments in ((), (some,), *((node,) for node in [*graph][:2])):
                found = answer(name, graph, *arguments, backend="edgemill")
                assert found == answer(name, graph, *arguments)
                if isinstance(found, dict) and name != "generalized_degree":
                    assert all(type(value) in (int, float) for value in found.values())
        for count_zeros in (True, False):
            assert answer("average_clustering", graph, count_zeros=count_zeros, backend="edgemill") == answer(
                "average_clustering", graph, count_zeros=count_zeros
            )
        assert answer("transitivity", graph, backend="edgemill") == answer("transitivity", graph)
        assert answer("core_number", graph, backend="edgemill") == answer("core_number", graph)
        if graph:
            found, expected = answer("k_core", graph, backend="edgemill"), answer("k_core", graph, backend="networkx")
            assert found is expected if isinstance(expected, type) else same_graph(found, expected)
        found, expected = answer("k_truss", graph, k, backend="edgemill"), answer("k_truss", graph, k)
        if isinstance(expected, type):
            assert found is expected is nx.NetworkXNotImplemented
            graph.remove_edges_from(list(nx.selfloop_edges(graph)))
            found, expected = answer("k_truss", graph, k, backend="edgemill"), answer("k_truss", graph, k)
        assert same_graph(found, expected)
        assert answer("core_number", graph, backend="edgemill") == answer("core_number", graph)


@given(
    rows=strategies.edge_lists(11),
    alone=st.sets(st.integers(0, 14)),
    kind=st.sampled_from([nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph]),
    weight=st.sampled_from([None, "weight", "cost"]),
    alpha=st.sampled_from([0.0, 0.37, 0.85, 0.99]),
    tol=st.sampled_from([1.3e-3, 1.7e-6, 1.9e-9]),
    max_iter=st.sampled_from([-1, 0, 1, 7, 100]),
    data=st.data(),
)
@settings(max_examples=examples(40))
def test_the_same_ranks(
    rows: list[tuple[int, int]],
    alone: set[int],
    kind: type[nx.Graph],
    weight: str | None,
    alpha: float,
    tol: float,
    max_iter: int,
    data: st.DataObject,
) -> None:
    """Equal iteration and convergence, with directions, parallel edges, loops, weights of 0 and missing weights."""
    names = data.draw(st.permutations([*range(12), "text", (1, 2), None.__class__]))
    attributes: list[dict[str, Any]] = [{}, {"weight": 0}, {"weight": 2.5}, {"weight": True}]
    graph = kind()
    graph.add_nodes_from(names[node] for node in alone)
    for u, v in rows:
        graph.add_edge(names[u], names[v], **data.draw(st.sampled_from(attributes)))
    options: dict[str, Any] = {"alpha": alpha, "tol": tol, "max_iter": max_iter, "weight": weight}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NetworkX warns each time that it caches a graph
        found = answer("pagerank", graph, **options, backend="edgemill")
        expected = answer("pagerank", graph, **options, backend="networkx")
    if isinstance(expected, type):
        assert found is expected is nx.PowerIterationFailedConvergence
    else:
        assert list(found) == list(expected)
        assert found == pytest.approx(expected, rel=1e-12, abs=1e-15)
        assert all(type(rank) is float for rank in found.values())
        assert not found or sum(found.values()) == pytest.approx(1, abs=1e-12)


@given(
    rows=strategies.edge_lists(9),
    alone=st.sets(st.integers(0, 10)),
    kind=st.sampled_from([nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph]),
)
@settings(max_examples=examples(40))
def test_the_same_centralities(rows: list[tuple[int, int]], alone: set[int], kind: type[nx.Graph]) -> None:
    """With directions, parallel edges, loops, and nodes that no path connects."""
    graph = kind(name="drawn")
    graph.add_nodes_from((f"n{node}" for node in alone), place=1)
    graph.add_edges_from((f"n{u}", f"n{v}") for u, v in rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NetworkX warns each time that it caches a graph
        for switch in (True, False):
            ways: list[tuple[str, dict[str, Any]]] = [("closeness_centrality", {"wf_improved": switch})]
            if not graph.is_multigraph():
                ways.append(("betweenness_centrality", {"normalized": switch}))
            for name, options in ways:
                found, expected = answer(name, graph, **options, backend="edgemill"), answer(name, graph, **options)
                assert list(found) == list(expected)
                assert found == pytest.approx(expected, rel=1e-12, abs=1e-15)
                assert all(type(value) is float for value in found.values())
        found, expected = answer("eccentricity", graph, backend="edgemill"), answer("eccentricity", graph)
        assert found == expected and (isinstance(found, type) or all(type(value) is int for value in found.values()))


@given(rows=strategies.edge_lists(11), pairs=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=20))
@settings(max_examples=examples(40))
def test_the_same_predictions(rows: list[tuple[int, int]], pairs: list[tuple[int, int]]) -> None:
    """Of some pairs, and of all without an edge; with loops, and pairs of a node and itself."""
    graph = nx.Graph()
    graph.add_nodes_from(f"n{node}" for node in range(9))
    graph.add_edges_from((f"n{u}", f"n{v}") for u, v in rows)
    named = [(f"n{u}", f"n{v}") for u, v in pairs]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NetworkX warns each time that it caches a graph
        for name in ("jaccard_coefficient", "adamic_adar_index"):
            for ebunch in (named, None):

                def values(backend: str, name: str = name, ebunch: Any = ebunch) -> Any:
                    try:
                        return list(getattr(nx, name)(graph, ebunch, backend=backend))
                    except (nx.NodeNotFound, ZeroDivisionError) as error:
                        return type(error)

                found, expected = values("edgemill"), values("networkx")
                if isinstance(expected, type):
                    assert found is expected
                    continue
                assert [row[:2] for row in found] == [row[:2] for row in expected]
                assert [row[2] for row in found] == pytest.approx([row[2] for row in expected], rel=1e-12)
                assert [type(row[2]) for row in found] == [type(row[2]) for row in expected]


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiDiGraph])
def test_the_same_hubs(kind: type[nx.Graph]) -> None:
    """With loops and parallel edges; and without edges, which NetworkX computes."""
    graph = kind(nx.barabasi_albert_graph(60, 3, seed=2))
    graph.add_edges_from([(5, 5), (1, 2), (1, 2)])
    for options in ({}, {"tol": 1e-12}):
        found = nx.hits(graph, **options, backend="edgemill")
        for own, theirs in zip(found, nx.hits(graph, **options, backend="networkx"), strict=True):
            assert list(own) == list(theirs) and own == pytest.approx(theirs, abs=1e-7)
    with pytest.raises(nx.PowerIterationFailedConvergence):
        nx.hits(graph, max_iter=0, backend="edgemill")
    assert nx.hits(kind(), backend="edgemill") == ({}, {})


def test_attributes_of_a_truss_are_its_own() -> None:
    graph = nx.complete_graph(4)
    graph.nodes[0]["colour"] = graph.edges[0, 1]["colour"] = "red"
    truss = nx.k_truss(graph, 4, backend="edgemill")
    truss.nodes[0]["colour"] = truss.edges[0, 1]["colour"] = "blue"
    assert graph.nodes[0]["colour"] == graph.edges[0, 1]["colour"] == "red"


def test_a_graph_that_changes() -> None:
    """NetworkX converts it anew."""
    graph = nx.complete_graph(4)
    assert nx.transitivity(graph, backend="edgemill") == 1
    graph.remove_edge(0, 1)
    assert nx.triangles(graph, backend="edgemill") == {0: 1, 1: 1, 2: 2, 3: 2}


@pytest.mark.parametrize(
    ("name", "graph", "options"),
    [
        ("clustering", nx.DiGraph([(0, 1)]), {}),
        ("transitivity", nx.MultiGraph([(0, 1)]), {}),
        ("average_clustering", nx.Graph([(0, 1)]), {"weight": "weight"}),
        ("core_number", nx.DiGraph([(0, 1)]), {}),
        ("betweenness_centrality", nx.MultiGraph([(0, 1)]), {}),
        ("betweenness_centrality", nx.Graph([(0, 1)]), {"k": 1}),
        ("betweenness_centrality", nx.Graph([(0, 1)]), {"endpoints": True}),
        ("betweenness_centrality", nx.Graph([(0, 1)]), {"weight": "weight"}),
        ("closeness_centrality", nx.Graph([(0, 1)]), {"u": 0}),
        ("closeness_centrality", nx.Graph([(0, 1)]), {"distance": "weight"}),
        ("eccentricity", nx.Graph([(0, 1)]), {"v": 0}),
        ("eccentricity", nx.Graph([(0, 1)]), {"sp": {0: {0: 0, 1: 1}, 1: {0: 1, 1: 0}}}),
        ("hits", nx.Graph([(0, 1)]), {"nstart": {0: 1, 1: 0}}),
        ("hits", nx.Graph([(0, 1)]), {"normalized": False}),
        ("hits", nx.Graph([(0, 1, {"weight": 2})]), {}),
        ("k_core", nx.DiGraph([(0, 1)]), {}),
        ("pagerank", nx.Graph([(0, 1)]), {"personalization": {0: 1}}),
        ("pagerank", nx.Graph([(0, 1)]), {"nstart": {0: 1, 1: 0}}),
        ("pagerank", nx.Graph([(0, 1)]), {"dangling": {0: 1}}),
        ("pagerank", nx.Graph([(0, 1, {"weight": -1})]), {}),
        ("pagerank", nx.Graph([(0, 1, {"weight": float("inf")})]), {}),
        ("pagerank", nx.Graph([(0, 1, {"cost": "much"})]), {"weight": "cost"}),
    ],
)
def test_what_is_left_to_networkx(name: str, graph: nx.Graph, options: dict[str, Any]) -> None:
    with pytest.raises(NotImplementedError):
        getattr(nx, name)(graph, **options, backend="edgemill")


@pytest.mark.parametrize("name", ["triangles", "k_truss", "generalized_degree"])
def test_what_networkx_refuses(name: str) -> None:
    arguments = (3,) if name == "k_truss" else ()
    with pytest.raises(nx.NetworkXNotImplemented):
        getattr(nx, name)(nx.DiGraph([(0, 1)]), *arguments, backend="edgemill")


def test_why_pagerank_is_left_to_networkx() -> None:
    graph = nx.path_graph(3)
    assert backend.can_run("pagerank", (graph, 0.9), {"tol": 1e-3}) is True
    assert "without personalization" in str(backend.can_run("pagerank", (graph, 0.9, {0: 1}), {}))
    graph.edges[0, 1]["weight"] = -2
    why = str(backend.can_run("pagerank", (NetworkXGraph(graph),), {}))
    assert all(fact in why for fact in ("finite and not negative", "'weight' of an edge"))
    assert backend.can_run("pagerank", (graph,), {"weight": None}) is True


def test_weights_that_change() -> None:
    """NetworkX caches the converted graph. Its weights are read anew."""
    graph = nx.path_graph(3)
    before = nx.pagerank(graph, backend="edgemill")
    graph.edges[0, 1]["weight"] = 9
    after = nx.pagerank(graph, backend="edgemill")
    assert before[0] == pytest.approx(before[2]) and after[0] > 2 * after[2]


@pytest.mark.parametrize("kind", [nx.Graph, nx.MultiGraph])
def test_communities(kind: type[nx.Graph]) -> None:
    """Of weighted graphs with loops and parallel edges, too; each level's are better than those before."""
    graph = kind(nx.karate_club_graph())
    graph.add_edges_from([(0, 1, {"weight": 3}), (4, 4), ("alone", "alone")])
    graph.add_node("nobody")
    levels = list(nx.community.leiden_partitions(graph, backend="edgemill"))
    values = [nx.community.modularity(graph, level) for level in levels]
    assert len(values) > 1 and values == sorted(values)
    found = nx.community.leiden_communities(graph, seed=7, backend="edgemill")
    assert found == levels[-1] and {"alone"} in found and {"nobody"} in found
    louvain = (nx.community.louvain_communities(graph, seed=seed) for seed in range(3))
    assert values[-1] >= max(nx.community.modularity(graph, own) for own in louvain) - 1e-12
    assert nx.community.leiden_communities(graph, max_level=1, backend="edgemill") == levels[0]
    assert len(nx.community.leiden_communities(graph, resolution=4, backend="edgemill")) > len(found)
    with pytest.raises(ValueError, match="max_level"):
        nx.community.leiden_communities(graph, max_level=0, backend="edgemill")


def test_communities_of_wrong_weights() -> None:
    """NetworkX has no Leiden of its own to leave them to."""
    with pytest.raises(NotImplementedError):
        nx.community.leiden_communities(nx.Graph([(0, 1, {"weight": -1})]), backend="edgemill")


def test_cores_that_take_many_steps() -> None:
    """NetworkX computes them."""
    graph = nx.path_graph(2 * backend.MOST_STEPS + 10)
    assert not NetworkXGraph(graph).run(Coreness(), most_steps=backend.MOST_STEPS).converged
    assert nx.core_number(graph, backend="edgemill") == dict.fromkeys(graph, 1)


def test_small_graphs_are_not_dispatched_automatically() -> None:
    small, large = nx.path_graph(5), nx.path_graph(backend.LEAST_EDGES + 1)
    assert "fewer than 2,000 edges" in str(backend.should_run("triangles", (small,), {}))
    assert backend.should_run("triangles", (), {"G": large}) is True
    assert backend.should_run("triangles", (NetworkXGraph(small),), {}) is True
    assert "without weight" in str(backend.can_run("clustering", (small, None, "weight"), {}))
    for pairs in ([(0, 1)], iter([(0, 1)])):
        assert "fewer than 50,000 pairs" in str(backend.should_run("jaccard_coefficient", (large, pairs), {}))
    assert backend.should_run("adamic_adar_index", (large,), {"ebunch": [(0, 1)] * backend.LEAST_PAIRS}) is True


def test_import_of_networkx_loads_no_edgemill() -> None:
    """Each import of NetworkX loads the backend's description, and nothing else of edgemill."""
    code = "import networkx, sys; print([name for name in sys.modules if name.split('.')[0] in ('numba', 'dask')])"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "[]"
