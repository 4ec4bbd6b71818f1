"""Three nights by the command: one is repeated, and one is killed and retried."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import runs
from edgemill.pipeline import Result, diff
from edgemill.tasks.verify.result import verify
from in_process import call
from pages import read_page

KILLED = """
import os, signal, sys
from edgemill.pipeline.cli import edgemill
from edgemill.pipeline.events import Events

emit, at, told = Events.emit, int(sys.argv.pop(1)), {}

def kill(self, event, /, **fields):
    emit(self, event, **fields)
    told[event] = told.get(event, 0) + 1
    if at in (told.get("kept"), fields.get("exchange")):
        os.kill(os.getpid(), signal.SIGKILL)

Events.emit = kill
edgemill(sys.argv[1:])
"""
SETTINGS = """
input: {path: 'edges/{date}', complete_marker: _SUCCESS, least_rows: 10}
output: {path: 'results/{date}', overwrite: true}
nightly: {keep: 2}
"""
WAYS = {
    "band": "bounding: {method: band}\ncheckpoint: {every_exchanges: 2}\n",
    "shards": "partitioning: {count: 3}\ncheckpoint: {every_seconds: 0}\n",
}


@dataclass(frozen=True)
class Ended:
    """Outcome of a command."""

    returncode: int
    stdout: str
    stderr: str


def command(day: str, *arguments: str) -> list[str]:
    return ["run", "nightly.yaml", "--date", day, "--device", "cpu", *arguments]


def here(day: str, *arguments: str) -> Ended:
    ended = call(*command(day, *arguments))
    return Ended(ended.exit_code, ended.stdout, ended.stderr)


def in_a_process(day: str, *arguments: str, killed_at: int = 0) -> Ended:
    python = ["-c", KILLED, str(killed_at)] if killed_at else ["-m", "edgemill.pipeline"]
    called = [sys.executable, *python, *command(day, *arguments)]
    ended = subprocess.run(called, capture_output=True, text=True, timeout=120, check=False)
    return Ended(ended.returncode, ended.stdout, ended.stderr)


def write_edges(folder: Path, day: str, rows: list[runs.Edge]) -> None:
    (folder / "edges" / day).mkdir(parents=True)
    runs.write_rows(folder / "edges" / day / "part.parquet", rows)
    (folder / "edges" / day / "_SUCCESS").touch()


def log(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (result.path / "log.jsonl").read_text().splitlines()]


def stamps(folder: Path) -> dict[str, int]:
    return {
        str(path): path.lstat().st_mtime_ns for path in folder.rglob("*") if path.is_file() and path.name != "log.jsonl"
    }


@pytest.mark.parametrize("way", [way if way == "band" else pytest.param(way, marks=pytest.mark.slow) for way in WAYS])
@pytest.mark.parametrize("own", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["here", "processes"])
def test_three_nights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: bool, way: str) -> None:
    """Each night removes and adds edges of a chain of cliques. The third night always runs as a process."""
    monkeypatch.chdir(tmp_path)
    night = in_a_process if own else here
    results = tmp_path / "results"
    rows = [(u + 10 * c, v + 10 * c) for c in range(8) for u in range(10) for v in range(u)]
    rows += [(10 * c, 10 * c + 11) for c in range(7)]
    (tmp_path / "nightly.yaml").write_text(SETTINGS + WAYS[way])

    first = night("2026-11-18")
    assert (first.returncode, "'edges/2026-11-18'" in first.stderr) == (8, True)
    write_edges(tmp_path, "2026-11-18", rows)
    first = night("2026-11-18")
    assert (first.returncode, first.stderr) == (0, "")
    assert sorted(os.listdir(results)) == ["2026-11-18", "latest"]
    assert (results / "latest").readlink() == Path("2026-11-18")

    before = stamps(results)
    repeated = night("2026-11-18")
    assert (repeated.returncode, repeated.stderr) == (0, "")
    assert repeated.stdout.startswith("nothing to do")
    assert stamps(results) == before
    assert log(Result(results / "latest"))[-1]["event"] == "nothing_to_do"

    write_edges(tmp_path, "2026-11-19", rows[20:])
    assert night("2026-11-19", "--set", "output.report=false").returncode == 0
    assert sorted(os.listdir(results)) == ["2026-11-18", "2026-11-19", "latest"]

    write_edges(tmp_path, "2026-11-20", [*rows[:9], *rows[40:], (900, 901), (901, 902), (900, 902)])
    killed = in_a_process("2026-11-20", killed_at=5 if way == "band" else 1)
    assert killed.returncode == -signal.SIGKILL
    assert (results / "latest").readlink() == Path("2026-11-19")
    assert {"2026-11-18", "2026-11-19", "latest"} == {name for name in os.listdir(results) if name[0] != "."}

    retried = night("2026-11-20")
    assert (retried.returncode, retried.stderr) == (0, "")
    assert f"removed     {results}/2026-11-18" in retried.stdout.splitlines()
    assert sorted(os.listdir(results)) == ["2026-11-19", "2026-11-20", "latest"]
    result = Result(results / "latest")
    assert result.path == results / "2026-11-20"
    assert verify(result.path, tmp_path / "edges/2026-11-20").ok
    names = [line["event"] for line in log(result)]
    assert names.index("lock_taken_over") < names.index("exchange")
    assert "restore" in {stage.stage for stage in result.manifest.stages}
    went_on = next(line["exchange"] for line in log(result) if line["event"] == "exchange")
    assert (went_on == 5) if way == "band" else (result.manifest.bounding.shards is not None)
    assert names[-3:] == ["run_finished", "latest_moved", "removed"]

    found = diff(results / "2026-11-19", results / "latest")
    page = read_page((result.path / "report.html").read_text())
    assert ("h2", "Since 2026-11-19") in page.headings
    kinds = ("old", "new", "unchanged", "appeared", "vanished", "rose", "fell", "reshaped")
    shown = [[getattr(part, kind) for part in (found.dn_graphs, found.edges)] for kind in kinds]
    cells = [["" if count is None else f"{count:,}" for count in row] for row in shown]
    assert [row[1:] for row in page.tables["What changed"][1:]] == cells
    assert found.edges is not None
    assert found.edges.appeared >= 12
    assert found.edges.vanished >= 20
    assert sorted(os.listdir(tmp_path)) == ["edges", "nightly.yaml", "results"]
