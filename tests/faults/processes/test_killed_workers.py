"""Killed workers: Dask runs their tasks again elsewhere, and the result is the same.

`make faults` takes all seeds.
"""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from distributed import Client
from distributed.diagnostics.plugin import SchedulerPlugin

import runs
from edgemill.pipeline import ClusterLost, Result, mine
from edgemill.pipeline.bounding.on_copies import OnCopies
from edgemill.pipeline.checkpoint.checkpoint import Checkpoint
from edgemill.pipeline.events import Events
from edgemill.pipeline.plan.plan import Plan
from edgemill.pipeline.run.full import MAX_ATTEMPTS
from trials import Trials

HOW: dict[str, Any] = {"device": "cpu", "partitions": 4}
SEEDS = [pytest.param(seed, marks=pytest.mark.slow) for seed in range(20)]


@pytest.fixture(scope="module")
def plain(rows: Path, tmp_path_factory: pytest.TempPathFactory) -> Result:
    return mine(rows, tmp_path_factory.mktemp("plain") / "out", **HOW)


def tables(result: Result) -> list[pa.Table]:
    found = (result.edges, result.vertices, result.hierarchy, result.dn_graphs, result.dn_graph_members)
    return [table.to_table() for table in found]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_killed_worker(
    rows: Path, plain: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trials: Trials, seed: int
) -> None:
    """Workers are killed at an event of a finished task or level. Every other run has its results in files."""
    drawn = random.Random(seed)
    if seed % 2:
        monkeypatch.setattr(Plan, "in_waves", property(lambda _: True))
    emit, told, at = Events.emit, iter(range(10**6)), drawn.randrange(2, 20)
    killed: list[int] = []
    with runs.two_processes() as client:
        pids = {address: worker["pid"] for address, worker in client.run(lambda: {"pid": os.getpid()}).items()}

        def kill(self: Events, event: str, /, **fields: object) -> None:
            emit(self, event, **fields)
            if event in ("task_done", "level") and next(told) == at:
                killed.append(pids[drawn.choice(sorted(pids))])
                os.kill(killed[0], signal.SIGKILL)

        monkeypatch.setattr(Events, "emit", kill)
        kept = {"every_seconds": drawn.choice([0.0, 300.0])}
        result = mine(rows, tmp_path / "out", client=client, checkpoint=kept, **HOW)
    assert len(killed) == 1
    assert tables(result) == tables(plain)
    assert result.manifest.counts == plain.manifest.counts
    trials("a worker is killed", "same")


class Started(SchedulerPlugin):
    """Names of the tasks that workers run."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def transition(self, key: Any, start: str, finish: str, *args: Any, **kwargs: Any) -> None:
        if finish == "processing":
            self.names.add(str(key).rsplit("-", 4)[0])


@pytest.mark.slow
def test_what_is_kept_of_the_graph_is_not_made_again(
    rows: Path, plain: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker is lost after the graph was saved: its share is read from the checkpoint, not from the input."""
    save, started = Checkpoint.save_graph, Started()
    with runs.two_processes() as client:
        pids = list(client.run(os.getpid).values())
        running: Any = client.cluster

        def save_graph(self: Checkpoint, *arguments: Any) -> None:
            save(self, *arguments)
            client.sync(forget)
            os.kill(pids[0], signal.SIGKILL)

        async def forget() -> None:
            running.scheduler.add_plugin(started, name="started")

        monkeypatch.setattr(Checkpoint, "save_graph", save_graph)
        monkeypatch.setattr(Checkpoint, "due", lambda self, *_: self.graph is None)  # the graph, and nothing after it
        result = mine(rows, tmp_path / "out", client=client, checkpoint={"every_seconds": 0.0}, **HOW)
    assert tables(result) == tables(plain)
    restored = {"kept-ids", "kept-edges", "kept-degrees", "kept-rows", "kept-subgraphs"}
    assert restored & started.names
    ingest = {"read", "send-ids", "ids", "numbers", "pairs", "halves"}  # extraction has tasks of the other names, too
    assert not started.names & ingest


class Killing:
    """Kills a worker when the tasks of a search have ended: from the `first` time, `times` in all."""

    def __init__(self, client: Client, monkeypatch: pytest.MonkeyPatch, first: int, times: int) -> None:
        self.told: list[tuple[str, dict[str, Any]]] = []
        self.searches = 0
        search, emit = OnCopies._search, Events.emit

        def search_and_kill(own: OnCopies, *how: Any) -> list[Any]:
            states = search(own, *how)
            self.searches += 1
            if first <= self.searches < first + times:
                own.context.engine.peek(states, lambda state: state.left)  # they are in memory
                holder = next(iter(client.who_has(states)[states[0].key]))
                os.kill(client.run(os.getpid, workers=[holder])[holder], signal.SIGKILL)
            return states

        def note(events: Events, event: str, /, **fields: Any) -> None:
            emit(events, event, **fields)
            self.told.append((event, fields))

        monkeypatch.setattr(OnCopies, "_search", search_and_kill)
        monkeypatch.setattr(Events, "emit", note)
        monkeypatch.setattr("edgemill.pipeline.plan.choice.LEAST_EDGES", 1)

    def events(self, event: str) -> list[dict[str, Any]]:
        return [fields for name, fields in self.told if name == event]


SEARCHED: dict[str, Any] = {"device": "cpu", "bounding.carrier": "shared-memory"}


@pytest.mark.parametrize("method", ["band", pytest.param("fixpoint", marks=pytest.mark.slow)])
def test_the_search_goes_on_from_what_was_kept_last(
    rows: Path, plain: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: Any
) -> None:
    """Two workers iterate together. The lost state has no lineage."""
    with runs.two_processes() as client:
        killing = Killing(client, monkeypatch, first=3, times=1)
        kept: dict[str, Any] = {"every_exchanges": 1}
        result = mine(rows, tmp_path / "out", client=client, method=method, checkpoint=kept, **SEARCHED)
    assert tables(result) == tables(plain)
    exchanges = list(range(1, result.manifest.bounding.exchanges + 1))
    assert len(killing.events("rolled_back")) == 1
    assert [own["exchange"] for own in killing.events("exchange")] == exchanges
    assert [own.exchange for own in result.manifest.exchanges] == exchanges


@pytest.mark.slow
def test_workers_that_are_lost_again_and_again(rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with runs.two_processes() as client:
        killing = Killing(client, monkeypatch, first=1, times=100)
        with pytest.raises(ClusterLost, match="unsaved bounding"):
            mine(rows, tmp_path / "out", client=client, method="band", **SEARCHED)
    assert killing.searches == MAX_ATTEMPTS
    assert len(killing.events("rolled_back")) == MAX_ATTEMPTS - 1
