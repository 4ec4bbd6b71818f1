"""The most similar neighbours of vertices: by definition on drawn graphs, and by NetworkX in a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import networkx as nx
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import edgemill
import runs
from edgemill.tasks.programs.shipped.jaccard_top import JaccardTop
from edgemill.tasks.verify import tables as verify_tables
from edgemill.tasks.verify.reading import Flaw
from edgemill.tasks.verify.result import check_programs
from examples import examples
from vertex_programs import Drawn, graphs

KARATE = nx.karate_club_graph()


def by_definition(near: Mapping[Any, set[Any]], v: Any, k: int) -> tuple[float, Any]:
    """The mean of the k largest similarities of a vertex and its neighbours, and the most similar neighbour."""
    alike = sorted((-len(near[v] & near[u]) / len(near[v] | near[u]), u) for u in near[v])
    best = [-similarity for similarity, _ in alike[:k]]
    return (mean(best), alike[0][1]) if alike else (0.0, None)


def mean(values: list[float]) -> float:
    """Their sum, from left to right, over their number. `sum` adds floats more precisely since Python 3.12."""
    return reduce(add, values) / len(values)


@given(graphs(), st.integers(1, 4))
@settings(max_examples=examples(100))
def test_the_definition_on_drawn_graphs(graph: Drawn, k: int) -> None:
    """On one to three groups of vertices, which must agree in every bit."""
    found = edgemill.try_program(JaccardTop(k), graph.edges, directed=graph.directed, vertices=range(graph.vertices))
    near: dict[int, set[int]] = {v: set() for v in range(graph.vertices)}
    for u, v in graph.edges:
        if u != v:
            near[u].add(v)
            near[v].add(u)
    for v in near:
        assert (found["similarity"][v], found["neighbour"][v]) == by_definition(near, v, k)


@pytest.mark.parametrize("k", [1, 3])
def test_a_run(tmp_path: Path, k: int) -> None:
    """With weights in the input, which do not matter, and as a program of the user."""
    rows = runs.write_rows(tmp_path / "rows.parquet", [*KARATE.edges, (1, 0)])
    own = "alike=edgemill.tasks.programs.shipped:JaccardTop"
    how: dict[str, Any] = {"device": "cpu", "report": False, "jaccard_top.k": k, "alike.k": k}
    result = edgemill.mine(rows, tmp_path / "out", programs=("lambda", "jaccard_top"), program=own, **how)
    table = result.vertices.to_table().to_pydict()
    jaccard: dict[Any, dict[Any, float]] = {v: {} for v in KARATE}
    for u, v, value in nx.jaccard_coefficient(KARATE, KARATE.edges):
        jaccard[u][v] = jaccard[v][u] = value
    for v, found, neighbour in zip(table["id"], table["jaccard_top"], table["jaccard_top_neighbour"], strict=True):
        best = sorted(jaccard[v].values(), reverse=True)[:k]
        assert found == mean(best)
        assert neighbour == min(u for u, value in jaccard[v].items() if value == best[0])
    assert (table["alike_similarity"], table["alike_neighbour"]) == (
        table["jaccard_top"],
        table["jaccard_top_neighbour"],
    )
    assert runs.flaws(tmp_path / "out") == []


@pytest.mark.parametrize("k", [1, 3])
def test_verify_checks_it(tmp_path: Path, k: int) -> None:
    """The columns as they are, one of each changed, and a vertex without edges."""
    rows = runs.write_rows(tmp_path / "rows.parquet", [*KARATE.edges, (99, 99)])
    how: dict[str, Any] = {"device": "cpu", "report": False, "jaccard_top.k": k}
    result = edgemill.mine(rows, tmp_path / "out", programs=("lambda", "jaccard_top"), **how)
    manifest = verify_tables.read_manifest(result.place)
    vertices = verify_tables.read_vertices(result.place, manifest)
    edges = verify_tables.read_edges(result.place, "src", "dst", vertices, manifest)
    assert check_programs(manifest, edges, vertices) == ("as the edges say: jaccard_top", True)
    for column, wrong in (("jaccard_top", 0.125), ("jaccard_top_neighbour", 99)):
        values = vertices.added[column].to_pylist()
        values[7] = wrong
        changed = {**vertices.added, column: pa.array(values, vertices.added[column].type)}
        with pytest.raises(Flaw, match=f"vertex 7 has the {column} "):
            check_programs(manifest, edges, replace(vertices, added=changed))


def test_the_function_and_a_run_without_lambda(tmp_path: Path) -> None:
    found = edgemill.jaccard_top(KARATE, device="cpu").to_pandas()
    assert list(found.columns)[-2:] == ["jaccard_top", "jaccard_top_neighbour"]
    with pytest.raises(edgemill.UsageError, match="jaccard_top weighs"):
        edgemill.run(KARATE, tmp_path / "out", programs=["jaccard_top"], device="cpu")
