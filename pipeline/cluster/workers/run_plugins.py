"""The plugins that workers have for the time of a run, also workers that join later.

One has messages in a GPU's memory travel from GPU to GPU where the protocol can (UCX). Dask does so only for objects of
registered types, and pickles the others, through the host's memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from operator import attrgetter
from typing import Any

from distributed import Client, Worker
from distributed.diagnostics.plugin import WorkerPlugin
from distributed.protocol.cuda import cuda_deserialize, cuda_serialize
from distributed.protocol.serialize import register_generic

from ....kernels.runtime.sizes import SizedArrays
from ....tasks.errors import ClusterLost
from ....tasks.messages import Payload
from .spill import SpillToFiles, can_link, offer, open_many, withdraw


def register_payloads() -> None:
    """Let this process send and receive payloads from GPU to GPU, and spill results from its GPU to the host."""
    register_generic(Payload, "cuda", cuda_serialize, cuda_deserialize)  # and all its subclasses
    with suppress(ImportError):
        from dask_cuda.is_device_object import is_device_object

        is_device_object.register(SizedArrays, attrgetter("on_device"))


class DeviceMessages(WorkerPlugin):
    """Has workers send and receive messages from GPU to GPU, also workers that join later."""

    def __init__(self, run_id: str) -> None:
        self.name = f"edgemill-device-messages-{run_id}"

    def setup(self, worker: Worker) -> None:
        """Register the types, before the worker's first task. They stay registered when the run ends."""
        register_payloads()


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
