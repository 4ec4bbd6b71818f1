"""Partitioners by workers apart: the same tables. Supports are counted where a GPU has one task at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from distributed import Client

import runs
from edgemill.kernels import to_host
from edgemill.pipeline import Result, mine, stages
from edgemill.pipeline.config import make_settings
from edgemill.pipeline.engine import GPU, Engine, Future
from edgemill.pipeline.partitioning import METHODS, count_supports, put_in_order
from edgemill.pipeline.planning import open_input
from edgemill.pipeline.telemetry import Events
from edgemill.tasks.generate import generate
from edgemill.tasks.publish import BucketResults
from edgemill.tasks.sources import plan_blocks

Mine = Callable[..., Result]


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rows")
    generate("communities", folder, files=3, seed=4, vertices=600, communities=250, community_size=6, permute=True)
    return folder


@pytest.mark.parametrize("method", METHODS)
def test_by_workers_apart(rows: Path, tmp_path: Path, mined: Mine, two_workers: Client, method: str) -> None:
    expected = mined(rows, partitions=1)
    how: dict[str, Any] = {"partitioning": {"count": 5, "method": method}, "method": "band", "device": "cpu"}
    how["output.report"] = False
    result = mine(rows, tmp_path / method, client=two_workers, **how)
    assert result.edges.to_table() == expected.edges.to_table()
    assert len(result.manifest.partitions) == 5
    runs.assert_nothing_left(two_workers)


def test_triangles_are_counted_where_a_gpu_has_one_task_at_a_time(
    rows: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Partitions that count supports are not to share a GPU's memory; what follows buckets goes beside them."""
    asked: dict[str, set[bool]] = {}
    start = Engine._start

    def started(self: Engine, name: str, *given: Any) -> list[Future]:
        asked.setdefault(name, set()).add(self._resources == {GPU: 1})
        return start(self, name, *given)

    monkeypatch.setattr(Engine, "_start", started)
    settings = make_settings(str(rows), str(tmp_path / "out"))
    source = open_input(settings)
    options: dict[str, Any] = {"n_workers": 1, "threads_per_worker": 2, "processes": False, "resources": {GPU: 1}}
    with runs.cluster(**options) as client, Events() as events:
        engine = Engine(client, "run")
        blocks, _ = stages.read(engine, events, source, plan_blocks(source, 1000), "refuse", to_host)
        buckets = stages.number(engine, events, source, blocks, 2, to_host)
        engine.capacity = replace(engine.capacity, device_bytes=1)
        graph = put_in_order(engine, buckets.edges, int(buckets.starts[-1]), to_host)
        supports = count_supports(graph, 3)
        assert sum(engine.peek(supports, _rows)) == sum(engine.peek(buckets.edges, len)) > 0
    within = {name for name, when in asked.items() if when == {True}}
    assert within == {"send-lists", "lists", "replies", "supports"}
    assert {"owned", "results"} <= asked.keys() - within
    assert all(len(when) == 1 for when in asked.values())


def _rows(results: BucketResults) -> int:
    return len(results.support)
