"""Workers that are killed while programs run: the run resumes from its checkpoint, with the same result."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from distributed import Client

import runs
from edgemill.pipeline import mine
from edgemill.pipeline.events import Events
from edgemill.pipeline.stages import limits
from mortal_programs import die_in_a_superstep

PROGRAMS = ("lambda", "pagerank", "components", "labels")
HOW: dict[str, Any] = {"device": "cpu", "output.report": False, "programs": PROGRAMS}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("when", "carrier"),
    [
        ("within a superstep", "shared-memory"),
        pytest.param("within a superstep", "dask", marks=pytest.mark.slow),
        pytest.param("between programs", "shared-memory", marks=pytest.mark.slow),
        pytest.param("between programs", "dask", marks=pytest.mark.slow),
    ],
)
def test_a_killed_worker(when: str, carrier: str, rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LEAST_ENTRIES", 1)
    plain = mine(rows, tmp_path / "plain", **HOW)
    with runs.two_processes() as client:
        workers = sorted(client.run(os.getpid).items())
        if when == "within a superstep":
            client.run(die_in_a_superstep, workers=[workers[1][0]])
        told = _told(monkeypatch, client, workers[0][1] if when == "between programs" else None)
        result = mine(rows, tmp_path / "out", client=client, bounding={"carrier": carrier}, **HOW)
        # What is lost between programs is made again by itself.
        assert told.count("rolled_back") == (when == "within a superstep")
        assert result.vertices.to_table().equals(plain.vertices.to_table())
        assert {record.groups for record in result.manifest.programs} == {2}
        runs.assert_nothing_left(client)


def _told(monkeypatch: pytest.MonkeyPatch, client: Client, pid: int | None) -> list[str]:
    """The events of a run, by name. Kills the process `pid` after the first program."""
    told: list[str] = []
    emit = Events.emit

    def noted(self: Events, event: str, **more: Any) -> None:
        if event == "program" and pid is not None and "program" not in told:
            os.kill(pid, signal.SIGKILL)
        told.append(event)
        emit(self, event, **more)

    monkeypatch.setattr(Events, "emit", noted)
    return told
