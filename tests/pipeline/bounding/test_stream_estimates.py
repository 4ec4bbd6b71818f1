"""A run with `bounding.operator=streamdn`: λ is exact, and the estimates beside it are told apart from it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest

import runs
from edgemill.pipeline import InputError, Result, UsageError, load_settings, mine
from edgemill.pipeline.bounding import on_copies
from edgemill.tasks.bound.intervals import Intervals
from edgemill.tasks.verify import tables as verify_tables
from edgemill.tasks.verify.reading import Flaw
from edgemill.tasks.verify.result import _estimate_error, verify
from in_process import call

GRAPH = nx.powerlaw_cluster_graph(120, 6, 0.8, seed=4)
HOW: dict[str, Any] = {"device": "cpu", "output.report": False, "method": "fixpoint"}
STREAM: dict[str, Any] = HOW | {"bounding.operator": "streamdn", "bounding.permutations": 64}


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return runs.write_rows(tmp_path_factory.mktemp("rows") / "rows.parquet", list(GRAPH.edges))


@pytest.fixture(scope="module")
def result(rows: Path, tmp_path_factory: pytest.TempPathFactory) -> Result:
    out = tmp_path_factory.mktemp("stream") / "out"
    return mine(rows, out, programs=("lambda", "similarity"), **STREAM)


def test_estimates_are_beside_lambda(result: Result, rows: Path, tmp_path: Path) -> None:
    plain = mine(rows, tmp_path / "plain", **HOW)
    table = result.edges.to_table()
    assert table.column_names[2:] == [*runs.EDGE_COLUMNS, "lambda_streamdn", "jaccard", "cosine"]
    assert table.select(plain.edges.schema.names).equals(plain.edges.to_table())
    again = mine(rows, tmp_path / "again", **STREAM)
    assert again.edges.to_table().equals(table.drop_columns(["jaccard", "cosine"]))
    record = result.manifest.bounding.estimates
    assert record is not None and record.error is not None and plain.manifest.bounding.estimates is None
    exact, found = (table[name].to_numpy() for name in ("lambda", "lambda_streamdn"))
    within = table["support"].to_numpy() > 0
    assert not found[~within].any() and (record.column, record.permutations) == ("lambda_streamdn", 64)
    assert record.error.exact == pytest.approx((exact == found)[within].mean(), abs=1e-6)
    assert 0 < record.error.mean < 1 and result.manifest.converged


def test_verify_and_show_tell_them_apart(result: Result) -> None:
    (check,) = (check for check in verify(result.place.url).checks if check.name == "estimate")
    assert check.ok and "lambda_streamdn" in check.detail
    shown = " ".join(call("show", result.place.url).output.split())
    assert all(fact in shown for fact in ("lambda_streamdn", "64"))
    manifest = verify_tables.read_manifest(result.place)
    vertices = verify_tables.read_vertices(result.place, manifest)
    edges = verify_tables.read_edges(result.place, "src", "dst", vertices, manifest)
    estimate = manifest["bounding"]["estimates"]
    estimate["error"]["below"] += 0.01
    with pytest.raises(Flaw, match=r"bounding\.estimates\.error\.below"):
        _estimate_error(estimate, edges)


def test_without_lambda_there_is_no_error(rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def wide(subgraph: Any, bounds: Any) -> Intervals:
        return Intervals(np.zeros_like(subgraph.support), subgraph.support)

    monkeypatch.setattr(on_copies, "fixpoint_intervals", wide)
    record = mine(rows, tmp_path / "out", **STREAM).manifest.bounding.estimates
    assert record is not None and record.error is None


def test_what_is_refused(tmp_path: Path) -> None:
    paths = {"input.path": "a", "output.path": "b", "bounding.operator": "streamdn"}
    with pytest.raises(UsageError, match=r"bounding\.operator=streamdn needs bounding\.method=fixpoint"):
        load_settings(None, paths)
    with pytest.raises(UsageError, match=r"=fixpoint.*partitioning\.count=2"):
        load_settings(None, paths | {"bounding.method": "fixpoint", "partitioning.count": 2})
    edges = pa.table({"lambda_streamdn": [1, 2], "dst": [2, 3]})
    ends: dict[str, Any] = {"source_column": "lambda_streamdn", "target_column": "dst"}
    with pytest.raises(InputError, match=r"'lambda_streamdn'.*ids"):
        mine(edges, tmp_path / "out", **STREAM, **ends)
