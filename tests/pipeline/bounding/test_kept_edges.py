"""A run that ends before its graph is complete: the next run resumes from the saved edges."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import runs
from edgemill.pipeline import ClusterLost, Result, mine
from edgemill.pipeline.monitor.status import status_of
from edgemill.tasks.generate import generate

ALWAYS = {"every_seconds": 0.0}
BEFORE = [("partitioning.partition", "edges"), ("partitioning.triangulate", "owned")]
"""A stage, and what is kept when it starts."""


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    generate("rmat", str(tmp_path / "rows"), files=3, seed=4, scale=8, edge_factor=8)
    return tmp_path / "rows"


def run(rows: Path, out: Path, **settings: Any) -> Result:
    given: dict[str, Any] = {"device": "cpu", "method": "band", "output.report": False}
    return mine(rows, out, **(given | settings))


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Runs, and loses the cluster when a stage starts; gives the notes of the error."""

    def lose(*_: object) -> None:
        raise ClusterLost("planted")

    def run_until(stage: str, rows: Path, out: Path, **settings: Any) -> list[str]:
        with monkeypatch.context() as patch:
            patch.setattr(f"edgemill.pipeline.stages.{stage}", lose)
            with pytest.raises(ClusterLost, match="planted") as caught:
                run(rows, out, **({"checkpoint": ALWAYS} | settings))
        return caught.value.__notes__

    return run_until


def place(out: Path) -> Path:
    return out.with_name(f".{out.name}.edgemill.checkpoint")


def stages(result: Result) -> list[str]:
    return [stage.stage for stage in result.manifest.stages]


def refusals(result: Result) -> list[str]:
    lines = map(json.loads, (result.path / "log.jsonl").read_text().splitlines())
    return [line["reason"] for line in lines if line["event"] == "checkpoint_refused"]


def assert_same(result: Result, rows: Path, plain: Path) -> None:
    other = run(rows, plain)
    assert result.edges.to_table() == other.edges.to_table()
    assert result.vertices.to_table() == other.vertices.to_table()
    assert result.manifest.counts == other.manifest.counts
    assert result.manifest.partitions == other.manifest.partitions


@pytest.mark.parametrize(("stage", "kept"), [pytest.param(*BEFORE[0], marks=pytest.mark.slow), BEFORE[1]])
def test_the_next_run_goes_on(
    ended: Callable[..., list[str]], rows: Path, tmp_path: Path, stage: str, kept: str
) -> None:
    out = tmp_path / "out"
    assert any(note.startswith(f"the checkpoint is in {place(out)}: ") for note in ended(stage, rows, out))
    files = sorted(entry.name for entry in place(out).iterdir())
    assert len(files) == 2  # one takes the place of the other
    assert files[0].startswith(f"{kept}-")
    assert files[1] == f"{kept}.json"
    found = status_of(out).checkpoint
    assert found is not None
    assert found.what == "edges"
    result = run(rows, out)
    then = ["partition", "triangulate"] if kept == "edges" else ["triangulate"]
    assert stages(result) == ["compile", "restore", *then, "bound", "extract", "publish"]
    assert refusals(result) == []
    assert_same(result, rows, tmp_path / "plain")
    assert not place(out).exists()


@pytest.mark.slow
@pytest.mark.parametrize(("stage", "kept"), BEFORE)
def test_string_ids_on_worker_processes(
    ended: Callable[..., list[str]], rows: Path, tmp_path: Path, stage: str, kept: str
) -> None:
    table = pa.concat_tables([pq.read_table(path) for path in sorted(rows.glob("*.parquet"))])
    names = {name: pc.binary_join_element_wise("é", table[name].cast(pa.string()), "") for name in table.column_names}
    pq.write_table(pa.table(names), tmp_path / "named.parquet")
    with runs.two_processes() as client:
        ended(stage, tmp_path / "named.parquet", tmp_path / "out", client=client)
        result = run(tmp_path / "named.parquet", tmp_path / "out", client=client)
    assert stages(result)[1] == "restore"
    assert "read" not in stages(result)
    assert_same(result, tmp_path / "named.parquet", tmp_path / "plain")


@pytest.mark.slow
def test_a_run_that_keeps_no_more(ended: Callable[..., list[str]], rows: Path, tmp_path: Path) -> None:
    """It reports that: a repeated run with as little time would end in the same way."""
    out = tmp_path / "out"
    ended("partitioning.partition", rows, out)
    notes = ended("partitioning.triangulate", rows, out, checkpoint={"every_seconds": 300.0})
    told = f"the checkpoint of an earlier run is in {place(out)}: the same command resumes from it"
    assert told in notes
    assert not any("the checkpoint is in" in note for note in notes)
    notes = ended("partitioning.triangulate", rows, out)
    assert any(note.startswith(f"the checkpoint is in {place(out)}: ") for note in notes)
    assert "partition" not in stages(run(rows, out))


def test_a_run_that_keeps_nothing(ended: Callable[..., list[str]], rows: Path, tmp_path: Path) -> None:
    notes = ended("partitioning.triangulate", rows, tmp_path / "out", checkpoint={"every_seconds": 300.0})
    assert not any("kept" in note for note in notes)
    assert not place(tmp_path / "out").exists()


@pytest.mark.parametrize(("stage", "kept"), [BEFORE[0], pytest.param(*BEFORE[1], marks=pytest.mark.slow)])
def test_damage(ended: Callable[..., list[str]], rows: Path, tmp_path: Path, stage: str, kept: str) -> None:
    out = tmp_path / "out"
    ended(stage, rows, out)
    path = next(place(out).rglob(f"{kept}-0.zip"))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    result = run(rows, out)
    [told] = refusals(result)
    assert "cut off" in told
    assert "read" in stages(result)
    assert_same(result, rows, tmp_path / "plain")


@pytest.mark.slow
def test_another_input(ended: Callable[..., list[str]], rows: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    ended("partitioning.triangulate", rows, out)
    file = sorted(rows.glob("*.parquet"))[0]
    pq.write_table(pq.read_table(file).slice(1), file)
    result = run(rows, out)
    [refusal] = refusals(result)
    assert str(place(out)) in refusal and refusal.endswith("another input")
    assert_same(result, rows, tmp_path / "plain")
