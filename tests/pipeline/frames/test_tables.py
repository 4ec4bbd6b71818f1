"""Runs on Delta and Iceberg tables: only live rows count; the manifest's record; every exit code."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import Result as Called

import lakes
import runs
from edgemill.pipeline import Result
from edgemill.pipeline.run import full
from in_process import call
from known_graphs import FACEBOOK


def run(table: Path | str, out: Path, *arguments: object, report: bool = False) -> Called:
    how = ["--device", "cpu", "--set", f"output.report={str(report).lower()}"]
    return call("run", "--input", table, "--output", out, *how, *arguments)


def lambdas(out: Path) -> dict[lakes.Edge, int]:
    return runs.column(Result(out), "lambda")


@pytest.fixture(params=["delta", pytest.param("iceberg", marks=pytest.mark.slow)])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, list[int]]:
    """A table of a real graph, overwritten with a part of it, and its two versions."""
    whole = pq.read_table(FACEBOOK).rename_columns(["src", "dst"])
    folder = tmp_path / "lake/edges"
    if request.param == "delta":
        return lakes.delta(folder, whole, whole.slice(0, 16_064)), [0, 1]
    made = lakes.iceberg(folder, whole, whole.slice(0, 16_064))
    return folder, [made.snapshots()[0].snapshot_id, made.snapshots()[-1].snapshot_id]


def test_only_live_rows_are_read(table: tuple[Path, list[int]], tmp_path: Path) -> None:
    """Messages, manifest, report and verification agree."""
    folder, (first, second) = table
    out, plain = tmp_path / "out", tmp_path / "plain.parquet"
    pq.write_table(pq.read_table(FACEBOOK).rename_columns(["src", "dst"]).slice(0, 16_064), plain)
    assert run(plain, tmp_path / "expected").exit_code == 0

    planned = call("plan", "--input", folder, "--output", out, "--device", "cpu")
    assert planned.exit_code == 0, planned.output
    kind = {"delta": "Delta table, version", "iceberg": "Iceberg table, snapshot"}
    done = run(folder, out, report=True)
    assert done.exit_code == 0, done.output
    assert "edges       16,064\n" in done.output
    assert lambdas(out) == lambdas(tmp_path / "expected")
    read = Result(out).manifest.input.table
    assert read is not None
    assert (read.version, read.location) == (second, str(folder))
    assert f"{folder}: {kind[read.format]} {second}: 1 file, 16,064 rows" in planned.output
    assert f"{kind[read.format]} {second}: 1 file" in " ".join(call("show", out).output.split())
    assert f"{kind[read.format]} {second}, at {folder}" in (out / "report.html").read_text()

    verified = call("verify", out, "--input", folder)
    assert verified.exit_code == 0, verified.output
    assert all(fact in verified.output for fact in ("16,064", str(folder), f"({kind[read.format]}"))
    assert call("verify", out, "--input", plain).exit_code == 0
    earlier = call("plan", "--input", folder, "--output", out, "--device", "cpu", "--table-version", first)
    assert f"{kind[read.format]} {first}: 1 file, 88,234 rows" in earlier.output


def test_nothing_to_do_until_there_is_a_new_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, out = lakes.delta(tmp_path / "t", lakes.FIRST), tmp_path / "out"
    assert run(folder, out).exit_code == 0
    with monkeypatch.context() as patched:
        patched.setattr(full, "connect", None)  # connecting would fail
        for arguments in ([], ["--table-version", 0]):
            again = run(folder, out, *arguments)
            assert (again.exit_code, "nothing to do" in again.output) == (0, True)
    lakes.delta(folder, lakes.SECOND)
    refused = run(folder, out)
    assert (refused.exit_code, "delta 1" in refused.output) == (2, True)
    assert "nothing to do" in run(folder, out, "--table-version", 0).output
    assert run(folder, out, "--overwrite").exit_code == 0
    assert lambdas(out) == {(11, 12): 1, (12, 13): 1, (11, 13): 1, (13, 14): 0}
    assert call("verify", out, "--input", folder).exit_code == 0


def test_a_version_that_comes_later_does_not_change_what_is_verified(tmp_path: Path) -> None:
    folder, out = lakes.delta(tmp_path / "t", lakes.FIRST), tmp_path / "out"
    assert run(folder, out).exit_code == 0
    lakes.delta(folder, lakes.SECOND)
    assert call("verify", out, "--input", folder).exit_code == 0
    wrong = call("verify", out, "--input", folder, "--table-version", 1)
    assert (wrong.exit_code, "FAILED  input" in wrong.output) == (1, True)
    assert run(folder, tmp_path / "first", "--table-version", 0).exit_code == 0
    assert lambdas(tmp_path / "first") == lambdas(out)
    assert call("verify", out, "--input", folder, "--table-version", 2).exit_code == 2
    assert call("verify", out, "--table-version", 0).exit_code == 2
    assert call("verify", out, "--input", folder / "*.parquet").exit_code == 2
    plain = runs.write_rows(tmp_path / "plain.parquet", lakes.FIRST)
    assert call("verify", out, "--input", plain).exit_code == 0
    assert call("verify", out, "--input", plain, "--table-version", 0).exit_code == 2


def test_a_table_every_night(tmp_path: Path) -> None:
    """All nights read one table, each its own version, and report changes."""
    folder = lakes.delta(tmp_path / "t", lakes.FIRST)
    (folder / "_SUCCESS").touch()
    marked = ["--set", "input.complete_marker=_SUCCESS"]
    for day, version in (("2026-11-20", lakes.FIRST), ("2026-11-21", lakes.SECOND)):
        if version is lakes.SECOND:
            lakes.delta(folder, version)
        done = run(folder, tmp_path / "results" / "{date}", "--date", day, *marked)
        assert done.exit_code == 0, done.output
    changed = call("diff", tmp_path / "results/2026-11-20", tmp_path / "results/latest", "--json")
    assert changed.exit_code == 0, changed.output
    (folder / "_SUCCESS").unlink()
    assert run(folder, tmp_path / "results" / "{date}", "--date", "2026-11-22", *marked).exit_code == 8


def hudi(folder: Path) -> Path:
    (folder / ".hoodie").mkdir(parents=True)
    runs.write_rows(folder / "edges.parquet", lakes.FIRST)
    return folder


def loose(folder: Path) -> Path:
    folder.mkdir()
    return runs.write_rows(folder / "edges.parquet", lakes.FIRST)


@pytest.mark.parametrize(
    ("make", "path", "arguments", "code", "message"),
    [
        (lakes.delta, "", ["--table-version", 7], 2, "has no version 7"),
        (lakes.delta, "", ["--table-version", -1], 2, "--table-version"),
        (lakes.delta, "*.parquet", [], 2, "name the table's own folder"),
        (lakes.iceberg, "", ["--table-version", 7], 2, "has no snapshot 7"),
        (lakes.iceberg, "data", [], 2, "name the table's own folder"),
        (hudi, "", [], 2, "is a Hudi table"),
        (loose, "", ["--table-version", 0], 2, "is no Delta or Iceberg table"),
        (lakes.with_deletion_vector, "", [], 3, "has deletion vectors"),
    ],
)
def test_exit_codes(tmp_path: Path, make: Any, path: str, arguments: list[object], code: int, message: str) -> None:
    folder = tmp_path / "t"
    if make in (lakes.delta, lakes.iceberg):
        make(folder, lakes.FIRST)
    else:
        make(lakes.delta(folder, lakes.FIRST) if make is lakes.with_deletion_vector else folder)
    for command in ("run", "plan"):
        refused = call(command, "--input", f"{folder}/{path}", "--output", tmp_path / "out", *arguments)
        assert refused.exit_code == code, refused.output
        assert message in refused.stderr
        assert [line for line in refused.stderr.splitlines() if not line.startswith(("Error: ", "log of the"))] == []
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("make", "package"), [(lakes.delta, "deltalake"), (lakes.iceberg, "pyiceberg")])
def test_without_the_package(tmp_path: Path, make: Any, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path / "t", lakes.FIRST)
    monkeypatch.setitem(sys.modules, package, None)
    refused = run(tmp_path / "t", tmp_path / "out")
    assert refused.exit_code == 2
    extra = {"deltalake": "delta", "pyiceberg": "iceberg"}[package]
    assert f"'edgemill[{extra}]'" in refused.stderr


def test_the_manifest_has_the_table(tmp_path: Path) -> None:
    folder = lakes.delta(tmp_path / "t", lakes.FIRST)
    assert run(folder, tmp_path / "out").exit_code == 0
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    assert manifest["input"]["table"] == {"format": "delta", "location": str(folder), "version": 0}
    assert manifest["settings"]["input"]["table_version"] is None
    runs.write_rows(tmp_path / "plain.parquet", lakes.FIRST)
    assert run(tmp_path / "plain.parquet", tmp_path / "plain").exit_code == 0
    assert json.loads((tmp_path / "plain/manifest.json").read_text())["input"]["table"] is None
