"""Groups on GPUs whose mail goes by NCCL, or through memory of their host, with NCCL and kernels stood for: no GPU."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Barrier, BrokenBarrierError
from typing import Any

import numpy as np
import pytest

from edgemill.kernels.gpu_shards import THIS_PROCESS
from edgemill.kernels.runtime.device import Device
from edgemill.tasks.errors import ClusterLost, InternalError, UsageError
from edgemill.tasks.shards import MemoryCarrier, ShardOnGpu, peel_groups_on_gpu
from edgemill.tasks.shards.carriers.carrier import Carrier, all_gather
from edgemill.tasks.shards.carriers.shared_memory import SharedMemoryCarrier
from edgemill.tasks.shards.gpu import groups as gpu_groups
from edgemill.tasks.shards.gpu import transport as gpu_transport
from edgemill.tasks.shards.gpu.shard import HOST_MEMORY, NCCL, RELAY
from edgemill.tasks.shards.gpu.transport import NcclCarrier
from stand_ins import Mail, Mailbox, edges_of, peel

GPU = Device("a GPU", 2**37, 1, "", "a machine")
WORDS = np.arange(2, dtype=np.uint32)


class Library:
    """A stand-in for NCCL: ranks that exchange at a barrier."""

    def __init__(self, groups: int) -> None:
        self.barrier = Barrier(groups)
        self.sent: list[Any] = [None] * groups
        self.missing = self.unconnected = self.error = ""
        self.number: int | None = None
        """The number that rank 1 sends instead of that of its exchange."""
        self.done: list[str] = []

    def ranks(self, identity: bytes, rank: int, count: int, max_common_words: int, max_own_words: int) -> Ranks:
        assert (identity, max_common_words, max_own_words) == (b"one meeting", 10, 10)
        if self.unconnected:
            raise RuntimeError(self.unconnected)
        return Ranks(self, rank, count)


class Ranks:
    """One of them."""

    def __init__(self, library: Library, rank: int, count: int) -> None:
        self.rank, self.count = rank, count
        self._library = library

    def exchange(self, number: int, common: Any, own: Sequence[Any]) -> list[tuple[int, Any, Any]]:
        library = self._library
        sent_number = number if library.number is None or self.rank != 1 else library.number
        try:
            library.barrier.wait(60)
            library.sent[self.rank] = sent_number, common.copy(), [words.copy() for words in own]
            library.barrier.wait(60)
        except BrokenBarrierError as error:
            raise RuntimeError("NCCL_ERROR_REMOTE_ERROR") from error
        return [(sent_number, to_all, to_each[self.rank]) for sent_number, to_all, to_each in library.sent]

    def check(self) -> None:
        if self._library.error:
            raise RuntimeError(self._library.error)

    def abort(self) -> None:
        self._library.done.append(f"{self.rank} aborts")
        self._library.barrier.abort()

    def close(self) -> None:
        self._library.done.append(f"{self.rank} closes")


@pytest.fixture
def mails(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Mail]]:
    made: list[Mail] = []

    def relayed(rank: int, shards: int, edges: int, here: int) -> Mail:
        made.append(Mail(rank, shards))
        return made[-1]

    monkeypatch.setattr("edgemill.kernels.gpu.shards.mail.RelayedMail", relayed)
    monkeypatch.setattr(gpu_groups, "peel_shards_on_gpu", peel)
    yield made
    assert all(mail.closed == 1 for mail in made)


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    library = Library(2)
    monkeypatch.setattr("edgemill.kernels.gpu.shards.nccl.missing", lambda: library.missing)
    monkeypatch.setattr("edgemill.kernels.gpu.shards.nccl.new_id", lambda: b"one meeting")
    monkeypatch.setattr("edgemill.kernels.gpu.shards.nccl.Ranks", library.ranks)
    monkeypatch.setattr("edgemill.kernels.gpu.shards.nccl.RESERVED_PROCESSORS", 4)
    monkeypatch.setattr("edgemill.kernels.device", lambda: GPU)

    def apart(carrier: Carrier, text: bytes) -> list[bytes]:
        """As if each group had a process and a GPU of its own, though threads have them here."""
        own = f'process {carrier.rank}", "a machine", "bus {carrier.rank}'.encode()
        return all_gather(carrier, text.replace(f'{THIS_PROCESS}", "a machine", "'.encode(), own))

    monkeypatch.setattr(gpu_transport, "all_gather", apart)
    return library


def in_threads(work: Callable[[int], Any], groups: int = 2) -> list[Any]:
    """What each of the groups gives, or raises."""

    def one(rank: int) -> Any:
        try:
            return work(rank)
        except Exception as error:
            return error

    with ThreadPoolExecutor(groups) as pool:
        return list(pool.map(one, range(groups)))


def by_nccl() -> list[Any]:
    carriers = MemoryCarrier.open(2)
    return in_threads(lambda rank: peel_groups_on_gpu([edges_of(rank, 2)], [carriers[rank]], way="nccl")[0])


def test_mail_goes_by_nccl(library: Library, mails: list[Mail]) -> None:
    assert [state.way for state in by_nccl()] == [NCCL] * 2
    for mail in mails:
        other = 1 - mail.rank
        assert mail.came == [(turn, other, [turn, other], [turn, other, mail.rank]) for turn in (1, 2, 3)]
        assert mail.reserved_processors == 4
    assert sorted(library.done) == ["0 closes", "1 closes"]


@pytest.mark.parametrize("missing", ["", "CuPy finds no NCCL"])
def test_refusals(library: Library, mails: list[Mail], monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    """Where one process has no NCCL, and where two have one GPU, all end."""
    library.missing = missing

    def on_one_gpu(carrier: Carrier, text: bytes) -> list[bytes]:
        return all_gather(carrier, text.replace(THIS_PROCESS.encode(), f"process {carrier.rank}".encode()))

    monkeypatch.setattr(gpu_transport, "all_gather", on_one_gpu)
    match = missing or "two workers have the same GPU"
    for error in by_nccl():
        assert isinstance(error, UsageError)
        assert match in str(error)
        assert "bounding.carrier" in str(error)
    assert not mails


def test_groups_of_one_process_need_no_nccl(
    library: Library, mails: list[Mail], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They go as with `auto`."""

    def unreachable(*_: object) -> None:
        raise ConnectionError("CUDA shares nothing")

    monkeypatch.setattr(gpu_transport, "open_shard_mailbox", lambda edges: Mailbox(edges.group))
    monkeypatch.setattr("edgemill.kernels.gpu.shards.mail.DirectMail", unreachable)
    monkeypatch.setattr(gpu_transport, "all_gather", all_gather)
    states = peel_groups_on_gpu([edges_of(g, 2) for g in (0, 1)], MemoryCarrier.open(2), way="nccl")
    assert [(state.way, state.why) for state in states] == [(RELAY, "CUDA shares nothing")] * 2
    assert not library.done


