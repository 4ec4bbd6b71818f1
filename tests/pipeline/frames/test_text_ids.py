"""Runs, nights and updates of text files whose first rows do not show the type of all ids."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import runs
from edgemill.pipeline import InputError, Result, mine, update
from edgemill.tasks.inputs.formats import text_heads
from edgemill.tasks.verify.result import verify
from in_process import call

HOW: dict[str, Any] = {"device": "cpu", "output.report": False}
CLIQUE = [(u, v) for v in range(10, 16) for u in range(10, v)]
LAST = [("7", "8"), ("8", "9"), ("007", "9")]
"""A path of four vertices. With 007 for 7 it is a triangle."""


@pytest.fixture(autouse=True)
def _short_heads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the first rows are inspected."""
    monkeypatch.setattr(text_heads, "HEAD_BYTES", 64)


def write(path: Path, rows: list[tuple[Any, Any]], before: str = "") -> Path:
    path.write_text(before + "src,dst\n" + "".join(f"{a},{b}\n" for a, b in rows))
    return path


def edges(result: Result) -> set[tuple[Any, Any, int]]:
    return {tuple(row.values()) for row in result.edges.to_table().select(["src", "dst", "lambda"]).to_pylist()}


def events(out: Path, name: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    return [line for line in lines if line["event"] == name]


def test_a_run_reads_ids_as_text_when_a_later_one_is_no_integer(tmp_path: Path) -> None:
    rows, out = write(tmp_path / "rows.csv", [*CLIQUE, *LAST]), tmp_path / "out"
    how = ["--device", "cpu", "--set", "output.report=false"]
    ended = call("run", "--input", rows, "--output", out, *how)
    assert ended.exit_code == 0, ended.stderr
    result = Result(out)
    assert {(a, b) for a, b, value in edges(result) if value == 0} == {("7", "8"), ("8", "9"), ("007", "9")}
    (note,) = result.manifest.input.notes
    assert all(fact in note for fact in (str(rows), "19", "'007'"))
    assert note in ended.stderr
    assert note in [event["text"] for event in events(out, "note")]
    assert [event["id_type"] for event in events(out, "input")] == ["int64", "string"]
    assert runs.flaws(out) == []
    assert verify(out, rows).ok
    again = call("run", "--input", rows, "--output", out, *how)
    assert "nothing to do" in again.stdout + again.stderr
    refused = call("run", "--input", rows, "--output", out, *how, "--overwrite", "--set", "input.id_type=int64")
    assert (refused.exit_code, all(fact in refused.stderr for fact in (str(rows), "19", "'src'"))) == (3, True)
    assert Result(out).manifest.run == result.manifest.run


def test_a_plan_reads_ids_as_the_run_does(tmp_path: Path) -> None:
    rows = write(tmp_path / "rows.csv", [*CLIQUE, *LAST])
    ended = call("plan", "--input", rows, "--output", tmp_path / "out", "--set", "cluster.workers=2")
    assert ended.exit_code == 0
    assert "columns src, dst (string)" in ended.stdout.replace("\n", " ")
    assert "'007'" in ended.stdout.replace("\n", " ")


def test_nights_of_ids_that_become_text(tmp_path: Path) -> None:
    """The night after a night of text starts from it, and an unchanged input is recognised."""
    rows, how = tmp_path / "rows.csv", {**HOW, "nightly.incremental": "auto", "nightly.least_share": None}
    first = mine(write(rows, CLIQUE), tmp_path / "1", **how)
    second = mine(write(rows, [*CLIQUE, *LAST]), tmp_path / "2", previous=str(first.path), **how)
    third = mine(write(rows, [*CLIQUE, *LAST, (20, 21)]), tmp_path / "3", previous=str(second.path), **how)
    write(rows, [*CLIQUE, *LAST, (20, 21)])
    fourth = mine(rows, tmp_path / "4", previous=str(third.path), **how)
    nights = (first, second, third, fourth)
    assert [night.manifest.input.id_type for night in nights] == ["int64", "string", "string", "string"]
    assert [night.manifest.update and night.manifest.update.way for night in nights] == [
        None,
        None,
        "changes",
        "changes",
    ]
    assert fourth.manifest.update is not None
    assert fourth.manifest.update.reason == "nothing has changed"
    for night in nights[1:]:
        assert runs.flaws(night.path) == []


def test_least_rows_of_ids_that_become_text(tmp_path: Path) -> None:
    rows = write(tmp_path / "rows.csv", [*CLIQUE, *LAST])
    assert mine(rows, tmp_path / "out", **{**HOW, "input.least_rows": 18}).manifest.counts.rows == 18
    ended = call("run", "--input", rows, "--output", tmp_path / "more", "--set", "input.least_rows=19")
    assert ended.exit_code == 8


BATCHES: dict[str, tuple[list[tuple[Any, Any]], list[tuple[Any, Any]], str | set[tuple[Any, Any]]]] = {
    "a leading zero for integers": (CLIQUE, [(1, 2)] * 20 + [("007", 8)], "line 22: column 'src' has '007'"),
    "integers for text": ([*CLIQUE, *LAST], [(7, 9)], {("7", "9")}),
    "text for integers": (CLIQUE, [("a", "b")], "line 2: column 'src' has 'a'"),
    "more than int64 for integers": (CLIQUE, [(2**63, 1)], f"line 2: column 'src' has '{2**63}'"),
    "integers": (CLIQUE, [(7, 9)], {(7, 9)}),
}


@pytest.mark.parametrize("name", BATCHES)
def test_a_batch_of_text_has_ids_of_the_type_of_the_result(tmp_path: Path, name: str) -> None:
    before, batch, expected = BATCHES[name]
    base = mine(write(tmp_path / "rows.csv", before), tmp_path / "base", **HOW)
    insert = write(tmp_path / "batch.csv", batch)
    if isinstance(expected, str):
        with pytest.raises(InputError, match=rf"batch\.csv: {expected}"):
            update(base, tmp_path / "out", insert=insert, **HOW)
        with pytest.raises(InputError, match=rf"batch\.csv: {expected}"):
            update(base, tmp_path / "out", delete=insert, **HOW)
    else:
        updated = update(base, tmp_path / "out", insert=insert, **HOW)
        assert {row[:2] for row in edges(updated)} - {row[:2] for row in edges(base)} == expected
        assert runs.flaws(updated.path) == []


def test_a_batch_for_ids_of_another_width(tmp_path: Path) -> None:
    table = pa.table({end: pa.array([row[at] for row in CLIQUE], pa.int32()) for at, end in enumerate(("src", "dst"))})
    pq.write_table(table, tmp_path / "rows.parquet")
    base = mine(tmp_path / "rows.parquet", tmp_path / "base", **HOW)
    updated = update(base, tmp_path / "out", insert=write(tmp_path / "batch.csv", [(7, 9)]), **HOW)
    assert updated.manifest.input.id_type == "int32"
    with pytest.raises(InputError, match=r"batch\.csv.*2.*'dst'.*'2147483648'"):
        update(base, tmp_path / "wide", insert=write(tmp_path / "batch.csv", [(7, 2**31)]), **HOW)


def test_comments_and_outer_blanks_are_said_everywhere(tmp_path: Path) -> None:
    rows, out = tmp_path / "rows.csv", tmp_path / "out"
    write(rows, [("a", " b"), ("b", "c"), ("c", "a")], "# made by hand\n# twice\n")
    ended = call("run", "--input", rows, "--output", out, "--device", "cpu")
    assert ended.exit_code == 0, ended.stderr
    manifest = Result(out).manifest
    assert (manifest.counts.rows, manifest.counts.comments) == (3, 2)
    comments, blanks = (note for note in manifest.input.notes if "skipped" in note or "blank" in note)
    assert all(fact in comments for fact in ("2 lines", "comments", f"'# made by hand' in {rows}"))
    assert str(rows) in blanks
    assert "input.strip" in blanks
    for note in (comments, blanks):
        assert note in [event["text"] for event in events(out, "note")]
        assert note in " ".join(ended.stderr.split())
    assert verify(out, rows).ok
    stripped = mine(rows, out, **{**HOW, "overwrite": True, "input.strip": True})
    assert len(edges(stripped)) == 3
    assert verify(out, rows).ok
    insert = write(tmp_path / "batch.csv", [("x", "y ")], "# late\n")
    updated = update(stripped, tmp_path / "updated", insert=insert, **HOW)
    assert sum("late" in note or "'y '" in note for note in updated.manifest.input.notes) == 2


@pytest.mark.parametrize(
    "content",
    [b"   1     2\n  22     3\n   3     1\n", b"# x\r1,2\r22,3\r3,1\r", b'" a", b\nb ,"c"\n'],
)
def test_verify_reads_what_the_run_reads(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "rows.txt").write_bytes(content)
    how: dict[str, Any] = {"input.strip": True, "input.header": False} if b'"' in content else {}
    result = mine(tmp_path / "rows.txt", tmp_path / "out", **HOW, **how)
    assert result.manifest.counts.edges == content.replace(b"\r", b"\n").count(b"\n") - content.count(b"#")
    assert verify(tmp_path / "out", tmp_path / "rows.txt").ok


def test_verify_finds_an_id_that_is_no_integer(tmp_path: Path) -> None:
    rows = write(tmp_path / "rows.csv", [*CLIQUE, (7, 8)])
    mine(rows, tmp_path / "out", **HOW)
    assert verify(tmp_path / "out", rows).ok
    write(rows, [*CLIQUE, ("007", 8)])
    failed = [detail for _, ok, detail in verify(tmp_path / "out", rows).checks if not ok]
    assert "column 'src' has 007" in " ".join(failed)
