"""Peeling of several subgraphs in step, on one device or on several of one machine; peers.cuh tells how."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import cupy
import numpy as np
from cupy.cuda import runtime
from numpy.typing import NDArray

from ..graph import Topology
from ..peers import MOST_PEERS, THIS_PROCESS, Address, this_machine
from .peel import Peeling

PATIENCE_SECONDS = 300.0
"""A peer that keeps the others waiting so long is lost: its process has died. One that fails says so. The longest that
one at work may take is a round among its hubs, or its first rows.
"""
SHRINK_WITH = 0.7
"""Edges are numbered anew while another peer does so when this share of them is left."""
_SOME_LEFT, _LOST, _QUIT = 2, 16, 8
NEVER = 2**32 - 1
"""Turn of a peer that will not come any more."""
_LEAST_BYTES = 2**21
"""What the driver shares between processes at once."""


class Mailbox:
    """Memory of one peer that the others write into: posts, then what each sends.

    Lies outside of CuPy's pool, as it is shared.
    """

    offsets: tuple[int, ...] = ()
    """See `Address`."""

    def __init__(self, peers: int, never: NDArray[np.uint32], nbytes: int) -> None:
        if peers > MOST_PEERS:
            raise ValueError(f"{peers} subgraphs cannot be peeled in step, {MOST_PEERS} at most")
        self.never = never
        """A post after which nobody waits for its sender."""
        self.posts_bytes = 2 * peers * never.nbytes
        self.nbytes = max(_LEAST_BYTES, self.posts_bytes + nbytes)
        self._memory = _allocated(self.nbytes)
        runtime.memset(self._memory.ptr, 0, self.posts_bytes)
        runtime.deviceSynchronize()

    def address(self) -> Address:
        """Where others find it."""
        pointer, handle = int(self._memory.ptr), b""
        with suppress(runtime.CUDARuntimeError):
            handle = runtime.ipcGetMemHandle(pointer)
        return Address(this_machine(), THIS_PROCESS, pointer, handle, self.offsets)

    def __reduce__(self) -> tuple[Any, ...]:
        return _Moved, ()


class GhostMailbox(Mailbox):
    """What others write into are edges. `offsets` [peers + 1] tells where those of each start."""

    def __init__(self, offsets: Sequence[int]) -> None:
        self.offsets = tuple(map(int, offsets))
        never = np.array([0, _LOST, 0, NEVER], np.uint32)
        super().__init__(len(offsets) - 1, never, 4 * self.offsets[-1])


class _Moved:
    """What arrives where Dask moves a mailbox to: it stays in the process that others write to."""


def _allocated(size: int) -> Any:
    try:
        return cupy.cuda.Memory(size)
    except runtime.CUDARuntimeError:
        cupy.get_default_memory_pool().free_all_blocks()
    try:
        return cupy.cuda.Memory(size)
    except runtime.CUDARuntimeError as error:
        raise MemoryError(f"{size} bytes for what other partitions send: {error}") from error


class Links:
    """The way from one peer to all mailboxes, its own included. Raises ConnectionError if one cannot be reached."""

    def __init__(self, rank: int, mailbox: Mailbox, addresses: Sequence[Address]) -> None:
        own = addresses[rank]
        if isinstance(mailbox, _Moved) or (mailbox.address().pointer, THIS_PROCESS) != (own.pointer, own.process):
            raise ConnectionError(f"the worker that kept partition {rank} is gone")
        self.rank, self.mailbox = rank, mailbox
        self.here = sum(address.process == THIS_PROCESS for address in addresses)
        """Peers of this process."""
        self.addresses = tuple(addresses)
        self._opened: list[int] = []
        try:
            self.pointers = [self._reach(address) for address in addresses]
        except BaseException:
            self.close()
            raise

    def abandon(self) -> None:
        """Tell the others not to wait any more."""
        never = self.mailbox.never
        for q, pointer in enumerate(self.pointers):
            for slot in (self.rank, len(self.pointers) + self.rank) if q != self.rank else ():
                with suppress(runtime.CUDARuntimeError):
                    at = pointer + slot * never.nbytes
                    runtime.memcpy(at, never.ctypes.data, never.nbytes, runtime.memcpyHostToDevice)

    def close(self) -> None:
        """Let go of the others' memory."""
        for pointer in self._opened:
            with suppress(runtime.CUDARuntimeError):
                runtime.ipcCloseMemHandle(pointer)
        self._opened = []

    def _reach(self, address: Address) -> int:
        if address.process == THIS_PROCESS:
            return address.pointer
        try:
            if address.machine != this_machine() or not address.handle:
                raise ConnectionError("it is on another machine, or CUDA shares nothing between processes here")
            self._opened.append(int(runtime.ipcOpenMemHandle(address.handle)))
        except (ConnectionError, runtime.CUDARuntimeError) as error:
            raise ConnectionError(
                f"the memory of another process's GPU cannot be reached ({error}): use bounding.method=band"
            ) from error
        return self._opened[-1]


