"""How messages in a GPU's memory travel: from GPU to GPU where the protocol can (UCX), otherwise through the host.

Dask sends an object from GPU to GPU only if its type is registered. It pickles the others, through the host's memory.
"""

from __future__ import annotations

from contextlib import suppress
from operator import attrgetter

from distributed import Worker
from distributed.diagnostics.plugin import WorkerPlugin
from distributed.protocol.cuda import cuda_deserialize, cuda_serialize
from distributed.protocol.serialize import register_generic

from ....kernels.runtime.sizes import SizedArrays
from ....tasks.messages import Payload


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
