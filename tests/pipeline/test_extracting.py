"""What extraction asks of the cluster, and what it keeps there meanwhile."""

from __future__ import annotations

import gc
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from dense_answers import check_dense
from edgemill.pipeline import mine
from edgemill.pipeline.engine import Engine
from edgemill.pipeline.extracting import supports_of
from edgemill.pipeline.partitioning import Ordered
from runs import write_rows

FACEBOOK = Path(__file__).parents[1] / "graphs" / "facebook_combined.parquet"


def test_trees_are_let_go_when_groups_are_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held: set[str] = set()

    def counting(graph: Ordered, partitions: int) -> Any:
        gc.collect()
        held.update(str(future.key).partition("-2")[0] for future in graph.engine._futures)
        return supports_of(graph, partitions)

    monkeypatch.setattr("edgemill.pipeline.extracting.supports_of", counting)
    mine(FACEBOOK, tmp_path / "out", device="cpu", partitions=1)
    assert "dn-edges" in held
    assert not held & {"grow-tree", "send-outline", "outlines", "answer-outlines"}


def test_triangles_in_one_partition_need_no_ranges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names: set[str] = set()
    start = Engine.map

    def map_(engine: Engine, name: str, *arguments: Any, **named: Any) -> Any:
        names.add(name)
        return start(engine, name, *arguments, **named)

    monkeypatch.setattr(Engine, "map", map_)
    mine(FACEBOOK, tmp_path / "out", device="cpu", partitions=1)
    assert "send-triangles" in names
    assert not names & {"send-out-degrees", "out-degrees", "cuts"}


@pytest.mark.parametrize(("clique", "counts"), [(True, [3]), (False, [1])])
def test_partitions_are_as_many_as_what_is_left_of_the_graph_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clique: bool, counts: list[int]
) -> None:
    """All edges of a clique are in a DN-graph, and few of facebook. Beside the clique is a star: its component is a
    leaf that is none, and the last bucket has no edge.
    """
    found: list[int] = []

    def counting(graph: Ordered, partitions: int) -> Any:
        found.append(partitions)
        return supports_of(graph, partitions)

    monkeypatch.setattr("edgemill.pipeline.extracting.supports_of", counting)
    rows = [*combinations(range(12), 2), *((12, leaf) for leaf in range(13, 35))]
    path = write_rows(tmp_path / "rows.parquet", rows) if clique else FACEBOOK
    check_dense(mine(path, tmp_path / "out", device="cpu", partitions=3, method="band"))
    assert found == counts


def test_no_task_has_the_outlines_of_many_buckets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    joins: list[int] = []
    start = Engine.map

    def map_(engine: Engine, name: str, function: Any, arguments: Any, *more: Any, **named: Any) -> Any:
        if name == "outlines":
            joins.append(len(arguments))
        return start(engine, name, function, arguments, *more, **named)

    monkeypatch.setattr(Engine, "map", map_)
    monkeypatch.setattr("edgemill.pipeline.extracting.ABREAST", 2)
    result = mine(
        FACEBOOK, tmp_path / "out", partitions=7, method="band", cluster={"device": "cpu", "threads_per_worker": 2}
    )
    assert joins == [4, 2, 1]
    check_dense(result)
