"""Faults while workers peel a graph in shards: killed and frozen workers, a killed driver, a cut link.

`make faults` runs all seeds. With EDGEMILL_SHARD_FAULTS=FILE each trial adds a line with the longest silence of a run.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from distributed import Client

import paced_levels
import runs
import shard_faults
from edgemill.pipeline import Result, mine
from edgemill.pipeline.cluster.connecting.start import connect
from edgemill.pipeline.cluster.engine import Engine, Future
from edgemill.pipeline.cluster.watchdog import workers_of
from edgemill.pipeline.run.full import MAX_ATTEMPTS
from edgemill.pipeline.settings.models import ClusterSettings
from edgemill.tasks.generate import generate
from hosts import hosts
from processes import DASK, EDGEMILL, ended, started
from shard_faults import MOST_SILENT_SECONDS, Told
from support_path import SUPPORT_PATH
from trials import Trials

CARRIERS = ("shared-memory", "dask")
LEVELS = 36
"""At which edges of the graph leave."""
LAST = 33
"""The last levels may not be told of: the driver listens until the tasks end."""
PACED = str(paced_levels.__file__)
HOW: dict[str, Any] = {"device": "cpu", "partitions": 2, "output.report": False}


def seeds(*quick: int) -> list[Any]:
    """Thirty seeds. Those that are not quick are marked slow."""
    return [seed if seed in quick else pytest.param(seed, marks=pytest.mark.slow) for seed in range(30)]


@pytest.fixture(scope="module")
def dense(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph with an edge that leaves at almost every level."""
    folder = tmp_path_factory.mktemp("dense")
    generate("rmat", str(folder), files=3, seed=4, scale=9, edge_factor=40)
    return folder


@pytest.fixture(scope="module")
def plain(dense: Path, tmp_path_factory: pytest.TempPathFactory) -> Result:
    """The result of a run in one process."""
    result = mine(dense, tmp_path_factory.mktemp("plain") / "out", device="cpu", partitions=1)
    assert result.manifest.bounding.steps == LEVELS
    return result


@pytest.fixture(autouse=True)
def _checkpoints_may_take_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process; these runs are shorter than ten checkpoints."""
    monkeypatch.setattr("edgemill.pipeline.checkpoint.checkpoint.MOST_SHARE", 1e9)


def kept(drawn: random.Random) -> dict[str, Any]:
    """Settings with a checkpoint every few levels, or with none."""
    return {"every_seconds": drawn.choice([0.3, 1000.0])}


@pytest.mark.parametrize("seed", seeds(0))
def test_a_killed_worker(
    dense: Path, plain: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trials: Trials, seed: int
) -> None:
    """Its nanny starts another worker, or the remaining worker holds the groups of both."""
    drawn = random.Random(seed)
    carrier, alone = CARRIERS[seed % 2], seed % 4 >= 2
    if seed == 3:
        monkeypatch.setattr("edgemill.pipeline.cluster.session._RETURN_SECONDS", 1)  # nobody comes
    with runs.two_processes() as client:
        client.run(paced_levels.pace)
        pid = drawn.choice(sorted(client.run(os.getpid).values()))

        def kill() -> None:
            nannies: list[Any] = list(client.cluster.workers.values())  # type: ignore[union-attr]
            for nanny in nannies if alone else []:
                nanny.close_gracefully()  # starts no other worker
            os.kill(pid, signal.SIGKILL)

        told = Told(monkeypatch, drawn.randrange(1, LAST), kill)
        result = mine(
            dense, tmp_path / "out", client=client, bounding={"carrier": carrier}, checkpoint=kept(drawn), **HOW
        )
        assert told.struck is not None
        assert shard_faults.same(result, plain)
        assert told.noticed < 30
        assert told.silence < MOST_SILENT_SECONDS
        shards = result.manifest.bounding.shards
        assert shards is not None
        assert (shards.groups, shards.carrier) == (2, "memory" if alone else carrier)
        shard_faults.assert_nothing_left(client, result.manifest.run)
    kind = "a worker that peels shards is killed" + (", and none comes in its place" if alone else "")
    shard_faults.note(kind, "same", told.silence, told.noticed)
    trials(kind, "same")


@pytest.mark.slow
def test_workers_killed_time_and_again(
    dense: Path, plain: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More often than a run tries without progress: checkpoints between the faults count as progress."""
    with runs.cluster(n_workers=2, threads_per_worker=1, preload=[PACED]) as client:
        nannies: list[Any] = list(client.cluster.workers.values())  # type: ignore[union-attr]

        def kill() -> None:
            os.kill(nannies[0].pid, signal.SIGKILL)

        told = Told(monkeypatch, 8, kill, again=MAX_ATTEMPTS)
        result = mine(dense, tmp_path / "out", client=client, checkpoint={"every_seconds": 0.1}, **HOW)
    assert told.names.count("rolled_back") == MAX_ATTEMPTS + 1
    assert shard_faults.same(result, plain)


