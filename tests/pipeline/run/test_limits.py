"""A run that a limit ends says so, and every edge has an interval that holds its λ; never a `lambda`."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

import oracles
import runs
from edgemill.pipeline import Result
from edgemill.tasks.verify.result import verify
from in_process import call

Mine = Callable[..., Result]

CLIQUES = [clique for first in range(0, 24, 3) for clique in combinations(range(first, first + 5 + first // 4), 2)]
"""Overlapping cliques of rising size: many values of λ, so that one iteration does not do."""


def check(result: Result) -> None:
    expected = oracles.networkx_lambda(CLIQUES)
    low, high = runs.column(result, "lambda_low"), runs.column(result, "lambda_high")
    assert low.keys() == high.keys() == expected.keys()
    assert all(low[edge] <= lam <= high[edge] for edge, lam in expected.items())
    assert runs.column(result, "support") == oracles.brute_force_support(CLIQUES)
    of_vertices = oracles.vertex_lambda(expected)
    vertex_low, vertex_high = (runs.vertex_column(result, f"lambda_{end}") for end in ("low", "high"))
    assert all(vertex_low[vertex] <= lam <= vertex_high[vertex] for vertex, lam in of_vertices.items())
    assert "lambda" not in {*result.edges.schema.names, *result.vertices.schema.names}
    manifest = result.manifest
    assert not result.converged
    assert manifest.unsettled == sum(low[edge] < high[edge] for edge in low) > 0
    assert manifest.lam.sum == sum(low.values())
    assert manifest.lambda_high is not None
    assert manifest.lambda_high.sum == sum(high.values())
    report = verify(result.path)
    assert report.ok, report.checks


@pytest.mark.parametrize(
    "limit",
    [{"max_exchanges": 1}, {"max_seconds": 1e-9}],
    ids=str,
)
@pytest.mark.parametrize(
    "method",
    [
        {"method": "band"},
        {"method": "fixpoint"},
        pytest.param({"method": "fixpoint", "operator": "tridn"}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_intervals_hold_lambda(tmp_path: Path, mined: Mine, method: dict[str, Any], limit: dict[str, Any]) -> None:
    path = runs.write_rows(tmp_path / "rows.parquet", CLIQUES)
    result = mined(path, bounding=method | limit)
    assert result.manifest.bounding.exchanges == len(result.manifest.exchanges) == 1
    check(result)


@pytest.mark.parametrize("partitions", [1, 3])
def test_peeling_too(tmp_path: Path, mined: Mine, partitions: int) -> None:
    path = runs.write_rows(tmp_path / "rows.parquet", CLIQUES)
    check(mined(path, partitions=partitions, bounding={"method": "peel", "max_seconds": 1e-9}))


def test_a_limit_that_is_not_reached_changes_nothing(tmp_path: Path, mined: Mine) -> None:
    path = runs.write_rows(tmp_path / "rows.parquet", CLIQUES)
    result = mined(path, bounding={"method": "band", "max_exchanges": 10_000, "max_seconds": 1e6})
    assert (result.converged, result.manifest.unsettled, result.manifest.lambda_high) == (True, 0, None)
    assert runs.column(result, "lambda") == oracles.networkx_lambda(CLIQUES)


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("command", ["run", "plan"])
def test_peeling_makes_no_exchanges_to_limit(tmp_path: Path, command: str, partitions: int) -> None:
    path, out = runs.write_rows(tmp_path / "rows.parquet", CLIQUES), tmp_path / "out"
    arguments = [command, "--input", str(path), "--output", str(out), "--device", "cpu", "--max-exchanges", "9"]
    found = call(*arguments, "--partitions", str(partitions))
    assert (found.exit_code, out.exists()) == (2, False)
    assert "--max-exchanges" in found.stderr
    assert "--max-seconds" in found.stderr


@pytest.mark.parametrize(
    "limit",
    [["--method", "band", "--max-exchanges", "1"], ["--partitions", "3", "--max-seconds", "1e-9"]],
    ids=["iterations", "seconds"],
)
def test_the_command_exits_5(tmp_path: Path, limit: list[str]) -> None:
    path, out = runs.write_rows(tmp_path / "rows.parquet", CLIQUES), tmp_path / "out"
    arguments = ["run", "--input", str(path), "--output", str(out)]
    found = call(*arguments, *limit)
    result = Result(out)
    assert found.exit_code == 5
    assert f"{result.manifest.unsettled} edges are unsettled" in found.stderr
    assert all(fact in found.stderr for fact in (str(out), "lambda_low", "lambda_high"))
    assert "Traceback" not in found.stderr
    check(result)
