"""Graphs with a known λ, and two on which the maximum of partial counts would be wrong."""

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
WAYS: list[Way] = [(1, {}), (3, {}), (3, {"method": "band"})]
"""Partitions, and how λ is found: alone, by shards, by bands."""
METHODS: list[dict[str, Any]] = [
    {"method": "band"},
    {"method": "fixpoint"},
    {"method": "fixpoint", "operator": "tridn"},
]


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
    result = mined(runs.write_rows(tmp_path / "rows.parquet", rows), partitions=partitions, **how)
    assert runs.column(result, "lambda") == {(min(edge), max(edge)): lam for edge in rows}
    assert set(runs.vertex_column(result, "lambda").values()) == {lam}
    assert result.manifest.lam.histogram == [(lam, len(rows))]
    shards = result.manifest.bounding.shards
    found = len(result.manifest.partitions) if shards is None else shards.shards
    assert (found, shards is not None) == (partitions, way == (3, {}))


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize(
    "rows",
    [pytest.param([], marks=pytest.mark.slow), [(5, 5), (-2, -2), (5, 5)]],
    ids=["no rows", "self-loops only"],
)
def test_no_edges(tmp_path: Path, mined: Mine, rows: list[runs.Edge], way: Way) -> None:
    result = mined(runs.write_rows(tmp_path / "rows.parquet", rows), partitions=way[0], **way[1])
    vertices = sorted({u for u, _ in rows})
    assert result.edges.to_table().column_names == ["src", "dst", "support", "lambda"]
    assert result.edges.count_rows() == 0
    assert runs.vertex_column(result, "lambda") == dict.fromkeys(vertices, 0)
    assert runs.vertex_column(result, "degree") == dict.fromkeys(vertices, 0)
    counts, lam = result.manifest.counts, result.manifest.lam
    assert (counts.rows, counts.self_loops, counts.edges, counts.vertices) == (len(rows), len(rows), 0, len(vertices))
    assert (lam.max, lam.sum, lam.histogram, result.converged) == (0, 0, [], True)


@pytest.mark.parametrize("bounding", [*METHODS[:2], pytest.param(METHODS[2], marks=pytest.mark.slow)], ids=str)
def test_a_triangle_over_three_partitions(tmp_path: Path, mined: Mine, bounding: dict[str, Any]) -> None:
    """No partition has the whole triangle: the maximum of the partial counts would be 0."""
    corners, loops = runs.planted_by_hash([0, 1, 2], 3)
    result = planted(tmp_path, mined, corners, loops, 3, bounding)
    assert set(runs.column(result, "support").values()) == set(runs.column(result, "lambda").values()) == {1}
    assert {p.cut for p in result.manifest.partitions} == {2, 1, 0}


@pytest.mark.parametrize(
    "bounding", [METHODS[0], pytest.param(METHODS[1], marks=pytest.mark.slow), METHODS[2]], ids=str
)
def test_four_vertices_over_two_partitions(tmp_path: Path, mined: Mine, bounding: dict[str, Any]) -> None:
    """u, w1 in one partition and v, w2 in the other: each side sees one of the two triangles of (u, v)."""
    corners, loops = runs.planted_by_hash([0, 0, 1, 1], 2)
    result = planted(tmp_path, mined, corners, loops, 2, bounding)
    assert set(runs.column(result, "support").values()) == set(runs.column(result, "lambda").values()) == {2}


def planted(
    folder: Path, mined: Mine, corners: list[int], loops: list[runs.Edge], partitions: int, bounding: dict[str, Any]
) -> Result:
    rows = [*loops, *combinations(corners, 2)]
    return mined(
        runs.write_rows(folder / "rows.parquet", rows),
        partitioning={"count": partitions, "method": "hash"},
        bounding=bounding,
    )
