"""Workers that are killed: Dask does their tasks again elsewhere, and the answer is the same, edge by edge.

pytest -m "slow or not slow" tests/faults        # all seeds
"""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from distributed.diagnostics.plugin import SchedulerPlugin

import runs
from edgemill.pipeline import Result, mine
from edgemill.pipeline.checkpoint import Checkpoint
from edgemill.pipeline.telemetry import Events

HOW: dict[str, Any] = {"device": "cpu", "partitioning": {"count": 4, "method": "hash"}}
SEEDS = [*range(2), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 20))]


@pytest.fixture(scope="module")
def plain(rows: Path, tmp_path_factory: pytest.TempPathFactory) -> Result:
    return mine(rows, tmp_path_factory.mktemp("plain") / "out", **HOW)


def tables(result: Result) -> list[pa.Table]:
    return [result.edges.to_table(), result.vertices.to_table()]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_killed_worker(rows: Path, plain: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Killed at some event of the run, of those that tell of a task or an exchange that is done."""
    drawn = random.Random(seed)
    emit, told, at = Events.emit, iter(range(10**6)), drawn.randrange(5, 50)
    killed: list[int] = []
    with runs.two_processes() as client:
        pids = {address: worker["pid"] for address, worker in client.run(lambda: {"pid": os.getpid()}).items()}

        def kill(self: Events, event: str, /, **fields: object) -> None:
            emit(self, event, **fields)
            if event in ("task_done", "exchange") and next(told) == at:
                killed.append(pids[drawn.choice(sorted(pids))])
                os.kill(killed[0], signal.SIGKILL)

        monkeypatch.setattr(Events, "emit", kill)
        kept = {"every_exchanges": drawn.choice([1, 5, None])}
        result = mine(rows, tmp_path / "out", client=client, checkpoint=kept, **HOW)
    assert len(killed) == 1
    assert tables(result) == tables(plain)
    assert result.manifest.counts == plain.manifest.counts


class Started(SchedulerPlugin):
    """Names of the tasks that workers are given."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def transition(self, key: Any, start: str, finish: str, *args: Any, **kwargs: Any) -> None:
        if finish == "processing":
            self.names.add(str(key).rsplit("-", 4)[0])


@pytest.mark.parametrize("method", ["band", "fixpoint"])
def test_what_is_kept_of_the_graph_is_not_made_again(
    rows: Path, plain: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """A worker is lost once the graph is kept: its share is read from there, and nothing of the input."""
    save, exchange, started = Checkpoint.save_graph, Events.exchange, Started()
    with runs.two_processes() as client:
        pids = list(client.run(os.getpid).values())
        running: Any = client.cluster

        def save_graph(self: Checkpoint, *arguments: Any) -> None:
            save(self, *arguments)
            client.sync(forget)

        async def forget() -> None:
            running.scheduler.add_plugin(started, name="started")

        def kill(self: Events, record: Any) -> None:
            exchange(self, record)
            if record.exchange == 2:
                os.kill(pids[0], signal.SIGKILL)

        monkeypatch.setattr(Checkpoint, "save_graph", save_graph)
        monkeypatch.setattr(Events, "exchange", kill)
        kept = {"every_seconds": 0.0, "every_exchanges": None}
        monkeypatch.setattr(Checkpoint, "due", lambda self: self.graph is None)  # the graph, and nothing after it
        result = mine(rows, tmp_path / "out", client=client, checkpoint=kept, **HOW | {"bounding": {"method": method}})
    assert tables(result) == tables(plain)
    restored = {"kept-ids", "kept-edges", "kept-degrees", "kept-rows", "kept-subgraphs"}
    assert restored <= started.names
    ingest = {"read", "send-ids", "ids", "numbers", "pairs", "degrees", "ranks", "owned", "lists", "subgraph"}
    assert not started.names & (ingest | {f"{name}-part" for name in ingest})
