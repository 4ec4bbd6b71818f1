"""Partitioners that follow the edges, by workers apart: the same tables, wherever their buckets walk."""

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
from edgemill.pipeline import partitioning as partitioning_module
from edgemill.pipeline.config import make_settings
from edgemill.pipeline.engine import GPU, Engine, Future
from edgemill.pipeline.partitioning import METHODS
from edgemill.pipeline.planning import open_input
from edgemill.pipeline.telemetry import Events
from edgemill.tasks.generate import generate
from edgemill.tasks.sources import plan_blocks

Mine = Callable[..., Result]


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rows")
    generate("communities", folder, files=3, seed=4, vertices=600, communities=250, community_size=6, permute=True)
    return folder


@pytest.mark.parametrize("methods", [("range", "streaming"), pytest.param(tuple(METHODS), marks=pytest.mark.slow)])
def test_by_workers_apart(
    rows: Path,
    tmp_path: Path,
    mined: Mine,
    two_workers: Client,
    monkeypatch: pytest.MonkeyPatch,
    methods: tuple[str, ...],
) -> None:
    monkeypatch.setattr(partitioning_module, "ABREAST", 2)  # buckets walk in groups
    expected = mined(rows, partitions=1)
    cuts = {}
    for method in methods:
        how = {"partitioning": {"count": 5, "method": method}, "device": "cpu", "output.report": False}
        result = mine(rows, tmp_path / method, client=two_workers, **how)
        assert result.edges.to_table() == expected.edges.to_table()
        assert len(result.manifest.partitions) == 5
        cuts[method] = sum(part.cut for part in result.manifest.partitions)
    runs.assert_nothing_left(two_workers)
    along_edges = [cuts[method] for method in ("streaming", "triangles", "multilevel") if method in methods]
    assert max(along_edges) < 0.5 * cuts["range"]


def test_triangles_are_counted_where_a_gpu_has_one_task_at_a_time(
    rows: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Partitions of the weighing, too, are not to share a GPU's memory; what follows buckets goes beside them."""
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
        owned, _ = stages.partition(engine, events, buckets, 3, "triangles", to_host)
        assert sum(engine.peek(owned, len)) == sum(engine.peek(buckets.edges, len)) > 0
    within = {name for name, when in asked.items() if when == {True}}
    assert within == {"send-lists", "lists", "replies", "supports"}
    assert {"owned", "results", "restream"} <= asked.keys() - within
    assert all(len(when) == 1 for when in asked.values())
