"""Words in GPU memory that groups send each other, in sizes for which outboxes have to grow."""

from __future__ import annotations

from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from edgemill import kernels
from edgemill.tasks.device import MemorySpace
from edgemill.tasks.shards import Carrier
from edgemill.tasks.shards.carriers.gpu_memory import between_gpus

SIZES = (0, 1, 7, 2**12, 2**21, 3, 2**22 + 5, 2**22, 1)
"""Words of the exchanges; an outbox begins with room for 2^19."""


def words(exchange: int, sender: int, receiver: int, size: int) -> Any:
    """What one group sends another; on the host in every third case."""
    content = np.arange(size, dtype=np.uint32) * np.uint32(2 * exchange + 1) + np.uint32(16 * sender + receiver)
    on_host = (exchange + sender + receiver) % 3 == 0
    return content if on_host else MemorySpace.DEVICE.place(content)


def talk(base: Carrier) -> list[bool]:
    """Exchange all sizes. Returns, for each message received in GPU memory or not, whether it lay there; checks all."""
    found = []
    with between_gpus(base) as carrier:
        for exchange, size in enumerate(SIZES):
            own = [words(exchange, carrier.rank, g, size + g) for g in range(carrier.groups)]
            common = np.array([exchange, carrier.rank], np.uint32)
            for sender, packet in enumerate(carrier.exchange(common, own)):
                assert packet.common.tolist() == [exchange, sender]
                sent = words(exchange, sender, carrier.rank, size + carrier.rank)
                assert np.array_equal(kernels.to_host(packet.own), kernels.to_host(sent)), (exchange, sender)
                if len(sent) and not kernels.on_host(sent):
                    found.append(not kernels.on_host(packet.own))
    return found


def talks(carrier: Carrier, pipe: Connection) -> None:
    """In a process: tell what `talk` found."""
    pipe.send(talk(carrier))
