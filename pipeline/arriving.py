"""Waiting for the workers of a cluster that somebody else runs."""

from __future__ import annotations

import uuid
from contextlib import suppress
from typing import Any

from distributed import Client
from distributed.comm.core import CommClosedError

from ..tasks.errors import ClusterLost
from .watch import workers_of

__all__ = ["await_workers"]


def await_workers(client: Client, least: int, seconds: float) -> dict[str, Any]:
    """Wait until the cluster has `least` workers, for `seconds` at most; gives what `workers_of` does.

    Raises ClusterLost if it has fewer then.

    A cluster that adapts to its load (`adapt(minimum=0)`) starts workers for tasks: there are some for it meanwhile.
    """
    found = workers_of(client)
    if len(found) >= least:
        return found
    wanted = client.map(int, range(least), key=f"edgemill-await-{uuid.uuid4().hex}", pure=False)
    try:
        with suppress(TimeoutError):
            client.wait_for_workers(least, timeout=seconds)
        found = workers_of(client)
    except (OSError, CommClosedError) as error:
        raise ClusterLost(f"the Dask scheduler went away while workers were waited for: {error}; run again") from error
    finally:
        for future in wanted:
            future.release()
    if len(found) < least:
        scheduler: Any = client.scheduler
        some = f"{len(found)} of {least} workers (cluster.least_workers)" if found else "no workers"
        raise ClusterLost(
            f"the Dask cluster at {scheduler.address} has {some} after {seconds:g} s (cluster.waiting_seconds); "
            "start some, and run again"
        )
    return found
