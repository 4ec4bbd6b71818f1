"""GPU memory that processes of one machine share: mailboxes, whose content mail.py describes, and outboxes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import cupy
import numpy as np
from cupy.cuda import runtime
from numpy.typing import NDArray

from ...gpu_shards import MAX_PEERS, THIS_PROCESS, Address, machine_id

PATIENCE_SECONDS = 300.0
"""Seconds after which a silent peer counts as failed, since its process must have died: a peer that fails while its
process lives tells the others. The longest pauses of a working peer are a round among its hubs and the construction of
its rows.
"""
_MIN_BYTES = 2**21
"""The smallest unit of memory that the driver shares between processes."""


class Mailbox:
    """Memory of one peer into which the other peers write: posts, then the content that each peer sends.

    The memory is shared, and so is allocated outside of CuPy's pool. Raises ValueError for more than MAX_PEERS peers,
    MemoryError.
    """

    def __init__(self, peers: int, never: NDArray[np.uint32], nbytes: int) -> None:
        if peers > MAX_PEERS:
            raise ValueError(f"{peers} shards cannot be peeled in step, {MAX_PEERS} at most")
        self.never = never
        """A post after which no peer waits for its sender."""
        self.posts_bytes = 2 * peers * never.nbytes
        self.nbytes = max(_MIN_BYTES, self.posts_bytes + nbytes)
        self._memory = allocate_shared(self.nbytes)
        runtime.memset(self._memory.ptr, 0, self.posts_bytes)
        runtime.deviceSynchronize()

    def address(self) -> Address:
        """The address by which other peers open the mailbox."""
        return address_of(int(self._memory.ptr))

    def __reduce__(self) -> tuple[Any, ...]:
        return _MovedMailbox, ()


class _MovedMailbox:
    """The result of unpickling a mailbox in another process. The memory stays in the process that allocated it."""


def allocate_shared(size: int) -> Any:
    """`size` bytes of GPU memory that other processes can open. Raises MemoryError."""
    try:
        return cupy.cuda.Memory(size)
    except runtime.CUDARuntimeError:
        cupy.get_default_memory_pool().free_all_blocks()
    try:
        return cupy.cuda.Memory(size)
    except runtime.CUDARuntimeError as error:
        raise MemoryError(f"cannot allocate {size} bytes of GPU memory for mail: {error}") from error


def address_of(pointer: int) -> Address:
    """The address of memory of this process that starts at `pointer`."""
    handle = b""
    with suppress(runtime.CUDARuntimeError):
        handle = runtime.ipcGetMemHandle(pointer)
    return Address(machine_id(), THIS_PROCESS, pointer, handle)


def reach(address: Address) -> tuple[int, bool]:
    """A pointer to the memory at an address, and whether the memory was opened and has to be closed later.

    Raises ConnectionError if the memory cannot be reached.
    """
    if address.process == THIS_PROCESS:
        return address.pointer, False
    try:
        if address.machine != machine_id() or not address.handle:
            raise ConnectionError("it is on another machine, or CUDA shares nothing between processes here")
        return int(runtime.ipcOpenMemHandle(address.handle)), True
    except (ConnectionError, runtime.CUDARuntimeError) as error:
        raise ConnectionError(f"the memory of another process's GPU cannot be reached ({error})") from error


class Links:
    """The mailboxes of all peers, opened for peer `rank`. Raises ConnectionError if a mailbox cannot be reached."""

    def __init__(self, rank: int, mailbox: Mailbox, addresses: Sequence[Address]) -> None:
        own = addresses[rank]
        if isinstance(mailbox, _MovedMailbox) or (mailbox.address().pointer, THIS_PROCESS) != (
            own.pointer,
            own.process,
        ):
            raise ConnectionError(f"the worker with shard {rank} has ended")
        self.rank, self.mailbox = rank, mailbox
        self.here = sum(address.process == THIS_PROCESS for address in addresses)
        """Number of peers in this process."""
        self.addresses = tuple(addresses)
        self._opened: list[int] = []
        try:
            self.pointers = [self._reach(address) for address in addresses]
        except BaseException:
            self.close()
            raise

    def abandon(self) -> None:
        """Tell the other peers to stop waiting for this peer."""
        never = self.mailbox.never
        for q, pointer in enumerate(self.pointers):
            for slot in (self.rank, len(self.pointers) + self.rank) if q != self.rank else ():
                with suppress(runtime.CUDARuntimeError):
                    at = pointer + slot * never.nbytes
                    runtime.memcpy(at, never.ctypes.data, never.nbytes, runtime.memcpyHostToDevice)

    def close(self) -> None:
        """Close the memory of the other peers."""
        for pointer in self._opened:
            with suppress(runtime.CUDARuntimeError):
                runtime.ipcCloseMemHandle(pointer)
        self._opened = []

    def _reach(self, address: Address) -> int:
        pointer, opened = reach(address)
        if opened:
            self._opened.append(pointer)
        return pointer


_WORD = np.dtype(np.uint32).itemsize
_MIN_WORDS = 2**19
"""2 MiB: the smallest unit of memory that the driver shares between processes."""


class Outbox:
    """Two areas of `words` words each: other groups may read one exchange while the next exchange is written.

    The memory is shared, and so is allocated outside of CuPy's pool. Raises MemoryError.
    """

    def __init__(self, words: int) -> None:
        self.words = max(words, _MIN_WORDS)
        self._memory = allocate_shared(2 * self.words * _WORD)
        self.address = address_of(int(self._memory.ptr))
        """The address by which other processes open the outbox."""

    def view(self, turn: int, first: int, count: int) -> Any:
        """uint32 [count], from word `first` of area `turn`, 0 or 1."""
        return _words(int(self._memory.ptr), turn * self.words + first, count, self)


class OpenOutbox:
    """The outbox of another group, in this process or another. Raises ConnectionError if it cannot be reached."""

    def __init__(self, address: Address, words: int) -> None:
        self.words = words
        self._pointer, self._is_opened = reach(address)

    def view(self, turn: int, first: int, count: int) -> Any:
        """See `Outbox.view`. Reading the view copies from the other GPU."""
        return _words(self._pointer, turn * self.words + first, count, self)

    def close(self) -> None:
        """Close the other process's memory. Views must not be used any more."""
        if self._is_opened:
            self._is_opened = False
            runtime.ipcCloseMemHandle(self._pointer)


def _words(pointer: int, first: int, count: int, owner: object) -> Any:
    # The array claims to be on the reading device, because CuPy refuses arrays of other devices. The memory of the
    # other device is mapped here.
    device = runtime.getDevice()
    memory = cupy.cuda.UnownedMemory(pointer, (first + count) * _WORD, owner, device)
    return cupy.ndarray((count,), np.uint32, cupy.cuda.MemoryPointer(memory, first * _WORD))
