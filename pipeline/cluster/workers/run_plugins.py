"""The plugins that workers have for the time of a run, also workers that join later."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from distributed import Client

from ....tasks.errors import ClusterLost
from ..carriers.device_transport import DeviceMessages
from .spill import SpillToFiles, can_link, offer, open_many, withdraw

_TRIES = 4
"""Attempts to register a plugin, each of which loses a worker."""
_REMOVING_SECONDS = 10
"""How long to wait until all workers have removed a plugin."""


class RunPlugins:
    """Registers plugins of workers, and removes them when the run ends."""

    def __init__(self, client: Client, run_id: str) -> None:
        self._client, self._run_id = client, run_id
        self._names: list[str] = []

    def send_between_gpus(self, in_process: bool) -> None:
        """Have worker processes send messages from GPU to GPU where the protocol can. Raises as `_register`."""
        if not in_process:
            self._register(DeviceMessages(self._run_id))

    def keep_results_in_files(self) -> None:
        """Have workers keep the arrays that they receive in files of their own folders. Raises as `_register`."""
        self._register(SpillToFiles(self._run_id))
        open_many()  # this process maps the results that it gathers

    def _register(self, plugin: SpillToFiles | DeviceMessages) -> None:
        """Raises ClusterLost if workers are lost again and again."""
        self._names.append(plugin.name)
        for _ in range(_TRIES):
            try:
                self._client.register_plugin(plugin)
                return
            except OSError as error:  # a worker was lost meanwhile, and others were not reached
                if self._client.status != "running":
                    raise  # the scheduler is lost
                lost = error
        raise ClusterLost(f"lost workers again and again while they were set up: {lost}; run again") from lost

    def remove(self) -> None:
        """Remove the plugins from the workers of a cluster that lives on."""
        scheduler: Any = self._client.scheduler
        while self._names:
            name = self._names.pop()
            with suppress(Exception):  # the cluster may be lost, and how the run ended stays as it is
                self._client.sync(scheduler.unregister_worker_plugin, name=name, callback_timeout=_REMOVING_SECONDS)


def can_link_everywhere(on_every_worker: Callable[..., list[Any]]) -> bool:
    """Whether all workers and this process can read the files of each worker, and link to them."""
    offers = on_every_worker(offer)
    linked = all(on_every_worker(can_link, offers)) and all(os.access(path, os.R_OK) for path in offers)
    on_every_worker(withdraw, offers)
    return linked
