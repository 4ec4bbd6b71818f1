"""Three nights by the shipped settings: one starts from the night before and is killed, one is given up."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

import runs
from edgemill.pipeline import Result
from edgemill.pipeline.plan.seconds import START_SECONDS
from edgemill.pipeline.updating import deciding
from in_process import call

CONFIG = Path(__file__).parents[3] / "configs" / "nightly.yaml"
KILLED = """
import os, signal, sys
from edgemill.pipeline.cli import edgemill
from edgemill.pipeline.events import Events

emit = Events.emit

def kill(self, event, /, **fields):
    emit(self, event, **fields)
    if event == "state_written":
        os.kill(os.getpid(), signal.SIGKILL)

Events.emit = kill
edgemill(sys.argv[1:])
"""
Rows = list[tuple[int, int]]


def arguments(day: str) -> list[str]:
    return ["run", str(CONFIG), "--date", day, "--device", "cpu", "--set", "output.report=false", "--json"]


def night(day: str) -> dict[str, Any]:
    ended = call(*arguments(day))
    assert ended.exit_code == 0, ended.output
    document: dict[str, Any] = json.loads(ended.stdout)
    return document


def write(day: str, rows: Rows) -> None:
    folder = Path("edges") / day
    folder.mkdir(parents=True)
    runs.write_rows(folder / "part.parquet", rows)
    (folder / "_SUCCESS").touch()


def check(day: str) -> Result:
    assert runs.flaws(Path("results") / day, Path("edges") / day) == []
    return Result(Path("results") / day)


def planned(result: Result) -> list[tuple[str, str]]:
    events = [json.loads(line) for line in (result.path / "log.jsonl").read_text().splitlines()]
    return [(event["event"], event.get("way", "")) for event in events if event["event"].startswith("update_")]


def test_three_nights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    seconds = START_SECONDS, deciding.WORK_SECONDS
    monkeypatch.setattr(
        deciding, "predicted_seconds", lambda edges, triangles, threads: seconds[0] + seconds[1] * triangles
    )
    cliques = [(9 * c + u, 9 * c + v) for c in range(30) for u, v in combinations(range(8), 2)]

    write("2026-11-18", cliques)
    night("2026-11-18")
    first = check("2026-11-18")
    assert first.manifest.update is None and (first.path / "state" / "index.json").exists()

    write("2026-11-19", [*cliques[2:], (500, 501), (501, 502), (500, 502), (7, 500)])
    killed = subprocess.run([sys.executable, "-c", KILLED, *arguments("2026-11-19")], timeout=120, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert {name for name in os.listdir("results") if name[0] != "."} == {"2026-11-18", "latest"}
    night("2026-11-19")
    second = check("2026-11-19")
    made = second.manifest.update
    assert made is not None and (made.way, made.nights, made.inserted, made.deleted) == ("changes", 1, 4, 2)
    assert (made.base_run, made.full_run) == (first.manifest.run, first.manifest.run)
    assert planned(second) == [("update_planned", "changes")]
    assert second.manifest.tracks is not None
    assert (second.manifest.tracks.continued, second.manifest.tracks.new) == (30, 1)
    assert {name for name in os.listdir("results") if name[0] == "."} == set()

    removed = cliques[112::28]
    write("2026-11-20", [edge for edge in cliques if edge not in removed])
    night("2026-11-20")
    third = check("2026-11-20")
    made = third.manifest.update
    assert made is not None and (made.way, made.nights, made.full_run) == ("whole", 0, third.manifest.run)
    assert planned(third) == [("update_planned", "changes"), ("update_given_up", "")]
    stages = [stage.stage for stage in third.manifest.stages]
    assert stages.index("update") < stages.index("bound")  # the time of an update that is given up is accounted for
    assert Path("results/latest").readlink() == Path("2026-11-20")

    write("2026-11-21", [edge for edge in cliques if edge not in removed])
    night("2026-11-21")
    made = check("2026-11-21").manifest.update
    assert made is not None and (made.nights, made.files_kept) == (1, len(third.manifest.outputs))
