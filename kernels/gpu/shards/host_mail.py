"""Mail of a shard in host memory that all processes map. Kernels write and read it directly, without a host thread.

For GPUs of one host that cannot access each other's memory. The layout is that of mailboxes; see shards/mail.cuh.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import numpy as np
from cupy.cuda import runtime
from numpy.typing import NDArray

from ...cpu.arrays.shared_words import store_release, store_release_longs
from ..runtime.constants import NEVER
from .mail import MAX_RELAYED_EDGES, MAX_RELAYED_EVENTS, POST_WORDS, Words, inbox_words, peer_lost_flag, send_tables

_PORTABLE_MAPPED = 3
"""cudaHostRegisterPortable and cudaHostRegisterMapped (docs.nvidia.com/cuda/cuda-runtime-api, 6.11)."""


def host_inbox_words(shards: int, edges: int) -> int:
    """Size in 32-bit words of the inbox of one of `shards` shards of a graph with `edges` edges."""
    return inbox_words(shards, *_most(edges))


class HostMail:
    """Mail of a shard whose kernel writes into the inboxes of the other shards, which are in host memory.

    `inboxes` [shards] are the inboxes of all shards by rank, each of `host_inbox_words` words, 0 at the start, and the
    same memory in every process. They must stay mapped until `close`. `edges` is the number of edges of the whole
    graph, `here` the number of shards whose kernels run on this GPU at the same time. Raises ConnectionError if CUDA
    cannot access such memory.
    """

    on_one_device = False
    """As in `DirectMail`: other devices read what the kernel writes."""
    reserved_processors = 0
    """As in `RelayedMail`."""

    def __init__(self, rank: int, inboxes: Sequence[Words], edges: int, here: int) -> None:
        self.rank, self.shards, self.here = rank, len(inboxes), here
        self.max_edges, self.max_events = _most(edges)
        self.peer_lost = peer_lost_flag()
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
        """Address of this shard's inbox, for the kernel."""
        return self._pointers[self.rank]

    def tables(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint64]]:
        return send_tables(self._pointers, self.rank, self.max_edges, self.max_events)

    def mark_peer_lost(self) -> None:
        store_release(self.peer_lost, 0, 1)

    def abandon(self) -> None:
        """Tell the other shards to stop waiting for this one."""
        never = np.full(POST_WORDS // 2, NEVER << 32, np.uint64)
        for q, inbox in enumerate(self._inboxes):
            for slot in (self.rank, self.shards + self.rank) if q != self.rank else ():
                first = POST_WORDS * slot
                store_release_longs(inbox[first : first + POST_WORDS].view(np.uint64), 0, never)

    def close(self) -> None:
        """Unregister the memory. No kernel may use it any more."""
        for address in self._registered:
            with suppress(runtime.CUDARuntimeError):
                runtime.hostUnregister(address)
        self._registered, self._pointers, self._inboxes = [], [], []

    def _register(self, inbox: Words) -> None:
        address = int(inbox.ctypes.data)
        try:
            runtime.hostRegister(address, inbox.nbytes, _PORTABLE_MAPPED)
            self._registered.append(address)
            # On some devices the address for kernels differs from the address for the host.
            pointer = int(runtime.pointerGetAttributes(address).devicePointer)
        except runtime.CUDARuntimeError as error:
            raise ConnectionError(f"CUDA cannot register memory that processes of the host share ({error})") from error
        if not pointer:
            raise ConnectionError("CUDA gives the GPU no address for memory that processes of the host share")
        self._pointers.append(pointer)


def _most(edges: int) -> tuple[int, int]:
    """Capacity of an exchange: edges of one shard, and halves with an event."""
    return max(1, min(edges, MAX_RELAYED_EDGES)), max(1, min(edges, MAX_RELAYED_EVENTS))
