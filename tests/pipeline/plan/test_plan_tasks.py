"""Tasks that a plan tells of against those that the scheduler is given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from distributed import Client

from edgemill.pipeline import mine
from edgemill.pipeline.cluster.engine import Engine, Future
from edgemill.pipeline.events import Events, Stage
from edgemill.pipeline.inputs.input_object import open_input
from edgemill.pipeline.plan.choice import make_plan, plan_run
from edgemill.pipeline.plan.plan import Plan, stage_tasks
from edgemill.pipeline.settings.sources import make_settings
from edgemill.pipeline.stages.layout import Layout
from edgemill.tasks.generate import generate


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Without locality: everybody has something for everybody."""
    folder = tmp_path_factory.mktemp("rows")
    generate("rmat", folder, files=3, seed=4, scale=8, edge_factor=16)
    return folder


class Count:
    """Of the tasks of all stages, but for the steps of bounding, and those that load kernels."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tasks = 0
        stages: list[str] = []
        start, stage = Engine._start, Events.stage

        def started(
            engine: Engine, name: str, function: Any, arguments: Sequence[Any], *given: Any, **how: Any
        ) -> list[Future]:
            step = stages[-1:] == ["bound"] and name not in ("send-results", "results")
            self.tasks += 0 if step or name == "load" else len(arguments)
            return start(engine, name, function, arguments, *given, **how)

        @contextmanager
        def within(events: Events, name: str, tasks: int) -> Iterator[Stage]:
            stages.append(name)
            with stage(events, name, tasks) as opened:
                yield opened
            stages.pop()

        monkeypatch.setattr(Engine, "_start", started)
        monkeypatch.setattr(Events, "stage", within)


@pytest.mark.parametrize(
    ("partitions", "waves"), [(1, False), (5, False), pytest.param(2, True, marks=pytest.mark.slow)]
)
def test_a_plan_counts_tasks(
    rows: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    two_workers: Client,
    partitions: int,
    waves: bool,
) -> None:
    if waves:
        monkeypatch.setattr(Plan, "in_waves", property(lambda _: True))
    counted = Count(monkeypatch)
    how: dict[str, Any] = {"device": "cpu", "partitions": partitions}
    how |= {"ingest": {"rows_per_block": 1500}, "checkpoint": {"every_seconds": None}}
    settings = make_settings(str(rows), str(tmp_path / "out"), **how)
    plan = plan_run(settings, open_input(settings), Engine.connect(two_workers, "plan").capacity)
    mine(rows, tmp_path / "out", client=two_workers, **how)
    assert plan.in_shards is (partitions > 1)
    assert 0.85 * plan.tasks <= counted.tasks <= 1.05 * plan.tasks


@pytest.mark.parametrize(
    ("asked", "threads"), [({"method": "band"}, 2), ({"partitions": 3}, 2), ({"partitions": 3}, 4)]
)
def test_in_one_process(
    rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: dict[str, Any], threads: int
) -> None:
    counted = Count(monkeypatch)
    how: dict[str, Any] = {"device": "cpu", "threads_per_worker": threads} | asked
    mine(rows, tmp_path / "out", **how)
    settings = make_settings(str(rows), str(tmp_path / "out"), **how)
    assert counted.tasks == make_plan(settings).tasks


def test_they_grow_with_the_buckets_and_by_the_square_of_the_workers() -> None:
    """Of the workers, as a parcel goes from each to each. Where memory is shared there are none."""
    few = Layout(16, 16, 1, 1, workers=4, threads=4, apart=True)
    assert stage_tasks(few) < stage_tasks(replace(few, blocks=32, buckets=32)) < 2.5 * stage_tasks(few)
    many = replace(few, blocks=128, buckets=128, workers=32)
    parcels = stage_tasks(many) - stage_tasks(replace(many, apart=False))
    twice = replace(many, blocks=256, buckets=256, workers=64)
    assert 3 < (stage_tasks(twice) - stage_tasks(replace(twice, apart=False))) / parcels < 4
    assert stage_tasks(replace(few, apart=False)) < stage_tasks(few)
