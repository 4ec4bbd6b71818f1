"""Checks after a fault in peeling by shards: events with their times, and the state left on workers."""

from __future__ import annotations

import gc
import itertools
import json
import os
import time
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from distributed import Client

import runs
from edgemill.pipeline import Result
from edgemill.pipeline.events import Events
from edgemill.tasks.shards.carriers.group_file import path_of

MOST_SILENT_SECONDS = 60.0
TRIES = 8
"""More than a run makes here."""


class Told:
    """The events of runs in this process, with their times. Calls `strike` after every `levels` levels, 1 + `again`
    times.
    """

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, levels: int, strike: Callable[[], None], again: int = 0
    ) -> None:
        self.times: list[float] = []
        self.names: list[str] = []
        self.struck: float | None = None
        strikes, emit = [levels * n for n in range(1, again + 2)], Events.emit
        told = 0

        def note(events: Events, event: str, /, **fields: Any) -> None:
            nonlocal told
            emit(events, event, **fields)
            self.times.append(time.monotonic())
            self.names.append(event)
            told += event == "level"
            if strikes and told == strikes[0]:
                del strikes[0]
                self.struck = time.monotonic()
                strike()

        monkeypatch.setattr(Events, "emit", note)

    @property
    def silence(self) -> float:
        """The longest time between two events, in seconds."""
        return longest(self.times)

    @property
    def noticed(self) -> float:
        """Seconds from the fault to the end of all tasks that peeled."""
        assert self.struck is not None
        return self.times[self.names.index("rolled_back")] - self.struck


def longest(times: Iterable[float]) -> float:
    """The longest time between two consecutive times."""
    return max((after - before for before, after in itertools.pairwise(times)), default=0.0)


def log_of(result: Result) -> list[dict[str, Any]]:
    """The events in the log of a run."""
    return [json.loads(line) for line in (result.path / "log.jsonl").read_text().splitlines()]


def times_of(log: Iterable[dict[str, Any]]) -> list[float]:
    """Times of the events, in seconds."""
    return [datetime.fromisoformat(line["time"]).timestamp() for line in log]


def same(result: Result, plain: Result) -> bool:
    """Whether the tables of two runs are equal."""
    return all(
        getattr(result, name).to_table() == getattr(plain, name).to_table()
        for name in ("edges", "vertices", "hierarchy", "dn_graphs", "dn_graph_members")
    )


def assert_nothing_left(client: Client, run: str, groups: int = 2) -> None:
    """No task, result, handler, thread or shared memory of a run is left on the workers."""
    runs.assert_nothing_left(client)
    assert not any(client.run(left_on_worker).values())
    names = [path_of("/dev/shm", f"{run}-{n}", g) for n in range(TRIES) for g in range(groups)]
    assert not [path for path in names if path.exists()]


def left_on_worker(dask_worker: Any) -> list[str]:
    """State of peeling on a worker."""
    import threading

    gc.collect()
    handlers = [name for name in dask_worker.handlers if name.startswith("edgemill")]
    threads = [thread.name for thread in threading.enumerate() if thread.name.startswith("shards")]
    maps = [line for line in Path(f"/proc/{os.getpid()}/maps").read_text().splitlines() if "edgemill-shards" in line]
    return handlers + threads + maps


def executing(dask_worker: Any) -> list[str]:
    """Tasks that run on a worker, also released ones."""
    return [str(key) for key in dask_worker.active_threads.values()]


def note(kind: str, outcome: str, silence: float, noticed: float | None) -> None:
    """Add a trial to the file in EDGEMILL_SHARD_FAULTS: kind, outcome, seconds of silence, seconds to notice."""
    file = os.environ.get("EDGEMILL_SHARD_FAULTS")
    if file is not None:
        with open(file, "a", encoding="utf-8") as lines:
            lines.write(json.dumps([kind, outcome, silence, noticed]) + "\n")
