"""The page /ready of a worker: whether it has joined its cluster. Dask's own /health answers before that."""

from __future__ import annotations

from distributed import Worker
from distributed.core import Status
from distributed.http.utils import RequestHandler


class Ready(RequestHandler):
    """Answers 200 while the worker belongs to a scheduler, and 503 before and after."""

    def get(self) -> None:
        """Answer with the worker's status."""
        status = self.server.status
        self.set_status(200 if status in (Status.running, Status.paused) else 503)
        self.write(status.name)


def serve_ready(worker: Worker) -> None:
    """Have the worker answer /ready at the address of its dashboard."""
    worker.http_application.add_handlers(".*$", [("/ready", Ready, {"dask_server": worker})])
