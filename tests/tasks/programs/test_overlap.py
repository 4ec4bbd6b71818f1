"""The overlap of the neighbours of both ends of edges: by definition, on drawn graphs and in a run."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from hypothesis import given, settings

import edgemill
import runs
from edgemill.tasks.programs.shipped.overlap import Overlap
from examples import examples
from vertex_programs import Drawn, graphs


def by_definition(edges: Iterable[tuple[int, int]]) -> dict[tuple[int, int], float | None]:
    """Shared neighbours over all other neighbours of an edge, smaller end first."""
    graph = nx.Graph(edge for edge in edges if edge[0] != edge[1])
    found: dict[tuple[int, int], float | None] = {}
    for u, v in graph.edges:
        near, other = set(graph[u]) - {v}, set(graph[v]) - {u}
        found[min(u, v), max(u, v)] = len(near & other) / len(near | other) if near | other else None
    return found


@given(graphs())
@settings(max_examples=examples(100))
def test_the_definition_on_drawn_graphs(graph: Drawn) -> None:
    found = edgemill.try_program(Overlap(), graph.edges, directed=graph.directed)["overlap"]
    assert {edge: None if value < 0 else value for edge, value in found.items()} == by_definition(graph.edges)


def test_a_run(tmp_path: Path) -> None:
    """Two cliques with a bridge between them, and a pair: 1 within the cliques but for the bridge's ends, and null."""
    edges = [(a, b) for start in (0, 10) for a in range(start, start + 4) for b in range(start, a)]
    edges += [(0, 10), (20, 21), (21, 20), (5, 5)]
    how: dict[str, Any] = {"device": "cpu", "report": True, "partitions": 2, "ingest": {"rows_per_block": 4}}
    rows = runs.write_rows(tmp_path / "rows.parquet", edges)
    result = edgemill.mine(rows, tmp_path / "out", programs=("lambda", "overlap"), **how)
    table = result.edges.to_table()
    found = dict(zip(zip(*table.to_pydict().values(), strict=True), table["overlap"].to_pylist(), strict=True))
    expected = by_definition(edges)
    assert {edge[:2]: value for edge, value in found.items()} == expected
    assert (expected[0, 10], expected[20, 21], expected[2, 3]) == (0, None, 1)
    assert table["overlap"].null_count == 1 and runs.flaws(tmp_path / "out") == []
    again = edgemill.overlap(rows, device="cpu").to_table()
    assert again["overlap"].equals(table["overlap"])
    with pytest.raises(edgemill.UsageError, match="program overlap"):
        edgemill.mine(rows, tmp_path / "other", programs=("overlap",), device="cpu")
