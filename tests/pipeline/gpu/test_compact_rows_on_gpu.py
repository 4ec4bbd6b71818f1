"""Whole runs on a GPU that has room only for compact rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from edgemill.pipeline import ClusterLost, Result, mine
from edgemill.pipeline.bounding.bounding import BoundingCheckpoint
from edgemill.pipeline.cluster.engine import Engine, Future
from edgemill.pipeline.plan.plan import PlanFacts

pytestmark = pytest.mark.gpu


@pytest.fixture
def no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limit the memory, so that only compact rows fit."""
    monkeypatch.setattr("edgemill.pipeline.plan.plan.GPU_EDGE_BYTES", 10**9)
    monkeypatch.setattr("edgemill.kernels.gpu.whole_graph.fitting_edges", lambda vertices, wanted, freed: 0)
    monkeypatch.setattr("edgemill.kernels.gpu.whole_graph.MOST_ROUNDS", 20)


def logged(result: Result, event: str) -> list[dict[str, Any]]:
    lines = map(json.loads, (result.path / "log.jsonl").read_text().splitlines())
    return [line for line in lines if line["event"] == event]


def test_equal_to_the_cpu(
    rows: Path, plain: Result, no_room: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("edgemill.pipeline.cluster.this_worker._PROGRESS_SECONDS", -1)
    compact = mine(rows, tmp_path / "compact", device="gpu")
    assert compact.edges.to_table() == plain.edges.to_table()
    assert compact.vertices.to_table() == plain.vertices.to_table()
    bounding = compact.manifest.bounding
    assert (bounding.method, bounding.compact_rows) == ("peel", True)
    assert bounding.steps == plain.manifest.bounding.steps
    left = [line["unsettled"] for line in logged(compact, "level")]
    assert len(left) > 1 and left == sorted(left, reverse=True)


@pytest.mark.parametrize("parts", [2, 5])
def test_rows_numbered_in_parts(
    rows: Path, plain: Result, no_room: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, parts: int
) -> None:
    """As if the GPU had no room for all rows at once, and int32 no numbers for all edges."""
    monkeypatch.setattr("edgemill.pipeline.plan.plan.GPU_ROW_BYTES", 10**9)
    monkeypatch.setattr(PlanFacts, "buckets", property(lambda plan: parts))
    for module in ("tasks.ingest.numbering", "tasks.ingest.ownership", "pipeline.plan.plan"):
        monkeypatch.setattr(f"edgemill.{module}.MAX_LOCAL_EDGES", int(0.7 * plain.manifest.counts.edges))
    moved = list[int]()

    def move_to_host(self: Engine, futures: Sequence[Future]) -> None:
        moved.append(len(futures))
        move(self, futures)

    move = Engine.move_to_host
    monkeypatch.setattr(Engine, "move_to_host", move_to_host)
    result = mine(rows, tmp_path / "parts", device="gpu")
    assert moved == 3 * [2 * parts]  # once rows are sorted, before triangles are counted, and before edges are removed
    assert len(list((result.path / "edges").iterdir())) % parts == 0
    for table in ("edges", "vertices", "dn_graphs"):
        assert getattr(result, table).to_table() == getattr(plain, table).to_table()
    assert result.manifest.bounding.compact_rows


def test_plain_rows_where_they_fit(rows: Path, plain: Result, tmp_path: Path) -> None:
    result = mine(rows, tmp_path / "out", device="gpu")
    assert not result.manifest.bounding.compact_rows
    assert result.edges.to_table() == plain.edges.to_table()


def test_a_limit_ends_with_intervals(rows: Path, plain: Result, no_room: None, tmp_path: Path) -> None:
    cut = mine(rows, tmp_path / "cut", device="gpu", bounding={"max_seconds": 1e-9})
    assert not cut.converged
    assert cut.manifest.bounding.compact_rows
    exact = plain.edges.to_table()["lambda"].to_pylist()
    table = cut.edges.to_table()
    ends = zip(table["lambda_low"].to_pylist(), exact, table["lambda_high"].to_pylist(), strict=True)
    assert all(low <= value <= high for low, value, high in ends)


@pytest.mark.parametrize("then", ["compact", "others"])
def test_the_next_run_goes_on(
    rows: Path, plain: Result, no_room: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, then: str
) -> None:
    """The next run resumes with compact rows, or with plain rows if they fit by then."""
    save, saved = BoundingCheckpoint.save, [0]

    def lose(self: BoundingCheckpoint, *state: Any) -> Any:
        kept = save(self, *state)
        saved[0] += 1
        if saved[0] == 2:
            raise ClusterLost("planted")
        return kept

    always = {"every_seconds": 0.0}
    with monkeypatch.context() as patch:
        patch.setattr(BoundingCheckpoint, "save", lose)
        with pytest.raises(ClusterLost, match="planted"):
            mine(rows, tmp_path / "out", device="gpu", checkpoint=always)
    if then == "others":
        monkeypatch.undo()
    result = mine(rows, tmp_path / "out", device="gpu", checkpoint=always)
    assert "restore" in [stage.stage for stage in result.manifest.stages]
    assert result.manifest.bounding.compact_rows is (then == "compact")
    assert result.edges.to_table() == plain.edges.to_table()
