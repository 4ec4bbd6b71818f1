"""Results that move from a GPU's memory to the host's when they are told to."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from distributed import Client
from zict import Buffer

from edgemill.pipeline.cluster.engine import Engine
from edgemill.pipeline.cluster.workers import device_results


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
