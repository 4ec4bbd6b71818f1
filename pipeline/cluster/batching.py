"""How long Dask collects messages of a connection before it sends them together.

Dask's defaults are 10 ms from a client to the scheduler, 5 ms from there to a worker and 2 ms back. A round of a run
waits for all three, and a round of a small graph takes less time than that. Within a run the interval is 1 ms, in which
messages of the same moment are still sent together.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

from distributed import Client, Scheduler
from distributed.diagnostics.plugin import SchedulerPlugin

_SECONDS = 0.001

_lock = Lock()
_shortened: WeakKeyDictionary[Any, tuple[float, int]] = WeakKeyDictionary()
"""Connections of clients → the interval before, and the number of runs that use the shorter interval."""


def shorten_interval(client: Client) -> Callable[[], None]:
    """Shorten the interval of a client's connection to its scheduler.

    Returns a function that restores the interval. If several runs use the client, the last call restores it.
    """
    stream: Any = client.scheduler_comm
    if stream is None:  # the client is reconnecting
        return lambda: None
    with _lock:
        before, runs = _shortened.get(stream, (stream.interval, 0))
        _shortened[stream] = before, runs + 1
        stream.interval = _SECONDS

    def restore() -> None:
        with _lock:
            before, runs = _shortened[stream]
            if runs > 1:
                _shortened[stream] = before, runs - 1
            else:
                del _shortened[stream]
                stream.interval = before

    return restore


class ShortIntervals(SchedulerPlugin):
    """Shortens the intervals of a scheduler's connections to its workers and clients, as long as the scheduler runs."""

    name = "edgemill-short-intervals"

    def add_worker(self, scheduler: Scheduler, worker: str) -> None:
        """Called when the connection to a worker is open, before anything was sent on it."""
        scheduler.stream_comms[worker].interval = _SECONDS

    def update_graph(self, scheduler: Scheduler, *, client: str, **_: Any) -> None:
        """Called with the tasks of a client, whose connection is opened after `add_client` was called."""
        scheduler.client_comms[client].interval = _SECONDS
