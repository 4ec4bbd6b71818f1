"""How long Dask holds messages back: it sends those of a stream together, and the next not before some time is over.

That is 10 ms from a client to the scheduler, 5 ms on to a worker and 2 ms back. A round of a run waits for all of them,
and a small graph has rounds that take less: here it is 1 ms each, which still lets messages of one moment go together.
"""

from __future__ import annotations

from typing import Any

from distributed import Client, Scheduler
from distributed.diagnostics.plugin import SchedulerPlugin

__all__ = ["Prompt", "be_prompt"]

_SECONDS = 0.001


def be_prompt(client: Client) -> None:
    """Have the client hold nothing back for longer than that."""
    stream: Any = client.scheduler_comm
    if stream is not None:  # as while it connects again
        stream.interval = _SECONDS


class Prompt(SchedulerPlugin):
    """Has a scheduler hold nothing back for longer than that, neither from workers nor from clients."""

    name = "edgemill-prompt"

    def add_worker(self, scheduler: Scheduler, worker: str) -> None:
        """Called when the stream to a worker is there, which has sent nothing yet."""
        scheduler.stream_comms[worker].interval = _SECONDS

    def update_graph(self, scheduler: Scheduler, *, client: str, **_: Any) -> None:
        """Called with the tasks of a client, whose stream is made after `add_client`."""
        scheduler.client_comms[client].interval = _SECONDS
