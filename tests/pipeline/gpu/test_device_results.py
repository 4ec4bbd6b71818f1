"""Results that move from a GPU's memory to the host's when they are told to."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from distributed import Client

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


class FakeArray:
    """Looks like an array in a GPU's memory."""

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes
        self.__cuda_array_interface__ = {"version": 3}

    def __sizeof__(self) -> int:
        return self.nbytes


@pytest.fixture
def results(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> device_results.DeviceResults:
    """A store with 1,000 bytes on the GPU and 10,000 in host memory. What was moved is a tuple there."""
    monkeypatch.setattr(device_results, "to_host", lambda value: ("moved", bytes(value.nbytes)))
    monkeypatch.setattr(device_results, "to_device", lambda value: FakeArray(len(value[1])))
    return device_results.DeviceResults(str(tmp_path), device_memory_limit=1_000, memory_limit=10_000)


def on_the_gpu(results: device_results.DeviceResults) -> set[str]:
    return set(results._device.fast)


def test_results_move_when_the_gpu_is_full(results: device_results.DeviceResults) -> None:
    results["number"] = 7
    for key in "abc":
        results[key] = FakeArray(400)
    assert on_the_gpu(results) == {"b", "c"}
    assert sorted(results) == ["a", "b", "c", "number"] and len(results) == 4 and "a" in results
    assert results["a"].nbytes == 400 and results["number"] == 7
    assert on_the_gpu(results) == {"a", "c"}
    results["large"] = FakeArray(2_000)
    assert on_the_gpu(results) == {"a", "c"} and results["large"].nbytes == 2_000
    for key in [*"abc", "large", "number"]:
        del results[key]
    assert not len(results) and not on_the_gpu(results) and "a" not in results
    with pytest.raises(KeyError):
        results["a"]


def test_a_result_that_is_replaced(results: device_results.DeviceResults) -> None:
    """By one in the other memory, or in the same."""
    for value in (FakeArray(10), 5, [FakeArray(20)], FakeArray(30)):
        results["a"] = value
        assert results["a"] is value and len(results) == 1
        assert bool(on_the_gpu(results)) is (value != 5)


def test_named_results_move(results: device_results.DeviceResults, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_results, "get_worker", lambda: SimpleNamespace(data=results))
    results.update({"a": FakeArray(1), "b": FakeArray(2), "c": FakeArray(3), "d": "on the host"})
    device_results.move_to_host(["b", "d", "never made", "c"])
    assert on_the_gpu(results) == {"a"}
    assert (results["b"].nbytes, results["d"]) == (2, "on the host")  # a task that needs it gets it back
    assert on_the_gpu(results) == {"a", "b"}
    device_results.move_to_host(["b", "b"])
    assert on_the_gpu(results) == {"a"}


def test_results_that_fill_the_host_go_to_files(results: device_results.DeviceResults, tmp_path: Path) -> None:
    for key in "abcde":
        results[key] = bytes(4_000)
    assert len(results) == 5 and any((tmp_path / "storage").iterdir())
    assert [len(results[key]) for key in "abcde"] == [4_000] * 5
    before = len(results.fast)
    assert results.evict() >= 4_000 and len(results.fast) == before - 1


def test_results_stay_where_they_cannot_move(two_workers: Client) -> None:
    engine = Engine.connect(two_workers, "stay")
    futures = engine.map("made", len, [("abc",), ("a",)])
    engine.wait(futures)
    engine.move_to_host(futures)
    assert engine.gather(futures) == [3, 1]
