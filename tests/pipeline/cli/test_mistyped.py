"""A run with a mistyped input leaves the log of its failure alone, which the next run into that output removes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import Result

import in_process
import runs
from edgemill.tasks.storage.locations import tidy_path


def call(*arguments: object) -> Result:
    return in_process.call("run", *map(str, arguments), "--device", "cpu")


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (["--input", "rows.parqet"], "input 'rows.parqet' does not exist"),
        (["--input", "./folder//../rows.parqet"], "input 'rows.parqet' does not exist"),
        (["--input", "folder"], "input 'folder' is a folder without *.parquet files"),
        (["--input", "rows.parquet", "--source-column", "from", "--target-column", "dst"], "'from'"),
        (["--input", "rows.parquet", "--table-version", "3"], "--table-version is 3, but input"),
    ],
)
@pytest.mark.parametrize("output", ["out", "new/folders/out"])
def test_the_log_alone_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: list[str], reason: str, output: str
) -> None:
    runs.write_rows(tmp_path / "rows.parquet", [(1, 2)])
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    ended = call(*more, "--output", output)
    assert ended.exit_code in (2, 3)
    assert reason in ended.stderr
    log = tmp_path / f"{output}.failed.log.jsonl"
    (where,) = ended.stderr.splitlines()[1:]
    assert where.startswith("log ") and where.endswith(f": {log}")
    left = {path for path in tmp_path.rglob("*") if path.is_file()}
    assert left == {tmp_path / "rows.parquet", log}
    assert call("--input", "rows.parquet", "--output", output).exit_code == 0
    assert not log.exists()


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (["--partitions", "9" * 5_000], "--partitions: must be auto or a whole number"),
        (["--where", "src = 1e999999999"], "--where: 1e999999999 has an exponent"),
    ],
)
def test_a_mistake_in_settings_leaves_nothing(tmp_path: Path, more: list[str], reason: str) -> None:
    rows = runs.write_rows(tmp_path / "rows.parquet", [(1, 2)])
    ended = call("--input", rows, "--output", tmp_path / "out", *more)
    assert ended.exit_code == 2 and reason in ended.stderr and len(ended.stderr.splitlines()) == 1
    assert os.listdir(tmp_path) == ["rows.parquet"]


def test_a_run_that_began_leaves_its_log_in_the_folder_that_it_made(tmp_path: Path) -> None:
    rows = runs.write_rows(tmp_path / "rows.parquet", [(1, None), (2, 3)])
    ended = call("--input", rows, "--output", tmp_path / "new/out")
    assert ended.exit_code == 3
    assert os.listdir(tmp_path / "new") == ["out.failed.log.jsonl"]


def test_paths_are_told_without_detours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere/inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to("elsewhere/inner")
    told = {
        ".//a/../b/": "b",
        "./": ".",
        "/": "/",
        "a//b/./c": "a/b/c",
        "../x": "../x",
        "link/../x": "link/../x",  # x beside `inner`, not beside `link`
        "a/*/../b": "a/*/../b",
        "s3://bucket//a/../b": "s3://bucket//a/../b",
    }
    assert {path: tidy_path(path) for path in told} == told
