"""Dask's default interval between messages is longer than a small exchange. A run shortens it, and restores it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from distributed import Client

import runs
from edgemill.pipeline import InputError, mine
from edgemill.pipeline.cluster.batching import shorten_interval
from edgemill.pipeline.cluster.connecting.start import connect
from edgemill.pipeline.cluster.engine import Engine
from edgemill.pipeline.settings.models import ClusterSettings
from edgemill.tasks.errors import StateLost


def test_intervals_of_a_cluster_started_here_are_short() -> None:
    with connect(ClusterSettings(device="cpu")) as client:
        engine = Engine.connect(client, "short")
        assert engine.gather([engine.submit("sum", sum, (1, 2))]) == [3]
        cluster: Any = client.cluster
        scheduler = cluster.scheduler
        streams = [client.scheduler_comm, *scheduler.stream_comms.values(), scheduler.client_comms[client.id]]
        assert [stream.interval for stream in streams] == [0.001] * 3


def _lost() -> int:
    raise StateLost("the result was on the other worker")


def test_workers_of_this_process_keep_their_own_results() -> None:
    with runs.cluster(n_workers=2, processes=False, threads_per_worker=1) as client:
        engine = Engine.connect(client, "kept")
        made = [engine.map("sum", sum, [((i, 1),)], [i % 2])[0] for i in range(8)]
        engine.wait(made)
        assert engine.gather(engine.cut_lineage("sum-held", made, _lost, [()] * 8)) == list(range(1, 9))


def test_a_run_restores_the_interval_of_its_callers_client(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when it fails."""
    stream: Any = client.scheduler_comm
    before, during = stream.interval, list[float]()
    submit = Engine.map

    def noted(self: Engine, *arguments: Any, **options: Any) -> Any:
        during.append(stream.interval)
        return submit(self, *arguments, **options)

    monkeypatch.setattr(Engine, "map", noted)
    rows = runs.write_rows(tmp_path / "rows.parquet", [(1, 2), (2, 3), (1, 3)])
    mine(rows, tmp_path / "out", client=client, device="cpu", report=False)
    assert set(during) == {0.001} and stream.interval == before > 0.001
    monkeypatch.setattr(Engine, "map", lambda *_, **__: pytest.fail("no task starts"))
    with pytest.raises(pytest.fail.Exception):
        mine(rows, tmp_path / "other", client=client, device="cpu", report=False)
    assert stream.interval == before
    with pytest.raises(InputError):
        mine(tmp_path / "none.parquet", tmp_path / "other", client=client, device="cpu", report=False)
    assert stream.interval == before


def test_two_runs_at_once_share_the_short_interval(client: Client) -> None:
    stream: Any = client.scheduler_comm
    before = stream.interval
    first, second = shorten_interval(client), shorten_interval(client)
    first()
    assert stream.interval == 0.001
    second()
    assert stream.interval == before
