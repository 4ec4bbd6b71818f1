"""Waiting for the workers of a cluster that this run does not start."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from distributed import Client, Future
from distributed.comm.core import CommClosedError

from ....tasks.errors import ClusterLost
from ..watchdog import workers_of
from ..workers.ready import still_preparing

_LOOK_SECONDS = 1.0
"""Most time between two looks at which workers have joined."""
_NAMED = 8
"""Most workers that a message names."""


def tell_nobody(reason: str) -> None:
    """Do not tell what a run waits for."""


def await_workers(
    client: Client, least: int, seconds: float, tell: Callable[[str], None] = tell_nobody
) -> dict[str, Any]:
    """Wait until the cluster has `least` workers, at most `seconds`; gives what `workers_of` does.

    Calls `tell` with who is there and who is not, whenever that changes, and with "" at the end. Meanwhile the cluster
    has `least` trivial tasks: one that adapts to its load (`adapt(minimum=0)`) starts workers for tasks only. Raises
    ClusterLost if the cluster has fewer workers in the end.
    """
    scheduler: Any = client.scheduler
    address, deadline = getattr(scheduler, "address", ""), time.monotonic() + seconds
    preparing: dict[str, float] = {}
    tasks: list[Future[int]] = []
    told = ""
    try:
        while len(found := workers_of(client, seconds)) < least and (left := deadline - time.monotonic()) > 0:
            if not tasks:
                tasks = client.map(int, range(least), key=f"edgemill-await-{uuid.uuid4().hex}", pure=False)
            preparing = still_preparing(client, seconds)
            reason = (
                f"for {_count(least - len(found), least)} of the Dask cluster at {address}: {_who(found, preparing)}"
            )
            if reason != told:
                tell(reason)
                told = reason
            with suppress(TimeoutError):
                client.wait_for_workers(least, timeout=min(_LOOK_SECONDS, left))
    except (OSError, CommClosedError) as error:
        raise ClusterLost(
            f"lost the Dask scheduler at {address} while waiting for workers: {error}; run again"
        ) from error
    finally:
        for task in tasks:
            task.release()
    if told:
        tell("")
    if len(found) >= least:
        return found
    count = f"{len(found)} of {least} workers (cluster.least_workers)" if found else "no workers"
    change = "wait until they are ready" if preparing else "start some"
    raise ClusterLost(
        f"the Dask cluster at {address} has {count} after {seconds:g} s (cluster.waiting_seconds); {change}, and run "
        f"again; {_who(found, preparing)}"
    )


def _count(missing: int, least: int) -> str:
    return f"{missing} of {least} workers" if least > 1 else "a worker"


def _who(found: Mapping[str, Any], preparing: Mapping[str, float]) -> str:
    """The workers that have joined, and those that have started and still compile their kernels."""
    parts = [f"{len(found)} joined" + _list(found)]
    if preparing:
        parts.append(f"{len(preparing)} still compiling kernels" + _list(preparing))
    return ", ".join(parts)


def _list(addresses: Mapping[str, object]) -> str:
    if not addresses:
        return ""
    more = [f"{len(addresses) - _NAMED} more"] * (len(addresses) > _NAMED)
    return f" ({', '.join([*list(addresses)[:_NAMED], *more])})"