def test_ranks_that_nccl_cannot_connect(library: Library, mails: list[Mail]) -> None:
    library.unconnected = "NCCL_ERROR_SYSTEM_ERROR"
    for error in by_nccl():
        assert isinstance(error, ClusterLost)
        assert "NCCL_ERROR_SYSTEM_ERROR" in str(error)
    assert len(mails) == 2


def test_a_group_that_fails(library: Library, mails: list[Mail], monkeypatch: pytest.MonkeyPatch) -> None:
    """The other one's kernel is told before NCCL's."""
    monkeypatch.setattr(Mail, "meetings", 2**31)

    def fails(edges: Sequence[Any], given: Sequence[Any], *rest: Any) -> list[ShardOnGpu]:
        if edges[0].group == 1:
            raise MemoryError("no room")
        return peel(edges, given, *rest)

    def abort(ranks: Ranks) -> None:
        told[ranks.rank] = next(mail for mail in mails if mail.rank == ranks.rank).peer_lost.is_set()
        usual(ranks)

    told: dict[int, bool] = {}
    usual = Ranks.abort
    monkeypatch.setattr(Ranks, "abort", abort)
    monkeypatch.setattr(gpu_groups, "peel_shards_on_gpu", fails)
    first, second = by_nccl()
    assert isinstance(first, ClusterLost)
    assert "group 1" in str(first) or "group 0" in str(first)
    assert isinstance(second, MemoryError)
    assert sorted(library.done) == ["0 aborts", "1 aborts"]
    assert told[0]


def test_an_error_that_nccl_tells_later(library: Library, mails: list[Mail], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edgemill.tasks.shards.gpu.transport._HEARTBEAT_SECONDS", 0.01)
    monkeypatch.setattr(Mail, "meetings", 2**31)
    library.error = "NCCL_ERROR_REMOTE_ERROR"
    for error in by_nccl():
        assert isinstance(error, ClusterLost)
        assert "NCCL_ERROR_REMOTE_ERROR" in str(error) or "failed" in str(error)
    assert len(library.done) == 2


def carriers_of(library: Library) -> list[NcclCarrier]:
    bases = MemoryCarrier.open(2)
    found: list[NcclCarrier] = in_threads(lambda rank: NcclCarrier.open(bases[rank], 10, 10))
    return found


def test_a_letter_of_another_exchange(library: Library) -> None:
    carriers = carriers_of(library)
    library.number = 7
    found = in_threads(lambda rank: carriers[rank].exchange(WORDS, [WORDS, WORDS]))
    assert all(isinstance(error, InternalError) for error in found)
    assert "exchange 7 of group 1" in str(found[0]) and str(found[0]).endswith("came in 1")


def test_after_an_abort(library: Library) -> None:
    """Nothing is exchanged, checked or aborted any more, and closing needs no peers."""
    carrier = carriers_of(library)[0]
    carrier.abandon()
    carrier.abandon()
    library.error = "NCCL_ERROR_INTERNAL_ERROR"
    carrier.check()
    with pytest.raises(ClusterLost, match=r"0.*failed"):
        carrier.exchange(WORDS, [WORDS, WORDS])
    carrier.close()
    assert library.done == ["0 aborts"]


@pytest.fixture
def folder() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as found:
        yield found


@pytest.mark.parametrize("unreached", [(), (1,)])
def test_memory_of_the_host(
    mails: list[Mail], monkeypatch: pytest.MonkeyPatch, folder: str, unreached: Sequence[int]
) -> None:
    """Kernels write there if CUDA reaches it everywhere; else threads carry, and all know why."""

    def host_mail(rank: int, inboxes: Sequence[Any], edges: int, here: int) -> Mail:
        if rank in unreached:
            raise ConnectionError("CUDA cannot register memory")
        assert [len(inbox) for inbox in inboxes] == [1024] * 2
        mails.append(Mail(rank, 2))
        mails[-1].done.set()
        return mails[-1]

    monkeypatch.setattr("edgemill.kernels.gpu.shards.mail.host_inbox_words", lambda *_: 1000)
    monkeypatch.setattr("edgemill.kernels.gpu.shards.mail.HostMail", host_mail)

    def work(rank: int) -> ShardOnGpu:
        with closing(SharedMemoryCarrier.open([folder], "host", rank, 2, 60.0)) as carrier:
            return peel_groups_on_gpu([edges_of(rank, 2)], [carrier], way="shared-memory")[0]

    found = [(state.way, state.why) for state in in_threads(work)]
    assert found == [(RELAY, "CUDA cannot register memory") if unreached else (HOST_MEMORY, "")] * 2
