"""What extraction asks of the cluster, and what it keeps there meanwhile."""

from __future__ import annotations

import gc
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from distributed import Client

from dense_answers import check_dense
from edgemill.pipeline import mine
from edgemill.pipeline.cluster.engine import Engine
from edgemill.pipeline.plan.plan import Plan
from edgemill.pipeline.stages import extracting
from edgemill.tasks.generate import generate
from known_graphs import FACEBOOK
from runs import write_rows

QUIET: dict[str, Any] = {"device": "cpu", "output.report": False}


@pytest.fixture(scope="module")
def communities(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rows")
    generate("communities", folder, files=3, seed=4, vertices=600, communities=250, community_size=6)
    return folder


def test_trees_are_released_when_groups_are_known(
    communities: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: set[str] = set()
    sum_in_one_task = extracting.sum_in_one_task

    def counting(engine: Engine, *arguments: Any) -> Any:
        gc.collect()
        held.update(str(future.key).partition("-2")[0] for future in engine.session._futures)
        return sum_in_one_task(engine, *arguments)

    monkeypatch.setattr(extracting, "sum_in_one_task", counting)
    mine(communities, tmp_path / "out", partitions=1, **QUIET)
    assert "dn-edges" in held
    assert not held & {"grow-tree", "send-outline", "outlines", "answer-outlines"}


def test_one_task_counts_the_triangles_of_few_edges(
    communities: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: list[str] = []
    start = Engine.map

    def map_(engine: Engine, name: str, *arguments: Any, **named: Any) -> Any:
        names.append(name)
        return start(engine, name, *arguments, **named)

    monkeypatch.setattr(Engine, "map", map_)
    mine(communities, tmp_path / "out", partitions=1, **QUIET)
    after = names[names.index("send-dn-edges") :]
    assert after[: after.index("triangles") + 1] == ["send-dn-edges", "dn-edges", "triangles"]


@pytest.mark.parametrize(("clique", "counts"), [(True, [2]), pytest.param(False, [1], marks=pytest.mark.slow)])
def test_groups_are_as_many_as_what_is_left_of_the_graph_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, two_workers: Client, clique: bool, counts: list[int]
) -> None:
    """All edges of a clique are in a DN-graph, and few of facebook. Beside the clique is a star: its component is a
    leaf that is none, and the last bucket has no edge.
    """
    found: list[int] = []

    def sum_by_shards(*arguments: Any) -> Any:
        found.append(arguments[-2])
        return by_shards(*arguments)

    def sum_in_one_task(*arguments: Any) -> Any:
        found.append(1)
        return in_one_task(*arguments)

    by_shards, in_one_task = extracting.sum_by_shards, extracting.sum_in_one_task
    monkeypatch.setattr(extracting, "sum_by_shards", sum_by_shards)
    monkeypatch.setattr(extracting, "sum_in_one_task", sum_in_one_task)
    rows = [*combinations(range(12), 2), *((12, leaf) for leaf in range(13, 35))]
    path = write_rows(tmp_path / "rows.parquet", rows) if clique else FACEBOOK
    check_dense(mine(path, tmp_path / "out", client=two_workers, device="cpu", partitions=2))
    assert found == counts


def test_no_task_has_the_outlines_of_many_buckets(
    communities: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    joins: list[int] = []
    start = Engine.map

    def map_(engine: Engine, name: str, function: Any, arguments: Any, *more: Any, **named: Any) -> Any:
        if name == "outlines":
            joins.append(len(arguments))
        return start(engine, name, function, arguments, *more, **named)

    monkeypatch.setattr(Engine, "map", map_)
    monkeypatch.setattr("edgemill.pipeline.stages.extracting.FAN_IN", 2)
    how: dict[str, Any] = {
        "output.report": False,
        "cluster": {"device": "cpu", "threads_per_worker": 2},
    }
    monkeypatch.setattr(Plan, "buckets", 7)
    result = mine(communities, tmp_path / "out", **how)
    assert joins == [4, 2, 1]
    check_dense(result)
