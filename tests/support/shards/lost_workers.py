"""Workers that are killed at a moment of a search in bands, and the tasks that it starts on chosen workers."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from distributed import Client

from edgemill.pipeline.cluster.engine import Engine, Future
from edgemill.pipeline.cluster.watchdog import workers_of


class Started:
    """The tasks that runs start on chosen workers: their names and addresses."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tasks: list[tuple[str, str]] = []
        start_on = Engine.start_on

        def noted(
            engine: Engine, name: str, function: Callable[..., Any], arguments: Sequence[Any], addresses: Sequence[str]
        ) -> list[Future]:
            self.tasks += [(name, address) for address in addresses]
            return start_on(engine, name, function, arguments, addresses)

        monkeypatch.setattr(Engine, "start_on", noted)

    def at(self, name: str) -> list[str]:
        return [address for own, address in self.tasks if own == name]


class Killer:
    """Kills a worker of a cluster, once."""

    def __init__(self, client: Client, victim: int) -> None:
        self.address, self._client = list(workers_of(client))[victim], client
        (self._pid,) = client.run(os.getpid, workers=[self.address]).values()
        self.killed = False

    def __call__(self) -> None:
        if not self.killed:
            self.killed = True
            os.kill(self._pid, signal.SIGKILL)
            while self.address in workers_of(self._client):
                time.sleep(0.05)


def dying(where: str) -> Callable[[], None]:
    """A worker that runs it ends when it comes to count its share, to a threshold of the filter, or to a band."""

    def plant() -> None:
        import os
        import signal

        from edgemill.pipeline.bounding import peel_bands
        from edgemill.tasks.bands.filtering import CoarseFilter

        def die(*_: Any) -> Any:
            os.kill(os.getpid(), signal.SIGKILL)

        run: Any = CoarseFilter.run

        def to_a_threshold(self: Any, *_: Any) -> Any:
            return run(self, None, die)

        if where == "filter":
            setattr(CoarseFilter, "run", to_a_threshold)  # noqa: B010
        else:
            setattr(peel_bands, {"count": "count_share", "band": "peel_band"}[where], die)

    return plant
