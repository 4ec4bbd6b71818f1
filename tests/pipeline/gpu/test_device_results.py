"""Results that move from a GPU's memory to the host's when they are told to."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from distributed import Client
from zict import Buffer

from edgemill.pipeline.cluster.engine import Engine
from edgemill.pipeline.cluster.workers import device_results
from edgemill.tasks.messages import Bundle
from edgemill.tasks.publish.columns import EdgeValues


@pytest.mark.gpu
def test_a_result_is_copied_to_the_host_and_back() -> None:
    """Arrays that are one array stay one, and values in host memory stay there."""
    import cupy

    numbers = cupy.arange(100_000, dtype=np.int32)
    parts = {0: EdgeValues(numbers[5:9], {"low": numbers, "high": numbers})}
    sent = Bundle(3, parts, {0: 4})
    starts = np.arange(3)
    copy, kept = moved = device_results.to_host((sent, starts))
    assert kept is starts and not copy.on_device
    assert numbers.nbytes + 16 <= sys.getsizeof(copy) < 2 * numbers.nbytes
    found, there = device_results.to_device(moved)
    assert found.on_device
    assert isinstance(there, np.ndarray) and there.tolist() == [0, 1, 2]
    assert (found.sender, found.rows) == (3, {0: 4})
    columns = found.parts[0].columns
    assert columns["low"] is columns["high"] and isinstance(columns["low"], cupy.ndarray)
    assert found.parts[0].row.get().tolist() == [5, 6, 7, 8]
    assert cupy.array_equal(columns["low"], numbers)


def test_named_results_move(monkeypatch: pytest.MonkeyPatch) -> None:
    """The store is as in dask-cuda: a buffer whose fast part is the GPU's memory."""
    host: dict[str, int] = {}
    store: Buffer[str, int] = Buffer({}, host, 100)
    store.update({"a": 1, "b": 2, "c": 3})
    worker = SimpleNamespace(data=SimpleNamespace(device_buffer=store))
    monkeypatch.setattr(device_results, "get_worker", lambda: worker)
    device_results.move_to_host(["b", "never made", "c"])
    assert host == {"b": 2, "c": 3}
    assert store["b"] == 2 and not host.keys() & {"b"}  # a task that needs it gets it back
    device_results.move_to_host(["b", "b"])
    assert host == {"b": 2, "c": 3}


def test_results_stay_where_they_cannot_move(two_workers: Client) -> None:
    engine = Engine.connect(two_workers, "stay")
    futures = engine.map("made", len, [("abc",), ("a",)])
    engine.wait(futures)
    engine.move_to_host(futures)
    assert engine.gather(futures) == [3, 1]
