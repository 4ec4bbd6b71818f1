"""Mail through host memory. Stand-ins replace the kernel and CUDA."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event, Thread

import numpy as np
import pytest

from edgemill.kernels.gpu.shards.mail import HEADER, RelayedMail

shard_mail = pytest.importorskip("edgemill.kernels.gpu.shards.mail", exc_type=ImportError)
SHARDS, EDGES, EVENTS = 3, 5, 4


@pytest.fixture
def mails(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[RelayedMail]]:
    monkeypatch.setattr(shard_mail, "_pinned", lambda words: np.zeros(words, np.uint32))
    made = [RelayedMail(rank, SHARDS, 100, 1, EDGES, EVENTS) for rank in range(SHARDS)]
    yield made
    for mail in made:
        mail.close()


def write(address: int, words: list[int]) -> None:
    """Write words to an address, as a kernel does."""
    import ctypes

    ctypes.memmove(address, np.array(words, np.uint32).ctypes.data, 4 * len(words))


def read(address: int, words: int) -> list[int]:
    import ctypes

    return list((ctypes.c_uint32 * words).from_address(address))


def post(mail: RelayedMail, turn: int) -> None:
    """Write what a kernel writes in one meeting: edges with its rank, and messages with the rank of the receiver."""
    posts, edges, messages = mail.tables()
    side = turn & 1
    for address in edges[side]:
        write(int(address), [mail.rank, turn])
    for q in range(SHARDS):
        write(int(messages[side, q]), [mail.rank, q, turn, 0] * (q != mail.rank))
        numbers = (1, int(q != mail.rank), 4 + mail.rank, 2**32 - 1 - turn)
        write(int(posts[side, q]), [word for number in numbers for word in (number, turn)])


def carry(mails: list[RelayedMail], turn: int) -> None:
    packets = [mail.outgoing(turn) for mail in mails]
    for mail in mails:
        for sender, (common, own) in enumerate(packets):
            if sender != mail.rank:
                mail.deliver(turn, sender, common.copy(), own[mail.rank].copy())


def test_mail_arrives(mails: list[RelayedMail]) -> None:
    for turn in (1, 2, 3):
        for mail in mails:
            post(mail, turn)
        assert all(mail.await_post(turn, Event()) for mail in mails)
        carry(mails, turn)
        for mail in mails:
            side, at = turn & 1, mail.inbox
            for sender in range(SHARDS):
                slot = side * SHARDS + sender
                numbers = read(at + 32 * slot, 8)
                assert numbers[::2] == [1, int(sender != mail.rank), 4 + sender, 2**32 - 1 - turn]
                assert numbers[1::2] == [turn] * 4
                assert read(at + 32 * 2 * SHARDS + 8 * EDGES * slot, 2) == [sender, turn]
                if sender != mail.rank:
                    begin = at + (32 + 8 * EDGES) * 2 * SHARDS
                    assert read(begin + 32 * EVENTS * slot, 4) == [sender, mail.rank, turn, 0]


def test_a_thread_that_waits_for_mail(mails: list[RelayedMail]) -> None:
    """The thread sees a post, and stops waiting when the event is set."""
    mail, ended, seen = mails[0], Event(), []
    waiting = Thread(target=lambda: seen.extend([mail.await_post(1, ended), mail.await_post(2, ended)]))
    waiting.start()
    post(mail, 1)
    while not seen and waiting.is_alive():
        waiting.join(0.01)
        if mail.await_post(1, ended):
            break
    ended.set()
    waiting.join(30)
    assert seen == [True, False]


def test_a_lost_shard(mails: list[RelayedMail]) -> None:
    assert read(int(mails[0].peer_lost.ctypes.data), 1) == [0]
    mails[0].mark_peer_lost()
    assert read(int(mails[0].peer_lost.ctypes.data), 1) == [1]


@pytest.mark.parametrize("common", [[], [6, 0, 0, 0] + [0] * 12, [1, 0, 0, 0]])
def test_letters_of_wrong_sizes_are_refused(mails: list[RelayedMail], common: list[int]) -> None:
    with pytest.raises(ValueError, match="a packet with"):
        mails[0].deliver(1, 1, np.array(common, np.uint32), np.zeros(0, np.uint32))


def test_one_shard_sends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard_mail, "_pinned", lambda words: np.zeros(words, np.uint32))
    mail = RelayedMail(0, 1, 100, 1)
    posts, edges, messages = mail.tables()
    assert posts.shape == messages.shape == (2, 1)
    assert edges.shape == (2, 1)
    assert mail.inbox == int(posts[0, 0])
    ended = Event()
    assert mail.await_post(1, ended)
    assert len(mail.outgoing(1)[0]) == HEADER


def test_addresses_of_mailboxes() -> None:
    """Each shard writes to its own part of each mailbox."""
    seen: set[int] = set()
    for rank in range(SHARDS):
        mail = object.__new__(shard_mail.DirectMail)
        mail.rank, mail.max_edges, mail.max_events = rank, EDGES, EVENTS
        mail.pointers = [10**6 * (q + 1) for q in range(SHARDS)]
        for table in mail.tables():
            assert table.shape == (2, SHARDS)
            assert table.flags.c_contiguous
            assert not seen & set(table.ravel().tolist())
            seen |= set(table.ravel().tolist())
    assert len(seen) == 3 * 2 * SHARDS * SHARDS


@pytest.mark.parametrize(
    ("shards", "here", "alone"), [(1, 1, False), (2, 2, True), (4, 4, True), (4, 2, False), (2, 1, False)]
)
def test_all_shards_on_one_device(shards: int, here: int, alone: bool) -> None:
    """Their kernels need no fences for other devices and the host."""
    mail = object.__new__(shard_mail.DirectMail)
    mail.pointers, mail.here = [10**6] * shards, here
    assert mail.on_one_device is alone


def test_carried_mail_needs_fences_for_the_host(mails: list[RelayedMail]) -> None:
    assert not any(mail.on_one_device for mail in mails)
