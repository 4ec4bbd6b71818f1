"""How messages on a GPU travel: from device to device where the protocol can (UCX), else through the host's memory.

Dask sends what lies on a GPU as it is only if it knows the type it stands in; others it pickles, by way of the host.
"""

from __future__ import annotations

from contextlib import suppress
from operator import attrgetter

from distributed import Worker
from distributed.diagnostics.plugin import WorkerPlugin
from distributed.protocol.cuda import cuda_deserialize, cuda_serialize
from distributed.protocol.serialize import register_generic

from ..kernels.held import Held
from ..tasks.bound.fixpoint import FallenBounds
from ..tasks.degrees import Counts
from ..tasks.dense import Answer, Outline
from ..tasks.ingest import EdgeParts
from ..tasks.messages import Bundle
from ..tasks.numbering import Pairs
from ..tasks.publish import EdgeResults, VertexSums
from ..tasks.shards.answers import EdgeIntervals
from ..tasks.shards.halves import SupportedEdges
from ..tasks.shards.streams import EdgeRun, EdgeStream
from ..tasks.triangulate import GhostEdges, Lists, Reply

__all__ = ["PAYLOADS", "DeviceMessages", "register"]

PAYLOADS = (
    Answer,
    Counts,
    EdgeIntervals,
    EdgeParts,
    EdgeResults,
    EdgeRun,
    EdgeStream,
    FallenBounds,
    GhostEdges,
    Lists,
    Outline,
    Pairs,
    Reply,
    SupportedEdges,
    VertexSums,
)
"""What bundles hold, beside plain arrays, and what passes by groups of shards."""


def register() -> None:
    """Let this process send and receive bundles from device to device, and spill what lies on its GPU to the host."""
    for kind in (Bundle, *PAYLOADS):
        register_generic(kind, "cuda", cuda_serialize, cuda_deserialize)
    with suppress(ImportError):
        from dask_cuda.is_device_object import is_device_object

        is_device_object.register(Held, attrgetter("on_device"))


class DeviceMessages(WorkerPlugin):
    """Has workers send and receive messages from GPU to GPU; those that replace a lost worker, too."""

    def __init__(self, run_id: str) -> None:
        self.name = f"edgemill-device-messages-{run_id}"

    def setup(self, worker: Worker) -> None:
        """Register the types on every worker, before its first task. They stay registered when the run ends."""
        register()
