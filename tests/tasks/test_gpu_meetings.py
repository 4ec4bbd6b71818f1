"""How groups on GPUs choose the way of their mail, and what becomes of a lost one, with kernels stood for: no GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import numpy as np
import pytest

from edgemill.kernels.cpu.shards import Cut
from edgemill.kernels.peers import Address
from edgemill.tasks.errors import ClusterLost, InternalError, UsageError
from edgemill.tasks.shards import MemoryCarrier, ShardEdges, ShardOnGpu, gpu_groups, gpu_mail, peel_groups_on_gpu
from edgemill.tasks.shards.mail_ways import MAILBOXES, RELAY

NOTHING = np.empty(0, np.int32)
Peel = Callable[..., list[ShardOnGpu]]


class Mailbox:
    """Of one shard."""

    def __init__(self, group: int) -> None:
        self.group = group

    def address(self) -> Address:
        return Address("a machine", f"process {self.group}", 2**48 + self.group, bytes(range(200, 210)))


class Mail:
    """Of a shard whose kernel posts once in each of a few meetings."""

    spare, meetings = 0, 3
    most_common, most_own = 10, 10

    def __init__(self, rank: int, shards: int) -> None:
        self.rank, self.shards = rank, shards
        self.came: list[tuple[int, int, list[int], list[int]]] = []
        self.closed = self.abandoned = 0
        self.done, self.lost = Event(), Event()
        if shards == 1:
            self.done.set()

    def await_post(self, turn: int, ended: Event) -> bool:
        if turn <= self.meetings:
            return True
        self.done.set()
        ended.wait(60)
        return False

    def outgoing(self, turn: int) -> Any:
        own = [np.array([turn, self.rank, q], np.uint32) for q in range(self.shards)]
        return np.array([turn, self.rank], np.uint32), own

    def deliver(self, turn: int, sender: int, common: Any, own: Any) -> None:
        self.came.append((turn, sender, common.tolist(), own.tolist()))

    def lose(self) -> None:
        self.lost.set()
        self.done.set()

    def abandon(self) -> None:
        self.abandoned += 1

    def close(self) -> None:
        self.closed += 1


def edges_of(group: int, groups: int) -> ShardEdges:
    none = np.empty(0, np.uint32)
    return ShardEdges(group, groups, Cut(9, groups), none, none, NOTHING, 0)


def state_of(edges: ShardEdges, triangles: int = 0) -> ShardOnGpu:
    words = np.zeros(15, np.uint64)
    words[2] = triangles
    return ShardOnGpu(edges.group, edges.groups, 3, 2, 0, NOTHING, NOTHING, NOTHING, 0, 0, 0, 9, 7, 0, words)


class House:
    """What stands for kernels, and what was asked of it."""

    def __init__(self) -> None:
        self.mails: list[Mail] = []
        self.addresses: list[list[Address]] = []
        self.reachable = True

    def direct(self, _: Any, rank: int, mailbox: Mailbox, addresses: Sequence[Address]) -> Mail:
        self.addresses.append(list(addresses))
        if not self.reachable and rank == 1:
            raise ConnectionError("the memory of another process's GPU cannot be reached")
        return self._made(rank, len(addresses), direct=True)

    def relayed(self, _: Any, rank: int, shards: int, edges: int, here: int) -> Mail:
        return self._made(rank, shards, direct=False)

    def _made(self, rank: int, shards: int, direct: bool) -> Mail:
        mail = Mail(rank, shards)
        if direct:
            mail.done.set()
        self.mails.append(mail)
        return mail


def peel(edges: Sequence[ShardEdges], mails: Sequence[Any], *_: Any) -> list[ShardOnGpu]:
    for mail in mails:
        mail.done.wait(60)
        if mail.lost.is_set():
            raise ClusterLost("peeling in step ended")
    return [state_of(one) for one in edges]


@pytest.fixture
def house(monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    house = House()
    monkeypatch.setattr(gpu_mail, "open_shard_mailbox", lambda edges: Mailbox(edges.group))
    monkeypatch.setattr("edgemill.kernels.direct_mail", house.direct)
    monkeypatch.setattr("edgemill.kernels.relayed_mail", house.relayed)
    monkeypatch.setattr(gpu_groups, "peel_shards_on_gpu", peel)
    yield house
    assert all(mail.closed == 1 for mail in house.mails)


def together(groups: int, way: str) -> list[ShardOnGpu]:
    """All in one process."""
    return peel_groups_on_gpu(
        list(map(edges_of, range(groups), [groups] * groups)), MemoryCarrier.open(groups), way=way
    )


@pytest.mark.parametrize("way", ["auto", "mailboxes"])
@pytest.mark.parametrize("groups", [1, 2, 3])
def test_all_mailboxes_are_reached(house: House, groups: int, way: str) -> None:
    states = together(groups, way)
    assert [state.group for state in states] == list(range(groups))
    assert {state.way for state in states} == {MAILBOXES}
    assert house.addresses == [[Mailbox(group).address() for group in range(groups)]] * groups


def test_a_mailbox_out_of_reach(house: House) -> None:
    """All have their carriers carry, if they may."""
    house.reachable = False
    assert {state.way for state in together(3, "auto")} == {RELAY}
    with pytest.raises(UsageError, match=r"bounding\.carrier is mailboxes, and the memory of another .*carrier=auto"):
        together(3, "mailboxes")


@pytest.mark.parametrize("groups", [2, 3])
def test_carriers_carry(house: House, groups: int) -> None:
    together(groups, "dask")
    for mail in house.mails:
        expected = [
            (turn, q, [turn, q], [turn, q, mail.rank]) for turn in (1, 2, 3) for q in range(groups) if q != mail.rank
        ]
        assert mail.came == expected


def test_a_group_alone_needs_no_carrier(house: House) -> None:
    assert together(1, "dask")[0].way == MAILBOXES


def in_threads(works: Sequence[Callable[[], Any]]) -> list[BaseException | None]:
    with ThreadPoolExecutor(len(works)) as pool:
        return [future.exception() for future in [pool.submit(work) for work in works]]


@pytest.mark.parametrize("way", ["auto", "dask"])
def test_one_fails_and_the_others_end(house: House, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    carriers = MemoryCarrier.open(2)
    monkeypatch.setattr(Mail, "meetings", 2**31)  # the kernel of the other one posts, and waits

    def fails(edges: Sequence[ShardEdges], mails: Sequence[Any], *rest: Any) -> list[ShardOnGpu]:
        if edges[0].group == 1:
            raise MemoryError("no room")
        mails[0].lost.wait(60)
        return peel(edges, mails, *rest)

    monkeypatch.setattr(gpu_groups, "peel_shards_on_gpu", fails)
    errors = in_threads(
        [lambda g=g: peel_groups_on_gpu([edges_of(g, 2)], [carriers[g]], way=way) for g in (0, 1)]  # type: ignore[misc]
    )
    assert isinstance(errors[0], ClusterLost)
    assert "group 1 of the shards failed" in str(errors[0])
    assert isinstance(errors[1], MemoryError)
    assert house.mails[0].lost.is_set()


def test_groups_that_do_not_agree(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_groups, "peel_shards_on_gpu", lambda edges, *_: [state_of(one, 1) for one in edges])
    with pytest.raises(InternalError, match="shards removed 2 triangles"):
        together(2, "auto")


def test_letters_that_no_kernel_takes(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise ValueError("a letter of 1 words")

    monkeypatch.setattr(Mail, "deliver", refuse)
    with pytest.raises(InternalError, match=r"the mail of group [01] of the shards cannot be carried: a letter"):
        together(2, "dask")
