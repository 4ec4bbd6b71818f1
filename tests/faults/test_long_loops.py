"""Thousands of exchanges: Dask's tasks and the memory of every process do not grow.

pytest -m "slow or not slow" tests/faults/test_long_loops.py        # 10,000 exchanges too
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from distributed import Client

import runs
from edgemill.pipeline import mine
from edgemill.pipeline.monitor.events import Events
from edgemill.pipeline.output.manifest import ExchangeRecord
from trials import Trials

PARTITIONS = 4
MOST_TASKS = 30 * PARTITIONS
MOST_GROWTH = 50 * 2**20
WARM_UP = 0.1
"""Share of the exchanges after which memory is measured for the first time. By then all is kept that can be."""


def tube(length: int) -> list[tuple[int, int]]:
    """A tube of triangles, four around: the filter at 2 removes it ring by ring, from both ends."""
    return [
        (4 * i + j, 4 * (i + up) + (j + around) % 4)
        for i in range(length)
        for j in range(4)
        for up, around in ((0, 1), (1, 0), (1, 1))
    ]


def in_one_process() -> Any:
    """A client of one worker in this process."""
    return runs.cluster(n_workers=1, threads_per_worker=2, processes=False)


@pytest.mark.parametrize(
    ("cluster", "exchanges"),
    [
        pytest.param(in_one_process, 400, marks=pytest.mark.slow),
        pytest.param(in_one_process, 10_000, marks=[pytest.mark.slow, pytest.mark.timeout(3600)]),
        pytest.param(
            runs.two_processes,
            10_000,
            marks=[pytest.mark.slow, pytest.mark.timeout(3600)],
        ),
    ],
)
def test_many_exchanges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trials: Trials, cluster: Callable[[], Any], exchanges: int
) -> None:
    path = runs.write_rows(tmp_path / "rows.parquet", tube(6 * exchanges))
    record = Events.exchange
    with cluster() as client:
        pids = sorted({os.getpid(), *client.run(os.getpid).values()})
        tasks: list[int] = []
        memory: dict[int, list[int]] = {}

        def measure(self: Events, own: ExchangeRecord) -> None:
            record(self, own)
            tasks.append(remembered(client))
            if own.exchange in (int(WARM_UP * exchanges), exchanges):
                memory[own.exchange] = [resident(pid) for pid in pids]

        monkeypatch.setattr(Events, "exchange", measure)
        result = mine(
            path,
            tmp_path / "out",
            client=client,
            device="cpu",
            partitioning={"count": PARTITIONS, "method": "hash"},
            bounding={"method": "band", "max_exchanges": exchanges},
            checkpoint={"every_exchanges": min(500, exchanges // 10)},
        )
    first, last = memory.values()
    growth = [after - before for before, after in zip(first, last, strict=True)]
    print(f"{len(tasks)} exchanges: {max(tasks)} tasks at most, growth in KiB {[size // 1024 for size in growth]}")
    assert len(tasks) == result.manifest.bounding.exchanges == exchanges
    assert max(tasks[int(WARM_UP * exchanges) :]) <= MOST_TASKS
    assert max(growth) < MOST_GROWTH
    trials(f"{exchanges:,} exchanges", "same")


def resident(pid: int) -> int:
    """Resident memory of a process, in bytes."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def remembered(client: Client) -> int:
    """Number of tasks in the scheduler."""
    running: Any = client.cluster
    return len(running.scheduler.tasks)
