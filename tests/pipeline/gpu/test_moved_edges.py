"""Edges of buckets that were moved to host memory stay there until λ is sent to the buckets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from edgemill.pipeline import ClusterLost, Result, mine
from edgemill.pipeline.cluster.engine import Engine, Future
from edgemill.pipeline.events import Events
from edgemill.pipeline.plan.plan import PlanFacts
from edgemill.pipeline.run import tables
from edgemill.pipeline.stages import ingesting, partitioning, publishing
from edgemill.pipeline.stages.task_engine import SequentialEngine
from edgemill.tasks.bound.intervals import Intervals
from edgemill.tasks.device import MemorySpace
from edgemill.tasks.generate import generate
from edgemill.tasks.inputs.open_source import open_source
from edgemill.tasks.inputs.sources import plan_blocks


class Watching(SequentialEngine):
    """Notes the tasks that take a result that was moved, which would bring it back to the GPU."""

    def __init__(self) -> None:
        super().__init__()
        self.moved: list[Any] = []
        self.brought_back: list[str] = []

    def move_to_host(self, futures: Sequence[Any]) -> None:
        self.moved += futures

    def map(self, name: str, function: Callable[..., Any], arguments: Sequence[Sequence[Any]], *how: Any) -> list[Any]:
        """As in SequentialEngine."""
        taken = [part for own in arguments for value in own for part in (value if isinstance(value, list) else [value])]
        if any(part is result for part in taken for result in self.moved):
            self.brought_back.append(name)
        return super().map(name, function, arguments)


@pytest.mark.parametrize("in_parts", [True, False])
def test_no_task_needs_moved_edges(tmp_path: Path, in_parts: bool) -> None:
    generate("rmat", str(tmp_path), files=2, seed=4, scale=8, edge_factor=8)
    source, engine, events = open_source(str(tmp_path)), Watching(), Events()
    blocks, _ = ingesting.read(engine, events, source, plan_blocks(source, 1000), "drop", MemorySpace.HOST)
    buckets = ingesting.number(engine, events, source, blocks, 3, MemorySpace.HOST)
    owned, degrees = partitioning.partition(engine, events, buckets, MemorySpace.HOST, in_parts)
    assert [id(own) for own in engine.moved] == [id(own) for own in (*buckets.ids, *buckets.edges) if in_parts]
    rows, subgraph, _ = partitioning.triangulate(engine, events, owned)
    assert not engine.brought_back
    numbers = np.arange(len(owned), dtype=np.int32)
    found = [SimpleNamespace(support=subgraph.support)], [Intervals(numbers, numbers)]
    publishing.collect_results(engine, buckets, publishing.Partitions([rows], degrees), *found, in_parts)
    assert engine.brought_back == ["results"] * in_parts


@pytest.fixture
def moves(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of results in each move of a run by the steps of one in parts, which the processors take."""
    monkeypatch.setattr(PlanFacts, "ingest_in_parts", property(lambda plan: True))
    monkeypatch.setattr(PlanFacts, "ingest_on_device", property(lambda plan: False))
    monkeypatch.setattr(PlanFacts, "buckets", property(lambda plan: 3))
    found: list[int] = []

    def move_to_host(self: Engine, futures: Sequence[Future]) -> None:
        assert all(future.done() for future in futures)
        found.append(len(futures))
        move(self, futures)

    move = Engine.move_to_host
    monkeypatch.setattr(Engine, "move_to_host", move_to_host)
    return found


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rows")
    generate("rmat", str(folder), files=2, seed=4, scale=9, edge_factor=8)
    return folder


@pytest.fixture(scope="module")
def plain(rows: Path, tmp_path_factory: pytest.TempPathFactory) -> Result:
    return mine(rows, tmp_path_factory.mktemp("plain") / "out", device="cpu", partitions=1)


def assert_same(result: Result, plain: Result) -> None:
    for table in ("edges", "vertices", "dn_graphs"):
        assert getattr(result, table).to_table() == getattr(plain, table).to_table()


def test_a_run_in_parts(rows: Path, plain: Result, moves: list[int], tmp_path: Path) -> None:
    assert_same(mine(rows, tmp_path / "out", device="cpu", partitions=1), plain)
    assert moves and set(moves) == {6}


@pytest.mark.parametrize("stage", ["partitioning.triangulate", "publishing.collect_results"])
def test_edges_move_again_when_a_run_goes_on(
    rows: Path, plain: Result, moves: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, stage: str
) -> None:
    """Restored edges are on the GPU, and so are those that were saved in a checkpoint."""

    def lose(*_: object) -> None:
        raise ClusterLost("planted")

    how: dict[str, Any] = {"device": "cpu", "partitions": 1, "checkpoint": {"every_seconds": 0.0}}
    with monkeypatch.context() as patch:
        patch.setattr(f"edgemill.pipeline.stages.{stage}", lose)
        if stage == "publishing.collect_results":
            patch.setattr("edgemill.pipeline.run.tables.collect_results", lose)
        with pytest.raises(ClusterLost, match="planted"):
            mine(rows, tmp_path / "out", **how)
    before = len(moves)
    result = mine(rows, tmp_path / "out", **how)
    assert "restore" in [own.stage for own in result.manifest.stages]
    assert len(moves) > before and set(moves) == {6}
    assert_same(result, plain)


@pytest.mark.parametrize(("compact_rows", "in_parts"), [(True, False), (False, True), (True, True)])
def test_edges_are_not_encoded_early_where_the_gpu_needs_the_room(compact_rows: bool, in_parts: bool) -> None:
    """Also if few of the rows are distinct, so that plain rows fit: the rows of edges are in host memory."""
    plan = SimpleNamespace(compact_rows=compact_rows, ingest_in_parts=in_parts)
    engine = SimpleNamespace(capacity=SimpleNamespace(device_bytes=1, threads=16))
    run: Any = SimpleNamespace(engine=engine, plan=plan)
    graph: Any = SimpleNamespace(buckets=None, partitions=None)
    assert tables._early_edges(run, graph) is None
    plan.compact_rows = plan.ingest_in_parts = False
    with pytest.raises(AttributeError):  # goes on to the supports
        tables._early_edges(run, graph)
