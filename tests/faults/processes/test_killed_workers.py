"""Killed workers: Dask runs their tasks again elsewhere, and the result is the same.

`make faults` takes all seeds.
"""

from __future__ import annotations

import itertools
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
from edgemill.pipeline.bounding.rounds import Round
from edgemill.pipeline.checkpoint.checkpoint import Checkpoint
from edgemill.pipeline.monitor.events import Events
from edgemill.pipeline.plan.plan import Plan
from edgemill.pipeline.run.attempts import MAX_ATTEMPTS
from trials import Trials

HOW: dict[str, Any] = {
    "device": "cpu",
    "partitioning": {"count": 4, "method": "hash"},
    "bounding": {"method": "band"},
}
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
    """Workers are killed at an event of a finished task or exchange. Every other run has its results in files."""
    drawn = random.Random(seed)
    if seed % 2:
        monkeypatch.setattr(Plan, "in_waves", property(lambda _: True))
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
    trials("a worker is killed", "same")


class Started(SchedulerPlugin):
    """Names of the tasks that workers run."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def transition(self, key: Any, start: str, finish: str, *args: Any, **kwargs: Any) -> None:
        if finish == "processing":
            self.names.add(str(key).rsplit("-", 4)[0])


@pytest.mark.slow
@pytest.mark.parametrize("method", ["band", "fixpoint"])
def test_what_is_kept_of_the_graph_is_not_made_again(
    rows: Path, plain: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """A worker is lost after the graph was saved: its share is read from the checkpoint, not from the input."""
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
    ingest = {"read", "send-ids", "ids", "numbers", "pairs", "subgraph"}  # extraction has tasks of the other names, too
    assert not started.names & ingest


class Killing:
    """Kills a worker after the lineage of an exchange was cut: from the `first` time, `times` in all."""

    def __init__(self, client: Client, monkeypatch: pytest.MonkeyPatch, first: int, times: int) -> None:
        self.told: list[tuple[str, dict[str, Any]]] = []
        self.killed: list[int] = []
        """Exchanges after which it killed."""
        forget, emit, forgotten = Round._cut_lineage, Events.emit, itertools.count(1)

        def forget_and_kill(round_: Round) -> None:
            forget(round_)
            if round_._tasks:  # a worker was too busy; the next time will do
                return
            if first <= next(forgotten) < first + times:
                self.killed.append(round_.number)
                os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)

        def note(events: Events, event: str, /, **fields: Any) -> None:
            emit(events, event, **fields)
            self.told.append((event, fields))

        monkeypatch.setattr(Round, "_cut_lineage", forget_and_kill)
        monkeypatch.setattr(Events, "emit", note)
        monkeypatch.setattr("edgemill.pipeline.bounding.rounds.MOST_TASKS", 0)  # after every exchange

    def exchanges(self, event: str) -> list[int]:
        return [fields["exchange"] for name, fields in self.told if name == event]


@pytest.mark.parametrize(
    ("method", "every"),
    [
        ("band", 3),
        ("band", None),
        ("fixpoint", 3),
        ("fixpoint", None),
    ],
)
@pytest.mark.slow
def test_the_search_goes_on_from_what_was_kept_last(
    rows: Path,
    plain: Result,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    every: int | None,
) -> None:
    """The lost states have no lineage."""
    with runs.two_processes() as client:
        killing = Killing(client, monkeypatch, first=4, times=1)
        how = HOW | {"bounding": {"method": method}, "checkpoint": {"every_exchanges": every}}
        result = mine(rows, tmp_path / "out", client=client, **how)
    assert tables(result) == tables(plain)
    (at,) = killing.killed
    assert killing.exchanges("rolled_back") == [at]
    kept = 0 if every is None else (at - 1) // every * every
    exchanges = list(range(1, result.manifest.bounding.exchanges + 1))
    assert killing.exchanges("exchange") == [*range(1, at + 1), *exchanges[kept:]]
    assert [own.exchange for own in result.manifest.exchanges] == exchanges


@pytest.mark.slow
def test_workers_that_are_lost_again_and_again(rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with runs.two_processes() as client:
        killing = Killing(client, monkeypatch, first=1, times=100)
        with pytest.raises(ClusterLost, match="a worker died with unsaved bounding state"):
            mine(rows, tmp_path / "out", client=client, checkpoint={"every_exchanges": None}, **HOW)
    furthest, tries = 0, 0
    for exchange in killing.exchanges("rolled_back"):
        furthest, tries = (exchange, 1) if exchange > furthest else (furthest, tries + 1)
        assert tries < MAX_ATTEMPTS
    assert tries == MAX_ATTEMPTS - 1  # the next one was the last
