"""Mail of a shard in memory of the host that all processes map: kernels write it, and read it, with no thread between.

For GPUs of one host that do not reach each other's memory. The layout is that of mailboxes; shard_mail.cuh has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import numpy as np
from cupy.cuda import runtime
from numpy.typing import NDArray

from ..cpu.meeting import store, store_longs
from .peers import NEVER
from .shard_mail import MOST_RELAYED_EDGES, MOST_RELAYED_EVENTS, POST_WORDS, Words, inbox_words, no_loss, places

_PORTABLE_MAPPED = 3
"""cudaHostRegisterPortable and cudaHostRegisterMapped (docs.nvidia.com/cuda/cuda-runtime-api, 6.11)."""


def host_inbox_words(shards: int, edges: int) -> int:
    """Size of the inbox of one of so many shards of a graph of `edges` edges, in words."""
    return inbox_words(shards, *_most(edges))


class HostMail:
    """Mail of a shard that writes into the other shards' inboxes, which are memory of the host.

    `inboxes` [shards] are those of all by rank, each `host_inbox_words` words that are 0 at first, and the same memory
    in every process. They must stay mapped until `close`. `edges` are those of the whole graph, and `here` are the
    shards whose kernels run on this GPU at once. Raises ConnectionError where CUDA cannot reach such memory.
    """

    on_one_device = False
    """As in `DirectMail`: other devices read what the kernel writes."""
    spare = 0
    """As in `RelayedMail`."""

    def __init__(self, rank: int, inboxes: Sequence[Words], edges: int, here: int) -> None:
        self.rank, self.shards, self.here = rank, len(inboxes), here
        self.most_edges, self.most_events = _most(edges)
        self.lost = no_loss()
        self._inboxes = list(inboxes)
        self._registered: list[int] = []
        self._pointers: list[int] = []
        try:
            for inbox in inboxes:
                self._register(inbox)
        except BaseException:
            self.close()
            raise

    @property
    def inbox(self) -> int:
        """Address of the own inbox, for the kernel."""
        return self._pointers[self.rank]

    def tables(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint64]]:
        """As in `DirectMail`."""
        return places(self._pointers, self.rank, self.most_edges, self.most_events)

    def lose(self) -> None:
        """As in `DirectMail`."""
        store(self.lost, 0, 1)

    def abandon(self) -> None:
        """Tell the others not to wait any more."""
        never = np.full(POST_WORDS // 2, NEVER << 32, np.uint64)
        for q, inbox in enumerate(self._inboxes):
            for slot in (self.rank, self.shards + self.rank) if q != self.rank else ():
                first = POST_WORDS * slot
                store_longs(inbox[first : first + POST_WORDS].view(np.uint64), 0, never)

    def close(self) -> None:
        """Let go of the memory, which no kernel uses any more."""
        for address in self._registered:
            with suppress(runtime.CUDARuntimeError):
                runtime.hostUnregister(address)
        self._registered, self._pointers, self._inboxes = [], [], []

    def _register(self, inbox: Words) -> None:
        address = int(inbox.ctypes.data)
        try:
            runtime.hostRegister(address, inbox.nbytes, _PORTABLE_MAPPED)
            self._registered.append(address)
            # On some devices the kernel needs another address than the host.
            pointer = int(runtime.pointerGetAttributes(address).devicePointer)
        except runtime.CUDARuntimeError as error:
            raise ConnectionError(f"CUDA cannot register memory that processes of the host share ({error})") from error
        if not pointer:
            raise ConnectionError("CUDA gives the GPU no address for memory that processes of the host share")
        self._pointers.append(pointer)


def _most(edges: int) -> tuple[int, int]:
    """Edges of a shard in an exchange, and halves that have something to tell."""
    return max(1, min(edges, MOST_RELAYED_EDGES)), max(1, min(edges, MOST_RELAYED_EVENTS))
