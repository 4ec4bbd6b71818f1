"""Dask for the other rooms: the client's type, the client that computes a call of `mine`, collections and loggers."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import dask.base
import distributed.utils
from distributed import Client as Client
from distributed import get_worker

from ...tasks.errors import UsageError
from ..settings.models import ClusterSettings

_CLUSTER_SETTINGS = (
    "workers",
    "protocol",
    "threads_per_worker",
    "memory_limit_bytes",
    "local_directory",
    "device_memory_limit_bytes",
    "scheduler",
    "scheduler_file",
    "tls_ca_file",
    "tls_cert_file",
    "tls_key_file",
    "dashboard_address",
    "silence_seconds",
)
"""Settings that choose the cluster that computes, or say how a cluster is started."""


def give_dask_threads() -> None:
    """Give Dask a new thread for work that its event loops hand over, if a fork has cut off the thread for that."""
    threads = distributed.utils._offload_executor._threads
    if threads and not any(thread.is_alive() for thread in threads):
        own = ThreadPoolExecutor(max_workers=1, thread_name_prefix="Dask-Offload")
        distributed.utils._offload_executor = own


def _is_of_parent(client: Client) -> bool:
    """Whether the client is of the process that this one was forked from. The thread of its loop does not run here."""
    loop: Any = client._loop_runner._loop
    thread = getattr(getattr(loop, "asyncio_loop", None), "_thread_id", None)
    return thread is not None and all(one.ident != thread for one in threading.enumerate())


def client_for(settings: ClusterSettings, client: Client | None) -> Client | None:
    """The client that computes a call of `mine`.

    This is `client` if it is given. Otherwise it is the active client, as Dask's collections find it, unless the
    settings choose a cluster. None means that the run starts or joins the cluster that the settings describe.

    Raises UsageError for an object that is no client, for an asynchronous client, and for a client beside settings that
    choose another cluster.
    """
    defaults = ClusterSettings()
    changed = [name for name in _CLUSTER_SETTINGS if getattr(settings, name) != getattr(defaults, name)]
    if client is None:
        return None if changed else _active_client()
    if not isinstance(client, Client):
        raise UsageError(
            f"client must be a distributed.Client, not a {type(client).__name__}: "
            "call get_client() of the cluster; pass the address of a scheduler as cluster.scheduler"
        )
    if _is_of_parent(client):
        raise UsageError(
            "the client is of the process that this one was forked from, and its threads are not here: make a client "
            "in this process"
        )
    if client.asynchronous:
        raise UsageError("the client is asynchronous, and mine is not: make one without asynchronous=True")
    if changed:
        names = ", ".join(f"cluster.{name}" for name in changed)
        raise UsageError(f"client and {names} exclude each other: the client's cluster computes; leave one out")
    return client


def _active_client() -> Client | None:
    """The active client, as `dask.base.get_scheduler` finds it; None within a task.

    A task that waits for other tasks could keep them from running.
    """
    if dask.config.get("scheduler", None) not in (None, "distributed", "dask.distributed"):
        return None
    try:
        get_worker()
    except ValueError:
        pass
    else:
        return None
    try:
        found = Client.current()
    except ValueError:
        return None
    return None if found.asynchronous or _is_of_parent(found) else found


def refuse_unseen(
    folder: Path,
    settings: ClusterSettings,
    client: Client | None,
    what: str = "a temporary result",
    advice: str = "name an output in a folder that all workers see, or in an object store",
) -> None:
    """Raises UsageError if workers may not see `what` in the `folder` of this machine, as workers elsewhere."""
    if not settings.is_started_here:
        raise UsageError(f"the workers of a running scheduler may not see {what} in {folder}: {advice}")
    if client is not None:
        blind = [address for address, sees in client.run(os.path.isdir, str(folder)).items() if not sees]
        if blind:
            raise UsageError(f"{blind[0]} does not see {what} in {folder} of this machine: {advice}")


def compute(client: Client | None, collections: Sequence[Any]) -> Any:
    """The results of Dask collections, computed by `client`, or by Dask's own scheduler if that is None."""
    if client is None:
        return dask.base.compute(*collections)  # type: ignore[no-untyped-call]
    return client.gather(client.compute(list(collections)))


def delayed_task(function: Callable[..., Any]) -> Callable[..., Any]:
    """`dask.delayed` of a function that may give another result for the same arguments."""
    from dask.delayed import delayed

    task: Callable[..., Any] = delayed(function, pure=False)
    return task


def set_up_dask_loggers() -> None:
    """Give Dask's loggers their handlers. Dask adds them when it is imported, which this module does."""
