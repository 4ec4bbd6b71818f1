"""A column of the edges is one declaration, from which runs, updates, `verify` and files of groups take it."""

from __future__ import annotations

import csv
import io
from itertools import combinations
from operator import attrgetter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from edgemill.pipeline import Result, mine, update
from edgemill.tasks.publish import result_columns
from edgemill.tasks.publish.result_columns import EdgeResultColumn
from edgemill.tasks.verify.result import verify
from in_process import call
from runs import EDGE_COLUMNS

SPARE = EdgeResultColumn(
    "spare",
    "int32",
    "Triangles of the edge beyond those that its λ needs.",
    value=lambda edges: edges.support - edges.low,
    check=lambda edges: np.subtract(edges.support, edges.low),
)
EDGES = {*combinations(range(6), 2), *combinations(range(4, 9), 2)}


def rows(*edges: tuple[int, int]) -> pa.Table:
    return pa.table(list(zip(*sorted(edges), strict=True)), names=["src", "dst"])


@pytest.fixture(autouse=True)
def _declare(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_columns, "EDGES", (*result_columns.EDGES, SPARE))


def check(result: Result) -> None:
    """The column is there with the right values, and `verify` says so."""
    table = result.edges.to_table()
    assert table.column_names == ["src", "dst", *EDGE_COLUMNS, "spare"]
    spare = table["support"].to_numpy() - table["lambda"].to_numpy()
    assert spare.any() and table["spare"].to_numpy().tolist() == spare.tolist()
    checks = {own.name: own for own in verify(result.path).checks}
    assert checks["spare"].ok and all(own.ok for own in checks.values())


@pytest.mark.parametrize("partitions", [1, 3])
def test_runs_and_updates_write_it(tmp_path: Path, partitions: int) -> None:
    result = mine(rows(*EDGES), tmp_path / "out", partitions=partitions, device="cpu", report=False)
    check(result)
    night = tmp_path / "night"
    for edge in ((0, 6), (1, 7)):  # the first update is a full run, which saves what the second one starts from
        result = update(result, night / str(edge[0]), insert=rows(edge), device="cpu")
        check(result)


def test_files_of_groups_have_it(tmp_path: Path) -> None:
    result = mine(rows(*EDGES), tmp_path / "out", device="cpu", report=False)
    whole = result.hierarchy.to_table()["component"][0].as_py()
    shown = call("subgraph", str(result.path), "--component", str(whole)).stdout_bytes.decode()
    assert next(csv.reader(io.StringIO(shown))) == ["src", "dst", *EDGE_COLUMNS, "spare"]


def test_a_wrong_value_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = EdgeResultColumn(SPARE.name, SPARE.type, SPARE.meaning, value=attrgetter("support"), check=SPARE.check)
    with monkeypatch.context() as patch:
        patch.setattr(result_columns, "EDGES", (*result_columns.EDGES[:-1], wrong))
        result = mine(rows(*EDGES), tmp_path / "out", device="cpu", report=False)
    first = pq.read_table(result.path / "edges").filter(pa.compute.field("lambda") > 0).slice(0, 1).to_pylist()[0]
    (flaw,) = (own for own in verify(result.path).checks if not own.ok)
    assert flaw.name == "spare"
    assert f"({first['src']}, {first['dst']})" in flaw.detail and str(first["support"]) in flaw.detail
