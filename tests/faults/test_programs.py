"""Workers that are killed while programs run: the run resumes from its checkpoint, with the same result."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

import runs
from edgemill.pipeline import mine
from edgemill.pipeline.events import Events
from edgemill.pipeline.stages import limits
from mortal_programs import die_in_a_superstep

PROGRAMS = ("lambda", "pagerank", "components", "labels")
HOW: dict[str, Any] = {"device": "cpu", "output.report": False, "programs": PROGRAMS}


@pytest.mark.slow
@pytest.mark.parametrize("carrier", ["shared-memory", "dask"])
@pytest.mark.parametrize("when", ["before the first program", "within a superstep", "after a program"])
def test_a_killed_worker(when: str, carrier: str, rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LEAST_ENTRIES", 1)
    plain = mine(rows, tmp_path / "plain", **HOW)
    with runs.two_processes() as client:
        workers = sorted(client.run(os.getpid).items())
        if when == "within a superstep":
            client.run(die_in_a_superstep, workers=[workers[1][0]])
        kills = {"before the first program": ("stage_started", "programs"), "after a program": ("program", "pagerank")}
        told = _told(monkeypatch, workers[0][1], kills.get(when))
        result = mine(rows, tmp_path / "out", client=client, bounding={"carrier": carrier}, **HOW)
        # The edges and the vertices are made again by their tasks. The columns of a program that has finished are
        # made by the next attempt, which runs this program again.
        assert told.count("rolled_back") == (when != "before the first program")
        assert result.vertices.to_table().equals(plain.vertices.to_table())
        assert {record.groups for record in result.manifest.programs} == {2}
        runs.assert_nothing_left(client)


def _told(monkeypatch: pytest.MonkeyPatch, pid: int, kill_at: tuple[str, str] | None) -> list[str]:
    """The events of a run, by name. Kills the process `pid` at the first event `kill_at`: its name, and its stage or
    program.
    """
    told: list[str] = []
    emit = Events.emit
    left = [kill_at]

    def noted(self: Events, event: str, **more: Any) -> None:
        if (event, more.get("stage") or more.get("name")) == left[0]:
            left[0] = None
            os.kill(pid, signal.SIGKILL)
        told.append(event)
        emit(self, event, **more)

    monkeypatch.setattr(Events, "emit", noted)
    return told
