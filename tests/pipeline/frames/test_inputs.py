"""Messages and exit codes for unusable input: one line that names the location, no traceback.

Wrong settings are in tests/pipeline/cli; the rules are in tests/tasks/inputs and tests/tasks/ingest.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import Result as Outcome

import runs
from edgemill.pipeline import Result
from in_process import call

Write = Callable[[Path], object]
TRIANGLE = [(1, 2), (2, 3), (1, 3)]


def run(rows: Path, out: Path, *arguments: str) -> Outcome:
    return call("run", "--input", str(rows), "--output", str(out), *arguments)


def table(**columns: Any) -> Write:
    return lambda path: pq.write_table(pa.table(columns), path / "rows.parquet")


def two_files(first: dict[str, Any], second: dict[str, Any]) -> Write:
    def write(path: Path) -> None:
        pq.write_table(pa.table(first), path / "a.parquet")
        pq.write_table(pa.table(second), path / "b.parquet")

    return write


def truncated(path: Path) -> None:
    whole = runs.write_rows(path / "rows.parquet", TRIANGLE).read_bytes()
    (path / "rows.parquet").write_bytes(whole[:-20])


ids = pa.array([1, 2])
FOOTERS: dict[str, tuple[Write, str]] = {
    "NaN": (table(src=[1.0, float("nan")], dst=ids), "rows.parquet: column 'src' is double, but ids are integers"),
    "float": (table(src=ids, dst=pa.array([1.0, 2.0], pa.float32())), "column 'dst' is float, but ids are integers"),
    "bool": (table(src=ids, dst=[True, False]), "column 'dst' is bool, but ids are integers"),
    "decimal": (table(src=ids, dst=pa.array([1, 2], pa.decimal128(5, 1))), "column 'dst' is decimal128(5, 1), but ids"),
    "integers and strings": (
        table(src=ids, dst=["a", "b"]),
        "rows.parquet: column 'src' has integers, and column 'dst' has strings",
    ),
    "columns unknown": (table(a=ids, b=ids, c=ids), "it has 'a', 'b', 'c': name them with --source-column"),
    "column missing in a file": (
        two_files({"src": ids, "dst": ids}, {"src": ids, "to": ids}),
        "b.parquet has no column 'dst'; it has 'src', 'to'",
    ),
    "strings in a file": (
        two_files({"src": ids, "dst": ids}, {"src": ["a"], "dst": ["b"]}),
        "b.parquet has strings: cast all ids to one type",
    ),
    "empty folder": (lambda path: None, "is a folder without *.parquet files"),
    "zero bytes": (lambda path: (path / "rows.parquet").touch(), "rows.parquet is empty (0 bytes)"),
    "truncated": (truncated, "rows.parquet cannot be read as Parquet"),
    "text": (lambda path: (path / "rows.parquet").write_text("1,2\n"), "rows.parquet cannot be read as Parquet"),
}
ROWS: dict[str, tuple[Write, str]] = {
    "null": (
        table(src=[1, None], dst=ids),
        "has null ids: 1 in column 'src'; the first is in",
    ),
    "null string": (
        table(src=["a", "b"], dst=["c", None]),
        "rows.parquet: row group 0; leave such rows out with --set input.nulls=drop",
    ),
    "above 2^63-1": (
        table(src=pa.array([1, 2**63], pa.uint64()), dst=ids),
        "rows.parquet: row group 0: column 'src' has the id 9223372036854775808, and the ids of this input are int64",
    ),
}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "rows"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("fault", FOOTERS)
def test_bad_files(tmp_path: Path, place: Path, fault: str) -> None:
    write, text = FOOTERS[fault]
    write(place)
    found = run(place, tmp_path / "out")
    assert found.exit_code == 3
    assert found.stderr.startswith("Error: ")
    assert text in found.stderr.splitlines()[0]
    check_nothing_written(tmp_path, found.stderr, ["out.failed.log.jsonl", "rows"])


@pytest.mark.parametrize("fault", ROWS)
def test_bad_rows(tmp_path: Path, place: Path, fault: str) -> None:
    write, text = ROWS[fault]
    write(place)
    found = run(place, tmp_path / "out")
    assert (found.exit_code, found.stdout) == (3, "")
    assert text in found.stderr.splitlines()[0]
    check_nothing_written(tmp_path, found.stderr, ["out.failed.log.jsonl", "rows"])


@pytest.mark.parametrize("workers", [pytest.param([], marks=pytest.mark.slow), ["--workers", "1"]], ids=str)
def test_only_the_error_is_printed(tmp_path: Path, place: Path, workers: list[str]) -> None:
    """Runs a process of its own, since Dask's log bypasses Python's sys.stderr."""
    write, text = ROWS["null"]
    write(place)
    command = [sys.executable, "-m", "edgemill.pipeline", "run", "--input", str(place), "--output", "out", *workers]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    first, second = found.stderr.splitlines()
    assert (found.returncode, found.stdout) == (3, "")
    assert text in first
    assert second.endswith(f": {tmp_path / 'out.failed.log.jsonl'}")
    check_nothing_written(tmp_path, found.stderr, ["out.failed.log.jsonl", "rows"])


def check_nothing_written(tmp_path: Path, stderr: str, left: list[str]) -> None:
    assert "Traceback" not in stderr
    assert sorted(entry.name for entry in tmp_path.iterdir()) == left


@pytest.mark.parametrize(
    ("name", "text"), [("absent.parquet", "absent.parquet' does not exist"), ("*.parquet", "no file matches input")]
)
def test_missing_input(tmp_path: Path, name: str, text: str) -> None:
    found = run(tmp_path / name, tmp_path.parent / f"{tmp_path.name} out")
    assert (found.exit_code, text in found.stderr) == (3, True)
    assert "Traceback" not in found.stderr


def test_missing_column(tmp_path: Path, place: Path) -> None:
    runs.write_rows(place / "rows.parquet", TRIANGLE)
    found = run(place, tmp_path / "out", "--source-column", "from", "--target-column", "dst")
    assert (found.exit_code, all(fact in found.stderr for fact in ("rows.parquet", "'from'", "'src'"))) == (3, True)


def test_outputs_that_are_refused(tmp_path: Path) -> None:
    rows = runs.write_rows(tmp_path / "rows.parquet", TRIANGLE)
    mine_is_older = tmp_path / "notes"
    mine_is_older.mkdir()
    (mine_is_older / "note").touch()
    for out, arguments, text in (
        (mine_is_older / "note/out", [], "cannot write in"),
        (rows / "out", [], "is inside the input"),
        (mine_is_older, [], f"{mine_is_older} exists: "),
        (mine_is_older, ["--overwrite"], "so --overwrite does not replace"),
        (tmp_path / "out", ["--partitions", "5000"], "from 1 to 4096, got 5000"),
    ):
        found = run(rows, out, *arguments)
        assert (found.exit_code, text in found.stderr, "Traceback" in found.stderr) == (2, True, False), found.stderr
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["notes", "rows.parquet"]


def test_nulls_are_dropped_on_request(tmp_path: Path, place: Path) -> None:
    table(src=[1, None, 2, 1, None], dst=[2, 5, 3, 3, None])(place)
    found = run(place, tmp_path / "out", "--set", "input.nulls=drop")
    assert (found.exit_code, found.stderr) == (0, "")
    result = Result(tmp_path / "out")
    assert runs.column(result, "lambda") == {(1, 2): 1, (1, 3): 1, (2, 3): 1}
    assert (result.manifest.counts.rows, result.manifest.counts.nulls_dropped) == (5, 2)


def test_zero_rows_are_an_empty_graph(tmp_path: Path, place: Path) -> None:
    runs.write_rows(place / "rows.parquet", [])
    found = run(place, tmp_path / "out")
    assert (found.exit_code, found.stderr) == (0, "")
    assert found.stdout.splitlines()[:2] == ["edges       0", "vertices    0"]


def test_more_shards_than_vertices(tmp_path: Path, place: Path) -> None:
    runs.write_rows(place / "rows.parquet", TRIANGLE)
    found = run(place, tmp_path / "out", "--partitions", "9")
    assert (found.exit_code, found.stderr) == (0, "")
    result = Result(tmp_path / "out")
    assert runs.column(result, "lambda") == {(1, 2): 1, (1, 3): 1, (2, 3): 1}
    shards = result.manifest.bounding.shards
    assert shards is not None and shards.shards >= 9


def test_an_earlier_result_is_replaced_only_on_request(tmp_path: Path, place: Path) -> None:
    runs.write_rows(place / "rows.parquet", TRIANGLE)
    out = tmp_path / "out"
    first = run(place, out)
    before = Result(out).manifest.run
    second = run(place, out, "--method", "band")
    assert (first.exit_code, second.exit_code, Result(out).manifest.run) == (0, 2, before)
    assert "--overwrite" in second.stderr
    third = run(place, out, "--overwrite", "--method", "band")
    assert (third.exit_code, Result(out).manifest.run != before) == (0, True)
    assert {path.name for path in (out / "edges").iterdir()} == {"part-00000.parquet"}
