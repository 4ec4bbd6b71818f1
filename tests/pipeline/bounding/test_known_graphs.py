"""λ of each edge of real graphs, from Parquet to Parquet: by peeling alone and in shards, and by the other methods.

The whole matrix, every graph of the catalogue by one partition, by 2, 3, 7 and 16 shards, by bands that are halved and
by fixpoint iterations:
`pytest -m "slow or not slow" tests/pipeline/bounding/test_known_graphs.py`
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from dense_answers import check_dense, dense_answers
from edgemill.pipeline import Result
from edgemill.tasks.verify.result import verify
from known_graphs import FACEBOOK, SKIP_REASON, KnownGraph, known_graph, known_graphs

Mine = Callable[..., Result]
METHODS = ("band", "fixpoint")
SHARDS = (2, 3, 7, 16)
LARGEST_QUICK = 120_000
"""Edges of graphs that are tried each time: larger graphs are for the whole matrix only."""
LARGEST_QUICK_IN_MANY = 110_000
"""Edges of graphs that are cut into partitions each time."""
LARGEST_QUICK_OTHERWISE = 60_000
"""Edges of graphs on which the other methods are tried each time."""
LARGEST_CHECKED = 200_000
"""Edges of graphs whose dense groups are found the other way too, each time."""
DN_GRAPHS = json.loads(FACEBOOK.with_name("dn_graphs.json").read_text())
"""Known answers by name of the graph: rows of the tables, sums over all DN-graphs, vertices of the largest."""


def matrix() -> Iterator[object]:
    """Every case; the quick ones are one partition for each graph, shards for each second, in turn, and another method
    for each fourth.
    """
    cases = [(1, "alone"), *((count, "shards") for count in SHARDS), *((1, method) for method in METHODS)]
    for turn, graph in enumerate(known_graphs()):
        quick = {(1, "alone")} if graph.edges <= LARGEST_QUICK else set()
        if turn % 2 and graph.edges <= LARGEST_QUICK_IN_MANY:
            quick.add((SHARDS[turn // 2 % len(SHARDS)], "shards"))
            if turn % 4 == 1 and graph.edges <= LARGEST_QUICK_OTHERWISE:
                quick.add((1, METHODS[turn // 4 % len(METHODS)]))
        for count, way in cases:
            marks = [] if (count, way) in quick else [pytest.mark.slow]
            yield pytest.param(graph, count, way, marks=marks, id=f"{graph.name}-{count}-{way}")


needs_catalogue = pytest.mark.skipif(SKIP_REASON is not None, reason=str(SKIP_REASON))


@needs_catalogue
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("graph", "count", "way"), list(matrix()))
def test_matrix(mined: Mine, graph: KnownGraph, count: int, way: str) -> None:
    check(mined, graph, count, way)


@needs_catalogue
@pytest.mark.timeout(3600)
@pytest.mark.slow
@pytest.mark.parametrize("count", [127, 128, 129, 130])
def test_about_128_shards(mined: Mine, count: int) -> None:
    check(mined, known_graph("facebook_combined"), count, "shards")


def check(mined: Mine, graph: KnownGraph, count: int, way: str) -> None:
    """`way` is alone, shards, or another method."""
    result = mined(graph.path, **({"method": way} if way in METHODS else {"partitions": count}))
    counts, lam = result.manifest.counts, result.manifest.lam
    assert (counts.rows, counts.self_loops, counts.duplicates) == (graph.rows, graph.self_loops, graph.duplicates)
    assert (counts.edges, counts.vertices, counts.triangles) == (graph.edges, graph.vertices, graph.triangles)
    assert (lam.max, lam.sum) == (graph.lambda_max, graph.lambda_sum)
    shards = result.manifest.bounding.shards
    assert (result.converged, shards is not None) == (True, way == "shards")
    assert (len(result.manifest.partitions) if shards is None else shards.shards) == count
    check_groups(result, graph.name)
    if graph.lambda_path is not None:
        edges = result.edges.to_table()
        for name, expected in zip(("src", "dst", "lambda"), graph.lambda_table(), strict=True):
            np.testing.assert_array_equal(edges[name].to_numpy(), expected)


def check_groups(result: Result, name: str) -> None:
    """Compare with the table of DN-graphs, which dense_answers.py made from the catalogue's λ."""
    known, dense, graphs = DN_GRAPHS.get(name), result.manifest.dense, result.dn_graphs.to_table()
    if known is not None:
        assert dense is not None
        assert summary(dense.components, dense.roots, dense.dn_graphs, dense.members, graphs) == known
    if result.manifest.counts.edges <= LARGEST_CHECKED:
        check_dense(result)


def summary(components: int, roots: int, dn_graphs: int, members: int, graphs: pa.Table) -> dict[str, int]:
    """The row of the table for a graph."""
    sums = {f"dn_{name}": sum(graphs[name].to_pylist()) for name in ("edges", "triangles")}
    largest = max(graphs["vertices"].to_pylist(), default=0)
    return {
        "components": components,
        "roots": roots,
        "dn_graphs": dn_graphs,
        "members": members,
        **sums,
        "largest": largest,
    }


@needs_catalogue
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    "graph",
    [
        pytest.param(graph, id=graph.name, marks=[] if graph.edges <= LARGEST_CHECKED else [pytest.mark.slow])
        for graph in known_graphs(with_lambda=True)
    ],
)
def test_the_table_of_dn_graphs(graph: KnownGraph) -> None:
    """It equals the answer of dense_answers.py for the catalogue's λ."""
    source, target, level = graph.lambda_table()
    ids = np.unique(np.concatenate([source, target]))
    answers = dense_answers(np.searchsorted(ids, source), np.searchsorted(ids, target), level, len(ids))
    names = ("id", "lambda", "vertices", "edges", "triangles", "parent")
    graphs = pa.table({name: [row[place] for row in answers.dn_graphs] for place, name in enumerate(names)})
    roots = sum(row[2] is None for row in answers.hierarchy)
    counts = (len(answers.hierarchy), roots, len(answers.dn_graphs), len(answers.members))
    assert summary(*counts, graphs) == DN_GRAPHS[graph.name]


def test_the_graph_kept_with_the_tests(mined: Mine, pytestconfig: pytest.Config) -> None:
    path: Path = pytestconfig.rootpath / "tests/graphs/facebook_combined.parquet"
    result = mined(path, partitions=3)
    counts, lam = result.manifest.counts, result.manifest.lam
    assert (counts.edges, counts.vertices, counts.triangles) == (88_234, 4_039, 1_612_010)
    assert (lam.max, lam.sum, lam.histogram[0], lam.histogram[-1]) == (95, 2_966_870, (0, 78), (95, 8_987))
    report = verify(result.path, input_path=str(path))
    assert report.ok, report.checks
