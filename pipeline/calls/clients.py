"""Which Dask client computes a call of `mine`: the one given, the one that is active, or none."""

from __future__ import annotations

import os

import dask
from distributed import Client, get_worker

from ...tasks.errors import UsageError
from ..settings import ClusterSettings
from .temporary import TemporaryFolder

__all__ = ["client_for", "refuse_unseen"]

_OF_A_CLUSTER = (
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
"""Settings that say which cluster computes, or how one is started."""


def client_for(settings: ClusterSettings, given: Client | None) -> Client | None:
    """The client given; without one, and if the settings name no cluster, the active one, as Dask's collections find
    it; None if there is none, and then the run starts what the settings say.

    Raises UsageError for what is no client, for an asynchronous one, and for one beside settings of another cluster.
    """
    defaults = ClusterSettings()
    named = [name for name in _OF_A_CLUSTER if getattr(settings, name) != getattr(defaults, name)]
    if given is None:
        return None if named else _active()
    if not isinstance(given, Client):
        raise UsageError(
            f"client takes a distributed.Client, not a {type(given).__name__}: "
            "a cluster has one, cluster.get_client(); an address of a scheduler is for cluster.scheduler"
        )
    if given.asynchronous:
        raise UsageError("the client is asynchronous, and mine is not: make one without asynchronous=True")
    if named:
        them = ", ".join(f"cluster.{name}" for name in named)
        raise UsageError(f"client and {them} exclude each other: the client's cluster computes; leave one out")
    return given


def _active() -> Client | None:
    """As `dask.base.get_scheduler` finds it, but for tasks: one that waited for others could keep them from running."""
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
    return None if found.asynchronous else found


def refuse_unseen(folder: TemporaryFolder, settings: ClusterSettings, client: Client | None) -> None:
    """Raises UsageError if workers cannot write a temporary result, as they are on another machine."""
    place = folder.result.parent
    advice = "name an output in a folder that all workers see, or in an object store"
    if not settings.is_started_here:
        raise UsageError(f"the workers of a running scheduler may not see a temporary result in {place}: {advice}")
    if client is not None:
        blind = [address for address, sees in client.run(os.path.isdir, str(place)).items() if not sees]
        if blind:
            raise UsageError(f"{blind[0]} does not see a temporary result in {place} of this machine: {advice}")
