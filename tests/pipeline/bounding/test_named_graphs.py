"""Graphs with a known λ."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations, pairwise, product
from pathlib import Path
from typing import Any

import pytest

import runs
from edgemill.pipeline import Result

Mine = Callable[..., Result]
Way = tuple[int, dict[str, Any]]
WAYS: list[Way] = [
    (1, {"partitions": 1}),
    (3, {"partitions": 3}),
    (1, {"method": "band"}),
    (1, {"method": "fixpoint"}),
    (1, {"method": "fixpoint", "bounding.operator": "tridn"}),
]
"""Shards or 1, and how λ is found: alone, by shards, and by the methods for study."""


def clique(size: int) -> list[runs.Edge]:
    return list(combinations(range(size), 2))


FAMILIES: dict[str, tuple[list[runs.Edge], int]] = {
    "one edge": ([(7, 3)], 0),
    "triangle": (clique(3), 1),
    "clique of 4": (clique(4), 2),
    "clique of 9": (clique(9), 7),
    "two cliques that share a vertex": (clique(5) + [(u + 4, v + 4) for u, v in clique(5)], 3),
    "strip of triangles": ([*pairwise(range(30)), *zip(range(28), range(2, 30), strict=True)], 1),
    "star": ([(0, leaf) for leaf in range(1, 20)], 0),
    "bipartite": (list(product(range(5), range(5, 12))), 0),
    "ring": ([*pairwise(range(9)), (0, 8)], 0),
}


QUICK = ("two cliques that share a vertex", "strip of triangles")
"""Families whose λ is found in every way each time."""


def cases() -> Iterator[object]:
    for family, way in product(FAMILIES, WAYS):
        marks = [] if family in QUICK or way == WAYS[0] else [pytest.mark.slow]
        yield pytest.param(family, way, id=f"{family}-{way}", marks=marks)


@pytest.mark.parametrize(("family", "way"), list(cases()))
def test_lambda_of_families(tmp_path: Path, mined: Mine, family: str, way: Way) -> None:
    (rows, lam), (partitions, how) = FAMILIES[family], way
    result = mined(runs.write_rows(tmp_path / "rows.parquet", rows), **how)
    assert runs.column(result, "lambda") == {(min(edge), max(edge)): lam for edge in rows}
    assert set(runs.vertex_column(result, "lambda").values()) == {lam}
    assert result.manifest.lam.histogram == [(lam, len(rows))]
    shards = result.manifest.bounding.shards
    found = len(result.manifest.partitions) if shards is None else shards.shards
    assert (found, shards is not None) == (partitions, partitions == 3)


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize(
    "rows",
    [pytest.param([], marks=pytest.mark.slow), [(5, 5), (-2, -2), (5, 5)]],
    ids=["no rows", "self-loops only"],
)
def test_no_edges(tmp_path: Path, mined: Mine, rows: list[runs.Edge], way: Way) -> None:
    result = mined(runs.write_rows(tmp_path / "rows.parquet", rows), **way[1])
    vertices = sorted({u for u, _ in rows})
    assert result.edges.to_table().column_names == ["src", "dst", *runs.EDGE_COLUMNS]
    assert result.edges.count_rows() == 0
    assert runs.vertex_column(result, "lambda") == dict.fromkeys(vertices, 0)
    assert runs.vertex_column(result, "degree") == dict.fromkeys(vertices, 0)
    counts, lam = result.manifest.counts, result.manifest.lam
    assert (counts.rows, counts.self_loops, counts.edges, counts.vertices) == (len(rows), len(rows), 0, len(vertices))
    assert (lam.max, lam.sum, lam.histogram, result.converged) == (0, 0, [], True)