@pytest.mark.slow
@pytest.mark.timeout(150)
def test_a_worker_killed_once_it_has_peeled(
    dense: Path, plain: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its state is lost, and no other worker could run its task again."""
    together, killed = Engine.run_gang, list[str]()
    with runs.two_processes() as client:

        def kill(self: Engine, name: str, *arguments: Any) -> list[Future]:
            tasks = together(self, name, *arguments)
            if not killed:
                address, pid = client.run(os.getpid).popitem()
                killed.append(address)
                os.kill(pid, signal.SIGKILL)
                while address in workers_of(client):
                    time.sleep(0.05)
            return tasks

        monkeypatch.setattr(Engine, "run_gang", kill)
        result = mine(dense, tmp_path / "out", client=client, checkpoint={"every_seconds": 0.5}, **HOW)
        shard_faults.assert_nothing_left(client, result.manifest.run)
    assert len(killed) == 1
    (back,) = (line for line in shard_faults.log_of(result) if line["event"] == "rolled_back")
    assert 0 <= back["level"] <= LEVELS + 1 and "exchange" not in back
    assert shard_faults.same(result, plain)


STRIKING = """
import os, signal, subprocess, sys
from edgemill.pipeline.cli import edgemill
from edgemill.pipeline.events import Events

emit, left, words = Events.emit, int(sys.argv.pop(1)), sys.argv.pop(1).split()

def strike(self, event, /, **fields):
    global left
    emit(self, event, **fields)
    left -= event == "level"
    if event == "level" and left == 0:
        emit(self, "struck")
        subprocess.run(words, check=True) if words else os.kill(os.getpid(), signal.SIGKILL)

Events.emit = strike
edgemill(sys.argv[1:])
"""
"""The command, which runs another after so many levels, or ends at once if there is none."""


def command(dense: Path, out: Path, drawn: random.Random, carrier: str, *more: str) -> list[str]:
    """The arguments of the command."""
    words = ["run", "--input", str(dense), "--output", str(out), "--device", "cpu", "--partitions", "2"]
    words += ["--set", f"bounding.carrier={carrier}", "--set", "output.report=false"]
    words += ["--set", f"checkpoint.every_seconds={drawn.choice([0, 1000])}"]
    return [*words, "--set", "cluster.least_workers=2", "--set", "cluster.waiting_seconds=60", *more]


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The file of a scheduler with two workers that outlive all runs."""
    folder = tmp_path_factory.mktemp("standing")
    file = folder / "scheduler.json"
    words: list[list[str]] = [["scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"]]
    for name in ("one", "two"):
        words.append(["worker", "--name", name, "--nthreads", "1", "--no-nanny", "--no-dashboard"])
        words[-1] += ["--local-directory", str(folder / name), "--preload", PACED]
    with ExitStack() as running:
        for number, own in enumerate(words):
            log = folder / f"{number}.log"
            running.enter_context(started(log, *DASK, *own, "--scheduler-file", str(file), PYTHONPATH=SUPPORT_PATH))
        with Client(scheduler_file=str(file), set_as_default=False) as client:
            client.wait_for_workers(2, timeout=60)
        yield file


@pytest.mark.parametrize("seed", seeds())
def test_a_killed_driver(dense: Path, plain: Result, standing: Path, tmp_path: Path, trials: Trials, seed: int) -> None:
    """The same command resumes from the checkpoint, on the workers of the killed run's tasks."""
    drawn = random.Random(seed)
    out, carrier = tmp_path / "out", CARRIERS[seed % 2]
    words = command(dense, out, drawn, carrier, "--scheduler-file", str(standing))
    strike = [sys.executable, "-c", STRIKING, str(drawn.randrange(1, LAST)), "", *words]
    assert subprocess.run(strike, check=False, stdout=subprocess.DEVNULL, timeout=120).returncode == -signal.SIGKILL
    assert not out.exists()
    done = ended(*EDGEMILL, *words)
    assert done.returncode == 0, done.stderr
    result = Result(out)
    assert shard_faults.same(result, plain)
    silence = shard_faults.longest(shard_faults.times_of(shard_faults.log_of(result)))
    assert silence < MOST_SILENT_SECONDS
    with Client(scheduler_file=str(standing), set_as_default=False) as client:
        shard_faults.assert_nothing_left(client, result.manifest.run)
    shard_faults.note("the driver of a run in shards is killed", "resumed", silence, None)
    trials("the driver of a run in shards is killed", "same")


@pytest.mark.slow
def test_tasks_that_nobody_waits_for_end(dense: Path, tmp_path: Path) -> None:
    """It happens after a level, long before the last."""
    with runs.two_processes() as client:
        client.run(paced_levels.pace, 5.0)
        address = client.scheduler_info()["address"]
        words = command(dense, tmp_path / "out", random.Random(0), "auto", "--scheduler", address)
        strike = [sys.executable, "-c", STRIKING, "1", "", *words]
        done = subprocess.run(strike, check=False, stdout=subprocess.DEVNULL, timeout=120)
        assert done.returncode == -signal.SIGKILL
        client.run(paced_levels.pace, 0.0)
        client.sync(lambda: asyncio.wait_for(all_ended(client), 30))
        shard_faults.assert_nothing_left(client, "none")


async def all_ended(client: Client) -> None:
    """Wait until no worker runs a task."""
    while any((await client.run(shard_faults.executing)).values()):
        await asyncio.sleep(0.1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(30))
def test_a_cut_link(dense: Path, plain: Result, tmp_path: Path, trials: Trials, seed: int) -> None:
    """A worker's host is cut off. Its connections stay open. The other worker peels both groups."""
    drawn = random.Random(seed)
    with hosts(["scheduler", "one", "two", "client"]) as made, ExitStack() as running:
        scheduler, one, two, client = made
        words = ["scheduler", "--host", scheduler.address, "--port", "8786", "--no-dashboard"]
        running.enter_context(started(tmp_path / "scheduler.log", *scheduler.inside, *DASK, *words))
        for name, host in (("one", one), ("two", two)):
            words = ["worker", f"tcp://{scheduler.address}:8786", "--name", name, "--no-dashboard", "--nthreads", "1"]
            words += ["--local-directory", str(tmp_path / name), "--preload", PACED]
            log = tmp_path / f"{name}.log"
            running.enter_context(started(log, *host.inside, *DASK, *words, PYTHONPATH=SUPPORT_PATH))
        more = ["--scheduler", f"tcp://{scheduler.address}:8786"]
        run = command(dense, tmp_path / "out", drawn, "dask", *more)
        cut = " ".join(drawn.choice([one, two]).link("down"))
        strike = [sys.executable, "-c", STRIKING, str(drawn.randrange(1, LAST)), cut, *run]
        done = ended(*client.inside, *strike)
        outcome = "same"
        if done.returncode == 4:
            outcome, done = "resumed", ended(*client.inside, *EDGEMILL, *run)
        assert done.returncode == 0, done.stderr
    result = Result(tmp_path / "out")
    assert shard_faults.same(result, plain)
    told = shard_faults.log_of(result)
    times, names = shard_faults.times_of(told), [line["event"] for line in told]
    noticed = None
    if outcome == "same":
        noticed = times[names.index("rolled_back")] - times[names.index("struck")]
        assert noticed < 60
    silence = shard_faults.longest(times)
    assert silence < MOST_SILENT_SECONDS
    shard_faults.note("a link between workers that peel shards is cut", outcome, silence, noticed)
    trials("a link between workers that peel shards is cut", "same")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(30))
