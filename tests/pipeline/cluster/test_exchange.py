"""Delivery of bundles: between worker processes in parcels, each for a pair of workers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, ClassVar

import pytest
from distributed import Client

from bundles import Numbers, joined, numbers_of, sums_of
from edgemill.pipeline import InternalError
from edgemill.pipeline.cluster.engine import Engine
from edgemill.pipeline.cluster.execution import together
from edgemill.pipeline.stages.exchange import Sent, exchange, forward, make_parcel, receive, send
from edgemill.pipeline.stages.task_engine import SequentialEngine, TaskEngine
from edgemill.tasks.messages import Bundle


def test_groups_of_the_same_worker() -> None:
    assert together([1, 0, 1, 1, 0, 1], 3) == [[0, 2, 3], [5], [1, 4]]
    assert together([0, 0], 1) == [[0], [1]]
    assert together([], 4) == []


def sums(engine: TaskEngine, senders: int, receivers: int, at: Sequence[int] | None = None) -> list[list[int]]:
    """What `receivers` sum up, by receiver. Sender i runs on the worker at[i]."""
    sent = send(engine, "send", "numbers", numbers_of, [(number, receivers) for number in range(senders)], at)
    again = forward(engine, "numbers", sent, "sums", sums_of, [(to,) for to in range(receivers)])
    (found,) = engine.gather(exchange(engine, "sums", again, joined, [()]))
    assert isinstance(found, list)
    return found


@pytest.mark.parametrize("at", [None, [1, 1, 0, 1, 1, 1, 0]])
def test_the_workers_do_not_change_what_arrives(two_workers: Client, at: Sequence[int] | None) -> None:
    expected = sums(SequentialEngine(), 7, 5)
    assert len(expected) == 4  # nobody sends to receiver 0
    assert all(len(own) == 7 and own == sorted(own) for own in expected)
    assert sums(Engine.connect(two_workers, "numbers"), 7, 5, at) == expected


class Counting(Engine):
    """Counts the tasks by function."""

    counted: ClassVar[Counter[str]] = Counter()

    def map(self, name: str, function: Any, arguments: Sequence[Any], *more: Any, **options: Any) -> Any:
        self.counted[function.__name__] += len(arguments)
        return super().map(name, function, arguments, *more, **options)


def test_the_number_of_parcels_is_that_of_pairs_of_workers(two_workers: Client) -> None:
    engine = Engine.connect(two_workers, "parcels")
    counting = Counting(**{field.name: getattr(engine, field.name) for field in fields(engine)})
    threads = engine.capacity.threads
    Counting.counted.clear()
    sent = send(counting, "send", "numbers", numbers_of, [(number, 2 * threads) for number in range(8)])
    found = exchange(counting, "numbers", sent, joined, [()] * (2 * threads))
    assert counting.counted == {"stamped": 8, "make_parcel": 4, "receive": 2 * threads}
    assert len(engine.gather(found)) == 2 * threads


def test_an_exchange_without_senders_or_receivers(two_workers: Client) -> None:
    engine = Engine.connect(two_workers, "none")
    assert engine.gather(exchange(engine, "numbers", Sent([], []), joined, [()])) == [[]]
    sent = send(engine, "send", "numbers", numbers_of, [(0, 3)])
    assert exchange(engine, "numbers", sent, joined, []) == []


def test_a_parcel_has_a_bundle_of_each_sender() -> None:
    bundles = [numbers_of(sender, 4) for sender in (5, 2)]
    parcel = make_parcel(bundles, [0, 3])
    assert {sender: list(own.parts) for sender, own in parcel.bundles.items()} == {5: [3], 2: [3]}
    assert [own.rows for own in parcel.bundles.values()] == [{3: 4}, {3: 4}]


def received(*mail: Any, senders: int = 2) -> Any:
    return receive(joined, 1, "", senders, mail)


def test_a_receiver_gets_one_bundle_of_each_sender_with_all_rows() -> None:
    first, second = (numbers_of(sender, 2) for sender in range(2))
    rows = [part.parts[1].tolist() for part in (first, second)]
    assert received(make_parcel([second, first], [1])) == received(second, first) == rows
    for mail in ([first], [first, first], [first, second, second]):
        with pytest.raises(InternalError, match=r"receiver 1 .*'' got [123] bundles of 2"):
            received(*mail)
    less = Bundle(1, {1: second.parts[1][:4]}, second.rows)
    with pytest.raises(InternalError, match=r"20.*receiver 1.*14"):
        received(first, less)
    none: Bundle[Numbers] = Bundle(1, {}, second.rows)
    with pytest.raises(InternalError, match=r"20.*receiver 1.*10"):
        received(make_parcel([first, none], [1]))
