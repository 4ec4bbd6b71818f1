"""How mailboxes are opened and closed. A stand-in replaces CUDA and records its calls, so no GPU is needed."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import cupy
import pytest

from edgemill.kernels.gpu.shards import mail as shard_mail
from edgemill.kernels.gpu.shards import shared_memory
from edgemill.kernels.gpu_shards import Address


class CudaError(Exception):
    """Stand-in for CUDARuntimeError, whose constructor needs a status."""


@dataclass
class Cuda:
    """A stand-in for CUDA that records calls."""

    full: bool = False
    emptied: int = 0
    shares: bool = True
    opened: list[bytes] = field(default_factory=list)
    closed: list[int] = field(default_factory=list)
    written: list[int] = field(default_factory=list)

    def allocate(self, size: int) -> Any:
        if self.full:
            raise CudaError("out of memory")
        return SimpleNamespace(ptr=10**6, size=size)

    def empty(self) -> None:
        self.emptied += 1

    def handle(self, pointer: int) -> bytes:
        if not self.shares:
            raise CudaError("not supported")
        return b"h%d" % pointer

    def open(self, handle: bytes) -> int:
        if not self.shares or handle == b"broken":
            raise CudaError("invalid handle")
        self.opened.append(handle)
        return 10**7 * len(self.opened)


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cuda]:
    cuda = Cuda()
    runtime = SimpleNamespace(
        CUDARuntimeError=CudaError,
        memcpyHostToDevice=1,
        memset=lambda *_: None,
        deviceSynchronize=lambda: None,
        ipcGetMemHandle=cuda.handle,
        ipcOpenMemHandle=cuda.open,
        ipcCloseMemHandle=cuda.closed.append,
        memcpy=lambda to, *_: cuda.written.append(to),
    )
    monkeypatch.setattr(shared_memory, "runtime", runtime)
    monkeypatch.setattr(cupy.cuda, "Memory", cuda.allocate)
    monkeypatch.setattr(cupy, "get_default_memory_pool", lambda: SimpleNamespace(free_all_blocks=cuda.empty))
    yield cuda


def elsewhere(own: Address, **other: Any) -> Address:
    return replace(own, process="another", pointer=5, handle=b"handle", **other)


def mailbox_of(shards: int) -> shard_mail.ShardMailbox:
    """The mailbox of one shard of a small graph."""
    return shard_mail.ShardMailbox(shards, 10)


def test_out_of_memory(cuda: Cuda) -> None:
    cuda.full = True
    with pytest.raises(MemoryError, match=r"2097152.*mail"):
        mailbox_of(1)
    assert cuda.emptied == 1


def test_links(cuda: Cuda) -> None:
    mailbox = mailbox_of(3)
    own = mailbox.address()
    here = replace(own, pointer=77)
    links = shared_memory.Links(1, mailbox, [here, own, elsewhere(own)])
    assert links.pointers == [77, 10**6, 10**7]
    assert (links.here, cuda.opened) == (2, [b"handle"])
    links.abandon()
    # Both posts of rank 1 of 3, at all but its own.
    assert cuda.written == [77 + 32, 77 + 4 * 32, 10**7 + 32, 10**7 + 4 * 32]
    links.close()
    links.close()
    assert cuda.closed == [10**7]


def test_unreachable_mailboxes(cuda: Cuda) -> None:
    mailbox = mailbox_of(3)
    own = mailbox.address()
    others = [elsewhere(own), elsewhere(own)]
    for other in (elsewhere(own, machine="far"), replace(others[0], handle=b""), replace(others[0], handle=b"broken")):
        with pytest.raises(ConnectionError, match=r"cannot be reached \(.*\)$"):
            shared_memory.Links(0, mailbox, [own, others[0], other])
    assert cuda.closed == [10**7, 2 * 10**7, 3 * 10**7]  # what had been opened before


def test_cuda_cannot_share_memory_between_processes(cuda: Cuda) -> None:
    cuda.shares = False
    mailbox = mailbox_of(2)
    own = mailbox.address()
    assert own.handle == b""
    assert shared_memory.Links(0, mailbox, [own, replace(own, pointer=77)]).pointers == [10**6, 77]


def test_a_mailbox_does_not_move(cuda: Cuda) -> None:
    mailbox = mailbox_of(2)
    own = mailbox.address()
    moved = pickle.loads(pickle.dumps(mailbox))
    for box, addresses in ((moved, [own, own]), (mailbox, [elsewhere(own), own])):
        with pytest.raises(ConnectionError, match="shard 0"):
            shared_memory.Links(0, box, addresses)


def test_mailboxes_of_shards(cuda: Cuda) -> None:
    """Capacity, for two turns, for the edges of each shard (8 bytes) and twice its events in messages (16 bytes)."""
    mailbox = shard_mail.ShardMailbox(3, 10**9, max_edges=10**6, max_events=10**5)
    assert mailbox.posts_bytes == 2 * 3 * 32
    assert mailbox.nbytes == 192 + 2 * 3 * (8 * 10**6 + 2 * 16 * 10**5)
    small = shard_mail.ShardMailbox(3, 70_000)
    assert (small.max_edges, small.max_events) == (70_000, 70_000)
    assert small.nbytes == max(2**21, 192 + 2 * 3 * 70_000 * (8 + 2 * 16))
    own = small.address()
    links = shared_memory.Links(0, small, [own, replace(own, pointer=77)])
    links.abandon()
    assert cuda.written == [77, 77 + 2 * 32]
    with pytest.raises(ValueError, match=r"33.*step.*32"):
        shard_mail.ShardMailbox(33, 1)
