"""Dask holds no message of a run back for long: a tick of its streams' default is longer than a small exchange."""

from __future__ import annotations

from typing import Any

from edgemill.pipeline.cluster import connect
from edgemill.pipeline.engine import Engine
from edgemill.pipeline.settings import ClusterSettings


def test_streams_of_a_cluster_started_here_are_prompt() -> None:
    with connect(ClusterSettings(device="cpu")) as client:
        engine = Engine(client, "prompt")
        assert engine.gather([engine.submit("sum", sum, (1, 2))]) == [3]
        cluster: Any = client.cluster
        scheduler = cluster.scheduler
        streams = [client.scheduler_comm, *scheduler.stream_comms.values(), scheduler.client_comms[client.id]]
        assert [stream.interval for stream in streams] == [0.001] * 3
