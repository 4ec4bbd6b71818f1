"""Background tasks leave a thread of each GPU worker to the tasks of the stages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from edgemill.pipeline.cluster.execution import Capacity
from edgemill.pipeline.stages.task_engine import SequentialEngine, start_behind


class RecordingEngine(SequentialEngine):
    """Keeps the arguments of each call of `map`."""

    def __init__(self, workers: int, threads: int, device_bytes: int) -> None:
        super().__init__()
        self.capacity = Capacity(workers, threads, 0, device_bytes)
        self.calls: list[tuple[list[Sequence[Any]], Sequence[int] | None]] = []

    def map(
        self,
        name: str,
        function: Callable[..., Any],
        arguments: Sequence[Sequence[Any]],
        at: Sequence[int] | None = None,
        soon: bool = False,
    ) -> list[Any]:
        self.calls.append((list(arguments), at))
        return super().map(name, function, arguments, at, soon)


def double(number: int) -> int:
    return 2 * number


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("at", [None, [0] * 9, [0, 1] * 4 + [1]], ids=["anywhere", "one", "two"])
def test_each_task_follows_another_one_on_its_worker(at: list[int] | None, threads: int) -> None:
    engine = RecordingEngine(workers=2, threads=threads, device_bytes=1)
    assert start_behind(engine, "double", double, [(n,) for n in range(9)], at) == [2 * n for n in range(9)]
    lanes = max(1, threads - 1) * (2 if at is None else 1)
    running: Counter[int] = Counter()
    place = {2 * n: 0 if at is None else at[n] for n in range(9)}
    followed = []
    for wave, workers in engine.calls:
        assert (workers is None) == (at is None)
        for before, _, number in wave:
            worker = place[2 * number]
            if before is None:
                running[worker] += 1
            else:
                assert place[before] == worker
                followed.append(before)
    assert max(running.values()) <= lanes
    assert len(set(followed)) == len(followed) == 9 - running.total()


def test_cpus_start_all_at_once() -> None:
    engine = RecordingEngine(workers=1, threads=4, device_bytes=0)
    assert start_behind(engine, "double", double, [(n,) for n in range(9)]) == [2 * n for n in range(9)]
    assert engine.calls == [([(n,) for n in range(9)], None)]


def test_no_tasks() -> None:
    engine = RecordingEngine(workers=1, threads=4, device_bytes=1)
    assert start_behind(engine, "double", double, []) == []
