"""The search for λ reports settled edges while it runs."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from distributed import Client

import runs
from edgemill.pipeline.bounding import schedule
from edgemill.pipeline.events import Events
from edgemill.pipeline.run.mining import mine_settings
from edgemill.pipeline.settings.sources import make_settings
from edgemill.tasks.graph import PartitionCounts

CLIQUES = [edge for first, size in ((0, 4), (10, 5), (20, 7)) for edge in combinations(range(first, first + size), 2)]


class Heard:
    def __init__(self) -> None:
        self.events: list[Mapping[str, Any]] = []

    def show(self, event: Mapping[str, Any]) -> None:
        self.events.append(event)

    def close(self) -> None:
        pass


@pytest.mark.parametrize("partitions", [1, 2])
def test_peeling_tells_of_every_edge(
    tmp_path: Path, client: Client, monkeypatch: pytest.MonkeyPatch, partitions: int
) -> None:
    """With one partition, and with shards."""
    monkeypatch.setattr("edgemill.pipeline.cluster.this_worker._PROGRESS_SECONDS", -1)
    rows, heard = runs.write_rows(tmp_path / "rows.parquet", CLIQUES), Heard()
    settings = make_settings(rows, tmp_path / "out", device="cpu", partitions=partitions, output={"report": False})
    with Events(heard) as events:
        mine_settings(settings, client=client, events=events)
    levels = [event for event in heard.events if event["event"] == "level"]
    assert levels
    assert {event["edges"] for event in levels} == {len(CLIQUES)}
    unsettled = [event["unsettled"] for event in levels]
    assert unsettled == sorted(unsettled, reverse=True)
    assert all(0 <= left <= len(CLIQUES) for left in unsettled)


def test_edges_of_several_that_tell_are_added() -> None:
    counts = [PartitionCounts(part, owned, owned, 0, 0) for part, owned in enumerate((60, 40))]
    with Events(heard := Heard()) as events:
        hear = schedule._ProgressListener(events, counts, {0: 60, 1: 40})
        hear({"part": 1, "level": 3, "unsettled": 10})
        hear({"part": 0, "level": 4, "unsettled": 25})
    told = [(event["level"], event["unsettled"], event["edges"]) for event in heard.events]
    assert told == [(3, 70, 100), (4, 35, 100)]
