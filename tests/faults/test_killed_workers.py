"""Workers that are killed: Dask does their tasks again elsewhere, and the answer is the same, edge by edge.

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

import runs
from edgemill.pipeline import Result, mine
from edgemill.pipeline.telemetry import Events
from trials import Trials

HOW: dict[str, Any] = {"device": "cpu", "partitioning": {"count": 4, "method": "hash"}}
SEEDS = [*range(2), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 20))]


@pytest.fixture(scope="module")
def plain(rows: Path, tmp_path_factory: pytest.TempPathFactory) -> Result:
    return mine(rows, tmp_path_factory.mktemp("plain") / "out", **HOW)


def tables(result: Result) -> list[pa.Table]:
    return [result.edges.to_table(), result.vertices.to_table()]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_killed_worker(
    rows: Path, plain: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trials: Trials, seed: int
) -> None:
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
    trials("a worker is killed", "same")
