"""The same input and settings again: no work, no cluster, and the run says so; anything else is a run."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result as Called

import runs
from edgemill.pipeline import Result, UsageError, mine
from edgemill.pipeline.output.checkpoint_files import checkpoint_place
from edgemill.pipeline.plan.plan import Plan
from edgemill.pipeline.run import full
from edgemill.pipeline.settings.setting_names import with_flags
from edgemill.tasks.generate import generate
from edgemill.tasks.storage.folders import folder_at
from in_process import call

TWO_TRIANGLES = [(1, 2), (2, 3), (1, 3), (3, 4), (2, 4)]


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    return runs.write_rows(tmp_path / "rows.parquet", TWO_TRIANGLES)


@pytest.fixture
def out(rows: Path, tmp_path: Path) -> Path:
    assert run(rows, tmp_path / "out").exit_code == 0
    return tmp_path / "out"


def run(rows: Path, out: Path, *arguments: str) -> Called:
    command = ["run", "--input", str(rows), "--output", str(out), "--device", "cpu", "--set", "output.report=false"]
    command += arguments
    return call(*command)


def log(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]


def stamps(out: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file() and path.suffix != ".jsonl"}


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--overwrite"],
        ["--source-column", "src", "--target-column", "dst"],
        ["--workers", "2", "--set", "checkpoint.every_seconds=1", "--set", "ingest.rows_per_block=7"],
    ],
    ids=["plain", "overwrite", "columns that were chosen anyway", "settings without weight"],
)
def test_the_same_again(
    rows: Path, out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.setattr(full, "connect", None)  # connecting would fail
    before, events = stamps(out), len(log(out))
    again = run(rows, out, *arguments)
    assert (again.exit_code, again.stderr) == (0, "")
    assert again.stdout.startswith("nothing to do: the result is up to date, finished 2")
    assert "edges       5\n" in again.stdout
    assert stamps(out) == before
    started, told = log(out)[events:]
    assert (started["event"], told["event"], told["result"]) == ("run_started", "nothing_to_do", log(out)[0]["run"])
    assert started["run"] == told["run"] != told["result"]
    assert sorted(os.listdir(tmp_path)) == ["out", "rows.parquet"]


def another_input(rows: Path, out: Path) -> None:
    runs.write_rows(rows, [*TWO_TRIANGLES, (1, 4)])


def touched(rows: Path, out: Path) -> None:
    os.utime(rows, ns=(1, 1))


def cut(rows: Path, out: Path) -> None:
    path = out / "edges/part-00000.parquet"
    path.write_bytes(path.read_bytes()[:-1])


def lost(rows: Path, out: Path) -> None:
    (out / "vertices/part-00000.parquet").unlink()


def _manifest(out: Path, change: Callable[[dict[str, Any]], object]) -> None:
    path = out / "manifest.json"
    content = json.loads(path.read_bytes())
    change(content)
    path.write_text(json.dumps(content))


def other_release(rows: Path, out: Path) -> None:
    _manifest(out, lambda manifest: manifest["versions"].update(edgemill="0.0.1"))


def not_converged(rows: Path, out: Path) -> None:
    _manifest(out, lambda manifest: manifest.update(converged=False))


def no_fingerprint(rows: Path, out: Path) -> None:
    _manifest(out, lambda manifest: manifest["input"].update(fingerprint=None))


def nothing(rows: Path, out: Path) -> None:
    pass


CHANGES = [
    (another_input, [], "files of its input have other sizes: "),
    (touched, [], "the files of its input were written again"),
    (cut, [], "the result is damaged: "),
    (lost, [], "the result is damaged: "),
    (other_release, [], "it was made by edgemill 0.0.1, and this is "),
    (not_converged, [], "it did not converge: a limit ended its run"),
    (no_fingerprint, [], "the files of its input may have changed: "),
    (nothing, ["--partitions", "2"], "--partitions was auto, and is 2 now"),
    (nothing, ["--method", "peel"], "--method was auto, and is peel now"),
    (nothing, ["--set", "output.compression=snappy"], "--set output.compression was zstd, and is snappy now"),
]
QUICK = (touched, cut, no_fingerprint)
"""Changes that are tried each time; several of the others are among those of test_every_difference_is_told."""


@pytest.mark.parametrize(
    ("change", "arguments", "reason"),
    [case if case[0] in QUICK else pytest.param(*case, marks=pytest.mark.slow) for case in CHANGES],
)
def test_anything_else_is_a_run(
    rows: Path, out: Path, change: Callable[[Path, Path], None], arguments: list[str], reason: str
) -> None:
    before = Result(out).manifest.run
    change(rows, out)
    refused = run(rows, out, *arguments)
    assert refused.exit_code == 2
    assert "--overwrite" in refused.stderr
    assert f"It holds the result of a different run:\n- {reason}" in refused.stderr
    again = run(rows, out, "--overwrite", *arguments)
    assert (again.exit_code, "nothing to do" in again.stdout) == (0, False), again.stderr
    assert Result(out).manifest.run != before
    assert [with_flags(line["reason"]).startswith(reason) for line in log(out) if line["event"] == "replacing"] == [
        True
    ]
    assert sorted(os.listdir(out.parent)) == ["out", "rows.parquet"]


def test_every_difference_is_told(rows: Path, out: Path) -> None:
    not_converged(rows, out)
    other_release(rows, out)
    another_input(rows, out)
    refused = run(rows, out, "--partitions", "2", "--method", "peel")
    _, _, *told, log = refused.stderr.splitlines()
    assert refused.exit_code == 2 and log.startswith("log of the failed run: ")
    assert [line.removeprefix("- ").partition(",")[0].partition(":")[0] for line in told] == [
        "it did not converge",
        "it was made by edgemill 0.0.1",
        "--method was auto",
        "--partitions was auto",
        "files of its input have other sizes",
    ]


def test_another_input_where_the_settings_differ_and_it_is_gone(rows: Path, out: Path) -> None:
    """What can be told is told: the result stands in the way before the input is missed."""
    rows.unlink()
    refused = run(rows, out, "--partitions", "2")
    assert (refused.exit_code, "--partitions" in refused.stderr) == (2, True)
    assert run(rows, out, "--partitions", "2", "--overwrite").exit_code == 3


def test_fresh_does_it_again(rows: Path, out: Path) -> None:
    before = Result(out).manifest.run
    assert run(rows, out, "--fresh").exit_code == 2
    assert run(rows, out, "--fresh", "--overwrite").exit_code == 0
    assert Result(out).manifest.run != before


@pytest.mark.parametrize("seconds", [-60, 60])
@pytest.mark.parametrize("elsewhere", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_checkpoint_of_before_goes(rows: Path, out: Path, tmp_path: Path, seconds: int, elsewhere: bool) -> None:
    """A run was killed while it cleared up. What a later run has kept, of other settings, stays for its retry."""
    path = str(tmp_path / "kept") if elsewhere else None
    kept = Path(checkpoint_place(folder_at(out), path))
    (kept / "graph-R-1").mkdir(parents=True)
    (kept / "graph.json").touch()
    time = Result(out).manifest.finished.timestamp() + seconds
    os.utime(kept / "graph.json", (time, time))
    more = ("--set", f"checkpoint.path={path}") if elsewhere else ()
    done = run(rows, out, *more)
    assert (done.exit_code, done.stdout.startswith("nothing to do"), done.stderr) == (0, True, "")
    assert kept.exists() is (seconds > 0)


def test_from_python(rows: Path, out: Path) -> None:
    before = Result(out).manifest
    assert mine(rows, out, device="cpu").manifest == before
    assert mine(rows, f"file://{out}", device="cpu").manifest == before
    with pytest.raises(UsageError, match="exists"):
        mine(rows, out, device="cpu", method="fixpoint")


def test_a_log_that_is_gone_is_no_reason_to_run(rows: Path, out: Path) -> None:
    (out / "log.jsonl").unlink()
    assert run(rows, out).exit_code == 0
    assert [line["event"] for line in log(out)] == ["run_started", "nothing_to_do"]


@pytest.mark.slow
def test_fewer_buckets_leave_no_stale_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers of the folder, which do not look at the manifest, see the rows of the last run alone."""
    import pyarrow.parquet as pq

    out = tmp_path / "out"
    for buckets in (5, 2, 1):
        rows = tmp_path / f"rows of {buckets}"  # the same rows again would be no run
        generate("erdos-renyi", str(rows), files=2, seed=buckets, vertices=60, edges=300)
        monkeypatch.setattr(Plan, "buckets", buckets)
        assert run(rows, out, "--overwrite", "--method", "band").exit_code == 0
        manifest = Result(out).manifest
        assert len(list((out / "edges").iterdir())) == len(list((out / "vertices").iterdir())) == buckets
        assert pq.read_table(out / "edges").num_rows == manifest.counts.edges
        assert pq.read_table(out / "vertices").num_rows == manifest.counts.vertices
