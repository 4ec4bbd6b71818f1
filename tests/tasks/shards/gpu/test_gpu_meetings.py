"""How groups on GPUs choose the way of their mail, and what becomes of a lost one, with kernels stood for: no GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from edgemill.kernels.gpu_shards import Address
from edgemill.tasks.errors import ClusterLost, InternalError, UsageError
from edgemill.tasks.shards import MemoryCarrier, ShardEdges, ShardOnGpu, peel_groups_on_gpu
from edgemill.tasks.shards.gpu import groups as gpu_groups
from edgemill.tasks.shards.gpu import transport as gpu_transport
from edgemill.tasks.shards.gpu.shard import MAILBOXES, RELAY
from stand_ins import Mail, Mailbox, edges_of, peel, state_of


class House:
    """What stands for kernels, and what was asked of it."""

    def __init__(self) -> None:
        self.mails: list[Mail] = []
        self.addresses: list[list[Address]] = []
        self.reachable = True

    def direct(self, rank: int, mailbox: Mailbox, addresses: Sequence[Address]) -> Mail:
        self.addresses.append(list(addresses))
        if not self.reachable and rank == 1:
            raise ConnectionError("the memory of another process's GPU cannot be reached")
        return self._made(rank, len(addresses), direct=True)

    def relayed(self, rank: int, shards: int, edges: int, here: int) -> Mail:
        return self._made(rank, shards, direct=False)

    def _made(self, rank: int, shards: int, direct: bool) -> Mail:
        mail = Mail(rank, shards)
        if direct:
            mail.done.set()
        self.mails.append(mail)
        return mail


@pytest.fixture
def house(monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    house = House()
    monkeypatch.setattr(gpu_transport, "open_shard_mailbox", lambda edges: Mailbox(edges.group))
    monkeypatch.setattr("edgemill.kernels.gpu.shards.mail.DirectMail", house.direct)
    monkeypatch.setattr("edgemill.kernels.gpu.shards.mail.RelayedMail", house.relayed)
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
    why = "the memory of another process's GPU cannot be reached"
    assert {(state.way, state.why) for state in together(3, "auto")} == {(RELAY, why)}
    with pytest.raises(UsageError, match=r"bounding\.carrier.*carrier=auto"):
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
        mails[0].peer_lost.wait(60)
        return peel(edges, mails, *rest)

    monkeypatch.setattr(gpu_groups, "peel_shards_on_gpu", fails)
    errors = in_threads(
        [lambda g=g: peel_groups_on_gpu([edges_of(g, 2)], [carriers[g]], way=way) for g in (0, 1)]  # type: ignore[misc]
    )
    assert isinstance(errors[0], ClusterLost)
    assert "group 1" in str(errors[0])
    assert isinstance(errors[1], MemoryError)
    assert house.mails[0].peer_lost.is_set()


def test_groups_that_do_not_agree(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_groups, "peel_shards_on_gpu", lambda edges, *_: [state_of(one, 1) for one in edges])
    with pytest.raises(InternalError, match="removed 2"):
        together(2, "auto")


def test_letters_that_no_kernel_takes(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise ValueError("a packet of 1 words")

    monkeypatch.setattr(Mail, "deliver", refuse)
    with pytest.raises(InternalError, match=r"messages of group [01] .*cannot be sent: a packet"):
        together(2, "dask")
