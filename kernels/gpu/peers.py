"""Peeling of several subgraphs in step, on one device or on several of one machine; peers.cuh tells how."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NoReturn

import cupy
import numpy as np
from cupy.cuda import runtime

from ..graph import Topology
from ..peers import MOST_PEERS, Address, this_machine
from .peel import Peeling

PATIENCE_SECONDS = 60.0
"""A peer that keeps the others waiting so long is lost. The longest it may take is to number its edges anew."""
SHRINK_WITH = 0.7
"""Edges are numbered anew while another peer does so when this share of them is left."""
_SOME_LEFT, _LOST, _QUIT = 2, 16, 8
_NEVER = 2**32 - 1
_POST_BYTES = 16
_LEAST_BYTES = 2**21
"""What the driver shares between processes at once."""


class Mailbox:
    """Memory of one peer that the others write into: posts, then the edges that each sends.

    `offsets` [peers + 1] tells where the edges of each start. Lies outside of CuPy's pool, as it is shared.
    """

    def __init__(self, offsets: Sequence[int]) -> None:
        peers = len(offsets) - 1
        if peers > MOST_PEERS:
            raise ValueError(f"{peers} subgraphs cannot be peeled in step, {MOST_PEERS} at most")
        self.offsets = tuple(map(int, offsets))
        self.posts_bytes = 2 * peers * _POST_BYTES
        self.nbytes = max(_LEAST_BYTES, self.posts_bytes + 4 * self.offsets[-1])
        try:
            self._memory = cupy.cuda.Memory(self.nbytes)
        except cupy.cuda.runtime.CUDARuntimeError:
            cupy.get_default_memory_pool().free_all_blocks()
            self._memory = cupy.cuda.Memory(self.nbytes)
        runtime.memset(self._memory.ptr, 0, self.posts_bytes)
        runtime.deviceSynchronize()

    def address(self) -> Address:
        """Where others find it."""
        pointer = int(self._memory.ptr)
        return Address((this_machine(), os.getpid()), pointer, runtime.ipcGetMemHandle(pointer), self.offsets)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a mailbox stays in the process that others write to")


class PeerPeeling(Peeling):
    """The peeling of subgraph `rank` of several; see `kernels.peeling_in_step`."""

    def __init__(
        self,
        topology: Topology,
        count: Any,
        ghost: Any,
        start: Any,
        subscription: Any,
        rank: int,
        mailbox: Mailbox,
        addresses: Sequence[Address],
    ) -> None:
        self._rank, self._mailbox = rank, mailbox
        self._ghost, self._subscriptions = ghost, (start, subscription)
        self._here = sum(address.process == addresses[rank].process for address in addresses)
        self._opened: list[int] = []
        self._reached = [self._reach(address, addresses[rank]) for address in addresses]
        self._offsets = [address.offsets[rank] for address in addresses]
        self._meeting = cupy.zeros(4 + 3 * MOST_PEERS, np.uint32)
        self._described: Any = None
        self.in_progress = True
        """Whether any peer has edges left."""
        self._stream = cupy.cuda.get_current_stream()
        try:
            super().__init__(topology, count)
        except BaseException:
            self.abandon()
            self.close()
            raise
        if self._here > 1:
            self._stream.synchronize()
            self._stream = cupy.cuda.Stream(non_blocking=True)

    @property
    def sent(self) -> int:
        """Edges told to others."""
        return int(self._meeting[4 : 4 + len(self._reached)].sum())

    def launch(self, quit: bool) -> None:
        """Start to let levels fall, together with all others; with `quit` all stop after the first."""
        with self._stream:
            self._launch(self._described, np.uint32(_QUIT if quit else 0), share=self._here)

    def settle(self) -> None:
        """Wait until all have stopped, and number edges anew if they are few enough.

        Raises ConnectionError if a peer did not come.
        """
        with self._stream:
            news = self._look()
            if news & _LOST:
                raise ConnectionError(f"another partition has failed, or not moved for {PATIENCE_SECONDS:.0f} s")
            self.in_progress = bool(news & _SOME_LEFT)
            if 0 < self.left <= int(SHRINK_WITH * len(self._count)):
                self._shrink()
        self._stream.synchronize()

    def abandon(self) -> None:
        """Tell the others not to wait any more."""
        never = np.array([0, _LOST, 0, _NEVER], np.uint32)
        peers = len(self._reached)
        for q, pointer in enumerate(self._reached):
            for slot in (self._rank, peers + self._rank) if q != self._rank else ():
                with suppress(runtime.CUDARuntimeError):
                    runtime.memcpy(
                        pointer + slot * _POST_BYTES, never.ctypes.data, _POST_BYTES, runtime.memcpyHostToDevice
                    )

    def close(self) -> None:
        """Wait for what still runs, which `abandon` ends, and let go of the others' memory."""
        self._stream.synchronize()
        for pointer in self._opened:
            runtime.ipcCloseMemHandle(pointer)
        self._opened = []

    def _reach(self, address: Address, own: Address) -> int:
        if address.process == own.process:
            return address.pointer
        if address.process[0] != own.process[0]:
            raise ConnectionError(f"{address.process[0]} and {own.process[0]} share no GPU memory")
        try:
            self._opened.append(int(runtime.ipcOpenMemHandle(address.handle)))
        except runtime.CUDARuntimeError as error:
            raise ConnectionError(
                f"the memory of another process's GPU cannot be reached ({error}): use bounding.method band"
            ) from error
        return self._opened[-1]

    def _start(self, topology: Topology, count: Any) -> None:
        super()._start(topology, count)
        self._describe()

    def _shrink(self) -> None:
        number = cupy.full(len(self._count), -1, np.int32)
        stay = cupy.flatnonzero(self._count >= 0)
        number[stay] = cupy.arange(len(stay), dtype=np.int32)
        self._ghost = number[self._ghost]  # those that fell are not asked for again
        del number, stay
        super()._shrink()

    def _describe(self) -> None:
        """Peers of peers.cuh."""
        start, subscription = self._subscriptions
        own, offsets, posts = self._mailbox, self._mailbox.offsets[:-1], self._mailbox.posts_bytes
        received = self._reached[self._rank] + posts
        tables = [
            self._reached,
            [pointer + posts + 4 * first for pointer, first in zip(self._reached, self._offsets, strict=True)],
            [received + 4 * first for first in offsets],
            [self._ghost.data.ptr + 4 * first for first in offsets],
        ]
        self._tables = cupy.asarray(np.array(tables, np.uint64))
        words = [
            self._rank,
            len(own.offsets) - 1,
            int(PATIENCE_SECONDS * 1e9),
            self._meeting.data.ptr,
            *(self._tables[i].data.ptr for i in range(4)),
            start.data.ptr,
            subscription.data.ptr,
            0 if self._origin is None else self._origin.data.ptr,
        ]
        self._described = cupy.asarray(np.array(words, np.uint64))
