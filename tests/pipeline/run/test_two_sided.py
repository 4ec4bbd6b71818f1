"""Runs by butterflies: tables, queries and `verify` of a graph with two sides, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.graphs.bitruss import bitruss_numbers, butterflies_of
from tests.support.graphs.examples import examples

from edgemill.pipeline import Result, UsageError, mine
from edgemill.pipeline.compare.diff import diff
from edgemill.pipeline.queries.groups import find_dn_graph, groups_of, members_of
from edgemill.pipeline.queries.trusses import ktruss
from edgemill.tasks.errors import InputError
from edgemill.tasks.generate import generate
from edgemill.tasks.verify.result import verify
from in_process import call

HOW: dict[str, Any] = {"two_sided": True, "output.report": False}
PLAIN: dict[str, Any] = {"output.report": False}
RING = [(user, page) for user in (7, 8, 9) for page in ("a", "b", "c", "d")]
OTHERS = [(7, "x"), (1, "x"), (1, "y"), (2, "x"), (2, "y"), (3, "a")]


def table(rows: list[tuple[int, str]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["user", "page"])


@pytest.fixture(scope="module")
def mined(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """A ring of three users and four pages, a pair of users with two pages, and two rows more; with a report."""
    folder = tmp_path_factory.mktemp("two_sided")
    table(RING + OTHERS).sample(frac=1, random_state=1).to_csv(folder / "visits.csv", index=False)
    return mine(folder / "visits.csv", folder / "out", two_sided=True)


def test_tables(mined: Result) -> None:
    """The types of ids differ in the input, and both sides get the name of their column."""
    edges = mined.edges.to_table()
    assert edges.column_names == ["page", "user", "support", "lambda"]
    named = [(int(row["user"][5:]), row["page"][5:]) for row in edges.to_pylist()]
    assert dict(zip(named, edges["support"].to_pylist(), strict=True)) == butterflies_of(RING + OTHERS)
    assert dict(zip(named, edges["lambda"].to_pylist(), strict=True)) == bitruss_numbers(RING + OTHERS)
    vertices = mined.vertices.to_table()
    assert vertices.column_names == ["id", "side", "degree", "butterflies", "lambda", "component"]
    assert all(row["id"].startswith(f"{row['side']}:") for row in vertices.to_pylist())
    ring, pair = mined.dn_graphs.to_table().sort_by([("lambda", "descending")]).to_pylist()
    assert (ring["lambda"], ring["vertices"], ring["left_vertices"], ring["butterflies"]) == (6, 7, 4, 18)
    assert (pair["lambda"], pair["edges"], pair["density"], pair["butterflies"]) == (1, 4, 1.0, 1)
    sides = mined.dn_graph_members.to_table().group_by("side").aggregate([("vertex", "count")]).to_pylist()
    assert {row["side"]: row["vertex_count"] for row in sides} == {"page": 6, "user": 5}


def test_manifest_and_report(mined: Result) -> None:
    manifest = mined.manifest
    assert (manifest.format_version, manifest.measure, manifest.input.two_sided) == (2, "butterflies", True)
    assert manifest.counts.triangles is None
    assert manifest.counts.butterflies == sum(butterflies_of(RING + OTHERS).values()) / 4
    report = Path(mined.place.url, "report.html").read_text()
    before, _ = report.split("Distribution of λ</h2>", 1)
    assert "every edge is in at least 5 butterflies" in before and "triangles" not in before.split("<body", 1)[-1]


def test_queries(mined: Result) -> None:
    ring = groups_of(mined, "user:8")[0]
    assert (ring.k, ring.dn_graph, ring.density) == (6, True, None)
    members = members_of(mined, ring)
    assert members.column_names[:4] == ["id", "degree_inside", "side", "degree"]
    assert set(members["id"].to_pylist()) == {f"user:{u}" for u in (7, 8, 9)} | {f"page:{p}" for p in "abcd"}
    assert find_dn_graph(mined, ring.component).vertices == 7
    for words in (["of", "user:8"], ["top"], ["show"], ["members", str(ring.component)]):
        told = call(words[0], mined.place.url, *words[1:])
        assert told.exit_code == 0 and ("butterflies" in told.stdout or words[0] == "of"), told.stderr
    with pytest.raises(UsageError, match="butterflies"):
        ktruss(mined, 4)
    with pytest.raises(UsageError, match="ids begin with the name of their column: page:… or user:…"):
        groups_of(mined, "8")


def test_verify_by_definition(mined: Result, tmp_path: Path) -> None:
    report = verify(mined.place, Path(mined.place.url).parent / "visits.csv")
    assert report.ok, [check for check in report.checks if not check.ok]
    assert {"butterflies", "sides", "groups", "input"} <= {check.name for check in report.checks}


@pytest.mark.parametrize("change", [1, -1])
def test_verify_sees_a_wrong_lambda(tmp_path: Path, change: int) -> None:
    """Certificates are of the bounds, so a wrong λ is found though supports are right."""
    from edgemill.tasks.verify.bounds import Simple, not_falling, survey

    source, target = (np.array(ends) for ends in zip(*sorted((u, 10 + ord(p) - 97) for u, p in RING), strict=True))
    graph = Simple(source, target, 40, two_sided=True)
    right = np.full(12, 6, np.int32)
    support, (backing,) = survey(graph, [right])
    assert (support == 6).all() and (backing.count == 6).all() and not not_falling(graph, right, backing).size
    wrong = right + np.int32(change)
    _, (backing,) = survey(graph, [wrong])
    assert (backing.count < wrong).all() if change > 0 else not_falling(graph, wrong, backing).size == 12


@settings(max_examples=examples(10, 6), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=30))
def test_brute_force_with_equal_ids_on_both_sides(rows: list[tuple[int, int]]) -> None:
    """Rows repeat and come in any order, and the same number on both sides is two vertices."""
    frame = pd.DataFrame(rows, columns=["a", "b"])
    with mine(frame, **HOW) as result:
        edges = result.edges.to_table().to_pylist()
        found = {(int(row["a"][2:]), int(row["b"][2:])): row["lambda"] for row in edges}
        assert found == bitruss_numbers(rows)
        assert result.manifest.counts.vertices == len({a for a, _ in rows}) + len({b for _, b in rows})
        assert verify(result.place).ok


def test_planted_groups(tmp_path: Path) -> None:
    generate("two-sided", tmp_path / "in", 2, 1, left=400, right=300, edges=500, groups=3, group_left=5, group_right=8)
    result = mine(tmp_path / "in", tmp_path / "out", **HOW)
    graphs = result.dn_graphs.to_table().to_pylist()
    dense = [graph for graph in graphs if graph["lambda"] >= 28]
    assert len(dense) == 3 and all(graph["left_vertices"] in (5, 8) for graph in dense)
    assert verify(result.place, tmp_path / "in").ok


def test_a_table_without_butterflies(tmp_path: Path) -> None:
    result = mine(table([(1, "a"), (2, "a"), (3, "b")]), tmp_path / "out", **HOW)
    assert (result.manifest.counts.butterflies, result.manifest.lam.max, len(result.dn_graphs)) == (0, 0, 0)
    assert verify(result.place).ok


def test_a_plain_run_of_such_a_table_names_the_option(tmp_path: Path) -> None:
    result = mine(table(RING), tmp_path / "out", bipartite="prefix", **PLAIN)
    assert any("--two-sided" in note for note in result.manifest.input.notes)


@pytest.mark.parametrize(
    "unfit",
    [
        {"device": "gpu"},
        {"workers": 2},
        {"partitions": 2},
        {"method": "band"},
        {"max_seconds": 5.0},
        {"directed": True},
        {"bipartite": "refuse"},
        {"programs": "lambda,similarity"},
    ],
)
def test_settings_that_do_not_fit(tmp_path: Path, unfit: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        mine(table(RING), tmp_path / "out", **HOW, **unfit)


def test_programs_of_vertices_run_beside(tmp_path: Path) -> None:
    result = mine(table(RING + OTHERS), tmp_path / "out", programs="lambda,components,pagerank", **HOW)
    assert {"components", "pagerank"} & set(result.vertices.schema.names) and verify(result.place).ok


def test_results_of_both_kinds_are_not_compared(mined: Result, tmp_path: Path) -> None:
    file = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"page": [f"page:{p}" for _, p in RING], "user": [f"user:{u}" for u, _ in RING]}), file)
    plain = mine(file, tmp_path / "plain", **PLAIN)
    for old, new in ((mined, plain), (plain, mined)):
        with pytest.raises(UsageError, match=r"triangles|butterflies"):
            diff(old, new)
    with pytest.raises(InputError, match="butterflies"):
        mine(file, tmp_path / "next", previous=mined.place.url, **PLAIN)
    assert diff(mined, mined).edges is not None
    told = call("update", mined.place.url, "--insert", file, "--output", tmp_path / "updated")
    assert told.exit_code == 2 and "butterflies" in told.stderr
