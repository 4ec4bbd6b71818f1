"""Errors of Dask as errors of edgemill."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from distributed import CancelledError, Client, KilledWorker
from distributed.comm.core import CommClosedError
from distributed.scheduler import NoValidWorkerError, NoWorkerError

from ...tasks.errors import ClusterLost, EdgemillError, OutOfRoom
from ..messages.wording import format_bytes
from .execution import Execution
from .task_calls import TaskOutOfRoom, broken_gpu_message

_RESTARTS = "worker-restart-memory"
"""Dask's topic for workers that exceeded their memory limit and were ended by their nannies."""


@contextmanager
def scheduler_named(client: Client) -> Iterator[None]:
    """Raise ClusterLost with the scheduler's address for what Dask raises in the block if the connection closes."""
    scheduler: Any = client.scheduler
    address = None if scheduler is None else scheduler.address
    try:
        yield
    except CommClosedError as error:
        raise scheduler_lost(address, error) from error
    except EdgemillError:
        raise
    except Exception as error:
        if address is not None and client.status == "closed":  # such as the AttributeError of a closed client
            raise scheduler_lost(address, error) from error
        raise


def scheduler_lost(address: str | None, error: Exception) -> ClusterLost:
    """The error of a run whose scheduler at `address` is gone."""
    at = "" if address is None else f" at {address}"
    return ClusterLost(f"lost the Dask scheduler{at}: {str(error).rstrip('.') or type(error).__name__}; run again")


class Failures:
    """Translates the errors of the tasks of one run. Must be made before the first task of the run."""

    def __init__(self, client: Client) -> None:
        self._client = client
        scheduler: Any = client.scheduler
        self._address: str | None = None if scheduler is None else scheduler.address
        self._restarts_before = len(client.get_events(_RESTARTS))

    @property
    def lost_scheduler(self) -> ClusterLost:
        """The error of a run whose client is no longer connected."""
        return scheduler_lost(self._address, CommClosedError("the connection is closed"))

    def translated(self, error: Exception, execution: Execution) -> EdgemillError | None:
        """The error of edgemill, with advice that fits the execution; None for any other error that a task raised."""
        if isinstance(error, TaskOutOfRoom):
            return OutOfRoom(f"{error}: {execution.memory_advice}")
        if isinstance(error, KilledWorker):
            return self._killed(error, execution)
        if isinstance(error, NoValidWorkerError | NoWorkerError):
            return ClusterLost(f"no worker for a task (cluster.waiting_seconds): {error}; run again")
        if isinstance(error, CancelledError | CommClosedError | TimeoutError):
            return scheduler_lost(self._address, error)
        return None

    def _killed(self, error: KilledWorker, execution: Execution) -> EdgemillError:
        """The error for a task during which several workers died, one after another."""
        restarts = self._client.get_events(_RESTARTS)[self._restarts_before :]
        if not restarts:
            return ClusterLost(
                broken_gpu_message(self._client, [str(error.task)])
                or f"workers died while running {error.task}, the last at {error.last_worker.address}: "
                f"out of the machine's memory, perhaps ({execution.memory_advice}, or give each worker more memory), "
                "or without this release of edgemill, as their logs say"
            )
        rss = max(event["rss"] for _, event in restarts)
        return OutOfRoom(
            f"workers exceeded their memory {len(restarts)} times, the last in {error.task}: one held "
            f"{format_bytes(rss)} of {format_bytes(execution.capacity.memory_bytes)}: {execution.memory_advice}, give "
            "workers more memory (cluster.memory_limit_bytes=…) or fewer threads (cluster.threads_per_worker=…)"
        )