def test_a_frozen_worker(
    dense: Path, plain: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trials: Trials, seed: int
) -> None:
    """Dask ends it and starts another. In one of three cases Dask waits longer, and the other group notices first."""
    drawn = random.Random(seed)
    pids: list[int] = []

    @contextmanager
    def connected(settings: ClusterSettings, *_: object) -> Iterator[Client]:
        with connect(settings) as client:
            client.run(paced_levels.pace)
            pids.extend(sorted(client.run(os.getpid).values()))
            yield client

    monkeypatch.setattr("edgemill.pipeline.run.full.connect", connected)
    told = Told(monkeypatch, drawn.randrange(1, LAST), lambda: os.kill(drawn.choice(pids), signal.SIGSTOP))
    try:
        result = mine(
            dense,
            tmp_path / "out",
            cluster={"workers": 2, "threads_per_worker": 1, "silence_seconds": 60 if seed % 3 == 0 else 1},
            bounding={"carrier": CARRIERS[seed % 2]},
            checkpoint=kept(drawn),
            **HOW,
        )
    finally:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    assert told.struck is not None
    assert shard_faults.same(result, plain)
    kind = "a worker that peels shards freezes" + (", and Dask is patient" if seed % 3 == 0 else "")
    shard_faults.note(kind, "same", told.silence, told.noticed)
    trials(kind, "same")