class PeerPeeling(Peeling):
    """The peeling of one subgraph of several; see `kernels.peeling_in_step`."""

    def __init__(
        self,
        topology: Topology,
        count: Any,
        ghost: Any,
        start: Any,
        subscription: Any,
        links: Links,
        low: Any = None,
        level: int = 0,
        levels: int = 0,
    ) -> None:
        self._links = links
        self._ghost, self._subscriptions = ghost, (start, subscription)
        self._meeting = cupy.zeros(4 + 3 * MOST_PEERS, np.uint32)
        self._described: Any = None
        self.in_progress = True
        """Whether any peer has edges left, and none has quit."""
        super().__init__(topology, count, low, level, levels)
        self._stream = cupy.cuda.get_current_stream()
        if links.here > 1:
            self._stream.synchronize()
            self._stream = cupy.cuda.Stream(non_blocking=True)

    @property
    def sent(self) -> int:
        """Edges told to others."""
        return int(self._meeting[4 : 4 + MOST_PEERS].sum())

    def launch(self, quit: bool) -> None:
        """Start to let levels fall, together with all others; with `quit` all stop after the first."""
        with self._stream:
            self._launch(self._described, np.uint32(_QUIT if quit else 0), share=self._links.here)

    def settle(self) -> None:
        """Wait until all have stopped, and number edges anew if they are few enough.

        Raises ConnectionError if a peer did not come.
        """
        with self._stream:
            news = self._look()
            if news & _LOST:
                raise ConnectionError(f"another partition has failed, or not moved for {PATIENCE_SECONDS:.0f} s")
            self.in_progress = news & (_SOME_LEFT | _QUIT) == _SOME_LEFT
            self._take_out(SHRINK_WITH)
        self._stream.synchronize()

    def wait(self) -> None:
        """Until nothing of it runs any more, whatever became of it."""
        with suppress(runtime.CUDARuntimeError):
            self._stream.synchronize()

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
        links, own = self._links, self._links.mailbox
        offsets, posts = own.offsets[:-1], own.posts_bytes
        received = links.pointers[links.rank] + posts
        places = [address.offsets[links.rank] for address in links.addresses]
        tables = [
            links.pointers,
            [pointer + posts + 4 * first for pointer, first in zip(links.pointers, places, strict=True)],
            [received + 4 * first for first in offsets],
            [self._ghost.data.ptr + 4 * first for first in offsets],
        ]
        self._tables = cupy.asarray(np.array(tables, np.uint64))
        words = [
            links.rank,
            len(offsets),
            int(PATIENCE_SECONDS * 1e9),
            self._meeting.data.ptr,
            *(self._tables[i].data.ptr for i in range(4)),
            start.data.ptr,
            subscription.data.ptr,
            0 if self._origin is None else self._origin.data.ptr,
        ]
        self._described = cupy.asarray(np.array(words, np.uint64))
