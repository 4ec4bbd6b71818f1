"""Pairs of similar vertices in runs: the table by buckets and workers, kept, checked, restricted, and refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import edgemill
import runs
from edgemill.pipeline import Result, UsageError, mine
from edgemill.pipeline.programs import running
from edgemill.tasks.verify import program_checks
from edgemill.tasks.verify import tables as verify_tables
from edgemill.tasks.verify.arcs import arcs_of
from edgemill.tasks.verify.reading import Flaw
from edgemill.tasks.verify.result import verify
from in_process import call

GRAPH = nx.barabasi_albert_graph(120, 3, seed=4)
HOW: dict[str, Any] = {"device": "cpu", "output.report": False, "programs": ("similar_pairs",), "similar_pairs.k": 4}
SPLIT: dict[str, Any] = {"partitions": 3, "ingest": {"rows_per_block": 60}}


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    return runs.write_rows(tmp_path / "rows.parquet", [(f"n{u:03}", f"n{v:03}") for u, v in GRAPH.edges], pa.string())


def expected(k: int) -> list[tuple[str, int, str, float]]:
    """Of all pairs by NetworkX."""
    alike: dict[int, list[tuple[float, int]]] = {v: [] for v in GRAPH}
    for u, v, value in nx.jaccard_coefficient(GRAPH, [(u, v) for u in GRAPH for v in GRAPH if u < v]):
        if value:
            alike[u].append((-value, v))
            alike[v].append((-value, u))
    return [
        (f"n{v:03}", rank, f"n{u:03}", -value)
        for v in sorted(GRAPH)
        for rank, (value, u) in enumerate(sorted(alike[v])[:k], 1)
    ]


def pairs_of(result: Result) -> list[tuple[Any, ...]]:
    assert result.similar_pairs.schema.names == ["source", "rank", "target", "similarity"]
    return list(zip(*result.similar_pairs.to_table().to_pydict().values(), strict=True))


def checked(result: Result, rows: Path) -> None:
    checks = {check.name: check for check in verify(result.place.url, rows).checks}
    assert all(check.ok for check in checks.values()) and "computed again" in checks["similar_pairs"].detail
    assert "similar_pairs" in checks["programs"].detail


def test_the_pairs_of_networkx(rows: Path, tmp_path: Path) -> None:
    found = mine(rows, tmp_path / "out", **HOW)
    assert pairs_of(found) == expected(4)
    first = {row[0]: row[2:] for row in pairs_of(found) if row[1] == 1}
    for row in found.vertices.to_table().to_pylist():
        assert (row["most_similar"], row["highest_similarity"]) == first.get(row["id"], (None, 0.0))
    checked(found, rows)
    shown = call("show", str(tmp_path / "out")).output
    assert f"pairs {len(expected(4))}" in shown and "vertices left out 0" in shown


def test_buckets_lambda_and_checkpoints_change_nothing(
    rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgemill.pipeline.plan.plan.MIN_BUCKET_ROWS", 20)
    saved: dict[str, Any] = {"checkpoint": {"path": str(tmp_path / "kept"), "every_seconds": 0}}
    how: dict[str, Any] = HOW | SPLIT | saved | {"programs": ("lambda", "similar_pairs"), "output.row_group_rows": 50}

    def fail(*_: Any) -> Any:
        raise RuntimeError("on purpose")

    with monkeypatch.context() as patch:
        patch.setattr("edgemill.pipeline.programs.results.publish_similar", fail)
        with pytest.raises(RuntimeError, match="on purpose"):
            mine(rows, tmp_path / "out", **how)
    monkeypatch.setattr(running, "add_similar", fail)  # it is in the checkpoint
    found = mine(rows, tmp_path / "out", **how)
    assert len(list((tmp_path / "out/similar_pairs").iterdir())) > 1
    assert pairs_of(found) == expected(4)
    checked(found, rows)


def test_some_vertices_and_a_minimum(rows: Path, tmp_path: Path) -> None:
    ended = call(
        *("run", "--input", str(rows), "--output", str(tmp_path / "out"), "--programs", "similar_pairs"),
        *("--device", "cpu", "--set", "output.report=false", "--set", "similar_pairs.of=n007,n100"),
        *("--set", "similar_pairs.minimum=0.2", "--set", "similar_pairs.k=4"),
    )
    assert ended.exit_code == 0, ended.output
    found = Result(tmp_path / "out")
    assert pairs_of(found) == [row for row in expected(4) if row[0] in ("n007", "n100") and row[3] >= 0.2]
    checked(found, rows)


@pytest.mark.parametrize("measure", ["jaccard", "overlap_coefficient", "cosine"])
def test_weights_in_both_directions_add_up(tmp_path: Path, measure: str) -> None:
    random = np.random.default_rng(1)
    ends = np.array([*GRAPH.edges, *((v, u) for u, v in list(GRAPH.edges)[:90])])
    table = pa.table({"src": ends[:, 0], "dst": ends[:, 1], "weight": random.random(len(ends))})
    pq.write_table(table, tmp_path / "rows.parquet")
    weights = {"directed": True, "weight_column": "weight", "similar_pairs.weighted": True}
    found = mine(tmp_path / "rows.parquet", tmp_path / "out", **HOW | weights | {"similar_pairs.measure": measure})
    checked(found, tmp_path / "rows.parquet")
    summed = np.zeros((120, 120))
    np.add.at(summed, (ends[:, 0], ends[:, 1]), table["weight"].to_numpy())
    summed += summed.T
    for source, _, target, similarity in pairs_of(found)[::7]:
        one, other = summed[source], summed[target]
        least = np.minimum(one, other).sum()
        cosine = one @ other / np.sqrt((one @ one) * (other @ other))
        known = {"jaccard": least / np.maximum(one, other).sum(), "cosine": cosine}
        known["overlap_coefficient"] = least / min(one.sum(), other.sum())
        assert similarity == pytest.approx(known[measure], rel=1e-12)


def test_vertices_that_are_left_out_are_told(rows: Path, tmp_path: Path) -> None:
    found = mine(rows, tmp_path / "out", **HOW | {"similar_pairs.most_neighbours": 9})
    left = sum(degree > 9 for _, degree in GRAPH.degree())
    assert found.manifest.programs[0].facts["vertices_left_out"] == left > 0
    assert f"vertices left out {left}" in call("show", str(tmp_path / "out")).output
    checked(found, rows)


def test_too_much_work_is_refused(rows: Path, tmp_path: Path) -> None:
    ended = call(
        *("run", "--input", str(rows), "--output", str(tmp_path / "out"), "--programs", "similar_pairs"),
        *("--device", "cpu", "--set", "similar_pairs.most_wedges=900"),
    )
    assert ended.exit_code == 2 and "similar_pairs.most_neighbours=" in ended.output
    assert not (tmp_path / "out").exists()


def test_wrong_rows_are_found(rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = mine(rows, tmp_path / "out", **HOW | {"programs": ("lambda", "similar_pairs")})
    manifest = verify_tables.read_manifest(result.place)
    vertices = verify_tables.read_vertices(result.place, manifest)
    edges = verify_tables.read_edges(result.place, "src", "dst", vertices, manifest)
    good = pq.read_table(tmp_path / "out/similar_pairs")

    def changed(at: int, **values: Any) -> pa.Table:
        lists = good.to_pydict()
        for name, value in values.items():
            lists[name][at] = value
        return pa.table(lists, good.schema)

    def check(table: pa.Table) -> tuple[str, bool]:
        monkeypatch.setattr(program_checks, "read_file", lambda *_: table)
        return program_checks.check_similar_pairs(result.place, manifest, edges, vertices, None)

    assert check(good) == (f"{len(good):,} pairs; those of 120 vertices computed again", True)
    for table, message in (
        (changed(0, similarity=0.999), "other similarities"),
        (changed(0, rank=2), "ranks that are not 1"),
        (changed(0, target="nobody"), "unknown ids"),
        (changed(0, target=good["source"][0].as_py()), "of one vertex"),
        (good.slice(0, len(good) - 1), "more vertices are similar"),
        (good.take([1, 0, *range(2, len(good))]), "ranks that are not"),
    ):
        with pytest.raises(Flaw, match=message):
            check(table)
    record = manifest["programs"][0]
    best = vertices.added["most_similar"].to_pylist()
    added = {**vertices.added, "most_similar": pa.array([best[1], *best[1:]], vertices.added["most_similar"].type)}
    with pytest.raises(Flaw, match="has the most_similar"):
        program_checks.check_most_similar(arcs_of(edges), replace(vertices, added=added), record)


def test_from_python_and_what_has_no_pairs(rows: Path, tmp_path: Path) -> None:
    found = edgemill.similar_pairs(GRAPH, k=2, of=[5], device="cpu").to_pandas()
    assert found["target"].tolist() == [int(row[2][1:]) for row in expected(2) if row[0] == "n005"]
    plain = mine(rows, tmp_path / "plain", **HOW | {"programs": ("coreness",)})
    with pytest.raises(UsageError, match=r"plain has no table similar_pairs: run again with programs="):
        _ = plain.similar_pairs


def test_an_update_finds_them_from_nothing(rows: Path, tmp_path: Path) -> None:
    how: dict[str, Any] = HOW | {"programs": ("lambda", "similar_pairs")}
    first = mine(rows, tmp_path / "first", **how)
    ends = [*((f"n{u:03}", f"n{v:03}") for u, v in GRAPH.edges), ("n001", "n119")]
    more = runs.write_rows(tmp_path / "more.parquet", ends, pa.string())
    second = mine(more, tmp_path / "second", **how | {"nightly.previous": first.place.url})
    assert pairs_of(second) == pairs_of(mine(more, tmp_path / "whole", **HOW)) != pairs_of(first)
    checked(second, more)
