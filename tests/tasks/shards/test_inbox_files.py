"""Inboxes in files that all groups of a host map."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgemill.tasks.errors import ClusterLost
from edgemill.tasks.shards.carriers.shared_memory import SharedMemoryCarrier
from edgemill.tasks.shards.gpu import transport
from edgemill.tasks.shards.gpu.transport import mapped_inboxes

WORDS = 5000


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[str]:
    yield str(tmp_path)
    assert not list(tmp_path.iterdir())


def met(folder: str, groups: int, work: Callable[[SharedMemoryCarrier], Any]) -> list[Any]:
    """The result of `work` for each group, each in its own thread; the text of the error if it failed."""

    def one(rank: int) -> Any:
        with closing(SharedMemoryCarrier.open([folder], "mail", rank, groups, 60.0)) as carrier:
            try:
                return work(carrier)
            except Exception as error:
                carrier.abandon()
                return error

    with ThreadPoolExecutor(groups) as pool:
        return list(pool.map(one, range(groups)))


def test_all_see_what_one_writes(folder: str) -> None:
    def work(carrier: SharedMemoryCarrier) -> list[list[int]]:
        with ThreadPoolExecutor(1) as pool, mapped_inboxes([carrier], WORDS, pool) as inboxes:
            assert all(len(inbox) >= WORDS and not inbox.any() for inbox in inboxes)
            carrier.exchange(np.zeros(0, np.uint32), [np.zeros(0, np.uint32)] * 3)
            assert not os.listdir(folder)
            for inbox in inboxes:
                inbox[WORDS - 1 - carrier.rank] = 7 + carrier.rank
            carrier.exchange(np.zeros(0, np.uint32), [np.zeros(0, np.uint32)] * 3)
            return [inbox[WORDS - 3 : WORDS].tolist() for inbox in inboxes]

    assert met(folder, 3, work) == [[[9, 8, 7]] * 3] * 3


@pytest.mark.parametrize(
    ("short", "why"),
    [("create_locked", "there is no space for 20480 bytes in"), ("open_own", "cannot be mapped .*No space")],
)
def test_one_group_without_room_or_a_map(folder: str, monkeypatch: pytest.MonkeyPatch, short: str, why: str) -> None:
    """All hear of it, and none has inboxes."""
    usual, calls = getattr(transport, short), [0]

    def refused(*arguments: Any) -> Any:
        calls[0] += 1
        if calls[0] == 2:
            raise OSError(28, "No space left on device")
        return usual(*arguments)

    monkeypatch.setattr(transport, short, refused)

    def work(carrier: SharedMemoryCarrier) -> str:
        with (
            ThreadPoolExecutor(1) as pool,
            pytest.raises(ConnectionError, match=why) as caught,
            mapped_inboxes([carrier], WORDS, pool),
        ):
            raise AssertionError("one inbox is not there")
        return str(caught.value)

    first, second = met(folder, 2, work)
    assert isinstance(first, str)
    assert first == second
    assert calls[0] >= 2


def test_a_group_that_fails_meanwhile(folder: str) -> None:
    def work(carrier: SharedMemoryCarrier) -> None:
        if carrier.rank == 1:
            raise ValueError("no")
        with ThreadPoolExecutor(1) as pool, mapped_inboxes([carrier], WORDS, pool):
            raise AssertionError("group 1 has not come")

    first, second = met(folder, 2, work)
    assert isinstance(first, ClusterLost)
    assert isinstance(second, ValueError)


def test_groups_of_one_process(folder: str) -> None:
    with ThreadPoolExecutor(2) as pool:
        opened = list(pool.map(lambda rank: SharedMemoryCarrier.open([folder], "mail", rank, 2, 60.0), range(2)))
        with closing(opened[0]), closing(opened[1]), mapped_inboxes(opened, 10, pool) as inboxes:
            assert len(inboxes) == 2
