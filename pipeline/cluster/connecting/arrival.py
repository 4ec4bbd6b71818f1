"""Waiting for the workers of a cluster that this run does not start."""

from __future__ import annotations

import uuid
from contextlib import suppress
from typing import Any

from distributed import Client
from distributed.comm.core import CommClosedError

from ....tasks.errors import ClusterLost
from ..watchdog import workers_of


def await_workers(client: Client, least: int, seconds: float) -> dict[str, Any]:
    """Wait until the cluster has `least` workers, at most `seconds`; gives what `workers_of` does.

    Meanwhile the cluster has `least` trivial tasks: one that adapts to its load (`adapt(minimum=0)`) starts workers for
    tasks only. Raises ClusterLost if the cluster has fewer workers in the end.
    """
    found = workers_of(client)
    if len(found) >= least:
        return found
    tasks = client.map(int, range(least), key=f"edgemill-await-{uuid.uuid4().hex}", pure=False)
    try:
        with suppress(TimeoutError):
            client.wait_for_workers(least, timeout=seconds)
        found = workers_of(client)
    except (OSError, CommClosedError) as error:
        raise ClusterLost(f"lost the Dask scheduler while waiting for workers: {error}; run again") from error
    finally:
        for task in tasks:
            task.release()
    if len(found) < least:
        scheduler: Any = client.scheduler
        count = f"{len(found)} of {least} workers (cluster.least_workers)" if found else "no workers"
        raise ClusterLost(
            f"the Dask cluster at {scheduler.address} has {count} after {seconds:g} s (cluster.waiting_seconds); "
            "start some, and run again"
        )
    return found
