"""The command `estimate` and its function, and the seconds that a plan predicts."""

from __future__ import annotations

import json
from pathlib import Path

import networkx as nx
import pytest

import runs
from edgemill.pipeline import GraphFigures, UsageError, estimate, make_plan, mine
from edgemill.pipeline.settings.sources import load_settings
from in_process import call
from known_graphs import FACEBOOK


@pytest.fixture(scope="module")
def figures() -> GraphFigures:
    return estimate(FACEBOOK, device="cpu", estimate={"samples": 20_000, "seed": 7})


def test_figures(figures: GraphFigures) -> None:
    assert (figures.rows, figures.edges, figures.vertices) == (88_234, 88_234, 4_039)
    assert (figures.samples, figures.seed, figures.exact) == (20_000, 7, False)
    assert figures.triangles.low <= 1_612_010 <= figures.triangles.high
    assert figures.average_clustering.low <= 0.6055 <= figures.average_clustering.high
    assert figures.transitivity.low <= 0.5192 <= figures.transitivity.high
    assert figures.degeneracy == 115 and figures.lambda_low <= 95 <= figures.lambda_high == 114
    assert figures.seconds is not None and 1 < figures.seconds < 10


def test_frames_and_small_graphs_are_exact() -> None:
    graph = nx.disjoint_union(nx.complete_graph(5), nx.path_graph(4))
    found = estimate(graph, device="cpu")
    assert found.exact and found.triangles.low == found.triangles.high == pytest.approx(10)
    assert (found.vertices, found.edges, found.clique, found.lambda_low, found.lambda_high) == (9, 13, 5, 3, 3)
    with pytest.raises(UsageError, match="estimate needs"):
        estimate()


def test_command(tmp_path: Path) -> None:
    rows = tmp_path / "rows.parquet"
    runs.write_rows(rows, [(0, 1), (1, 2), (2, 0), (2, 3)])
    told = call("estimate", "--input", str(rows), "--device", "cpu")
    assert told.exit_code == 0, told.output
    assert "triangles    1\n" in told.stdout and "λ max        1: a clique of 3" in told.stdout
    document = call("estimate", "--input", str(rows), "--device", "cpu", "--json")
    figures = json.loads(document.stdout)
    assert (figures["wedges"], figures["exact"], figures["exit_code"]) == (5, True, 0)
    missing = call("estimate", "--input", str(tmp_path / "none.parquet"))
    assert missing.exit_code == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rows.parquet"]


def test_a_run_records_the_seconds_of_its_plan(tmp_path: Path) -> None:
    out = tmp_path / "out"
    settings = load_settings(None, {"input.path": str(FACEBOOK), "output.path": str(out), "cluster.device": "cpu"})
    plan = make_plan(settings)
    assert plan.graph.triangles == pytest.approx(1_612_010, rel=0.05)
    assert plan.seconds is not None and plan.seconds > 1
    result = mine(FACEBOOK, out, device="cpu", partitions=2, output={"report": True})
    expected = result.manifest.plan
    assert expected is not None and expected.triangles == plan.graph.triangles and expected.seconds is not None
    assert 0 < result.manifest.seconds_for_lambda <= result.manifest.seconds
    shown = call("show", str(out), "--detail").stdout
    assert "as predicted by the plan" in shown
    assert "seconds for λ" in (out / "report.html").read_text()
