"""Memory that peelings on GPUs of one machine write into; shard_mail.py and shard_mail.cuh tell what."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import cupy
import numpy as np
from cupy.cuda import runtime
from numpy.typing import NDArray

from ..peers import MOST_PEERS, THIS_PROCESS, Address, this_machine

PATIENCE_SECONDS = 300.0
"""A peer that keeps the others waiting so long is lost: its process has died. One that fails says so. The longest that
one at work may take is a round among its hubs, or its first rows.
"""
NEVER = 2**32 - 1
"""Turn of a peer that will not come any more."""
_LEAST_BYTES = 2**21
"""What the driver shares between processes at once."""


class Mailbox:
    """Memory of one peer that the others write into: posts, then what each sends.

    Lies outside of CuPy's pool, as it is shared.
    """

    def __init__(self, peers: int, never: NDArray[np.uint32], nbytes: int) -> None:
        if peers > MOST_PEERS:
            raise ValueError(f"{peers} shards cannot be peeled in step, {MOST_PEERS} at most")
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
        return Address(this_machine(), THIS_PROCESS, pointer, handle)

    def __reduce__(self) -> tuple[Any, ...]:
        return _Moved, ()


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
        raise MemoryError(f"{size} bytes for what other shards send: {error}") from error


class Links:
    """The way from one peer to all mailboxes, its own included. Raises ConnectionError if one cannot be reached."""

    def __init__(self, rank: int, mailbox: Mailbox, addresses: Sequence[Address]) -> None:
        own = addresses[rank]
        if isinstance(mailbox, _Moved) or (mailbox.address().pointer, THIS_PROCESS) != (own.pointer, own.process):
            raise ConnectionError(f"the worker that kept shard {rank} is gone")
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
            raise ConnectionError(f"the memory of another process's GPU cannot be reached ({error})") from error
        return self._opened[-1]
