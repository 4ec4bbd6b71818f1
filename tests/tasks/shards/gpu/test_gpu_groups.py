"""Groups of shards on the GPU: every way of their mail, several in a process and one in each, and lost ones."""

from __future__ import annotations

import multiprocessing as mp
import os
import signal
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import strategies
from edgemill import kernels
from edgemill.kernels.gpu_shards import MAX_PEERS_PER_DEVICE
from edgemill.tasks.errors import ClusterLost, UsageError
from edgemill.tasks.shards import MemoryCarrier, ShardEdges, ShardOnGpu, peel_groups_on_gpu
from edgemill.tasks.shards.gpu.shard import HOST_MEMORY, MAILBOXES, NCCL, RELAY
from gpu_shards import SHARED_PATCH, by_the_other_peel, dealt, exact, intervals, peel_apart
from oracles import simple_edges
from sharding import drawn, ordered

pytestmark = pytest.mark.gpu
shard_mail = pytest.importorskip("edgemill.kernels.gpu.shards.mail", exc_type=ImportError)
WAYS = ["mailboxes", "auto", "dask"]
"""With the last one the carrier carries, whichever it is."""


def peel(edges: Sequence[ShardEdges], way: str, **named: Any) -> list[ShardOnGpu]:
    carriers = MemoryCarrier.open(len(edges))
    try:
        return peel_groups_on_gpu(edges, carriers, way=way, **named)
    finally:
        for carrier in carriers:
            carrier.close()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("shards", [1, 2, 3, MAX_PEERS_PER_DEVICE])
def test_groups_of_one_process(shards: int, way: str) -> None:
    graph = ordered(drawn(1, 90, 4000))
    parts = dealt(graph, shards)
    states = peel(parts, way)
    assert intervals(graph, parts, states) == by_the_other_peel(graph)
    assert {state.way for state in states} == {RELAY if way == "dask" and shards > 1 else MAILBOXES}
    left = sum(state.figures.edges for state in states)
    assert left == int((graph.support > 0).sum())


@given(
    graph=strategies.simple_graphs(40),
    shards=st.sampled_from([1, 2, 3, 4, 7]),
    most_at_once=st.sampled_from([1, 2, 5, 2**20]),
)
@settings(max_examples=100, deadline=None, suppress_health_check=SHARED_PATCH)
def test_relayed_levels_by_definition(
    monkeypatch: pytest.MonkeyPatch, graph: list[tuple[int, int]], shards: int, most_at_once: int
) -> None:
    edges = sorted(simple_edges(graph))
    prepared = ordered(edges)
    parts = dealt(prepared, shards)
    with monkeypatch.context() as patch:
        relayed = shard_mail.RelayedMail
        patch.setattr(
            "edgemill.kernels.gpu.shards.mail.RelayedMail",
            lambda rank, shards, edges, here: relayed(rank, shards, edges, here, most_at_once, most_at_once),
        )
        states = peel(parts, "dask")
    assert intervals(prepared, parts, states) == exact(edges)


@pytest.mark.parametrize("way", WAYS)
def test_in_pieces(way: str) -> None:
    """Gone on with after every level, by another way each time."""
    edges = drawn(2, 40, 400)
    graph = ordered(edges)
    known = by_the_other_peel(graph)
    parts = dealt(graph, 3)
    before = peel(parts, way, seconds=0)
    turn = WAYS.index(way)
    while before[0].left:
        found = intervals(graph, parts, before)
        assert all(low <= known[edge][0] <= high for edge, (low, high) in found.items())
        turn += 1
        after = peel(parts, WAYS[turn % len(WAYS)], before=before, seconds=0)
        assert after[0].level > before[0].level
        assert after[0].exchanges > before[0].exchanges
        before = after
    assert intervals(graph, parts, before) == known


def test_unreachable_mailboxes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked for they are refused; else the carrier carries."""

    def unreachable(*_: object) -> None:
        raise ConnectionError("the memory of another process's GPU cannot be reached")

    monkeypatch.setattr("edgemill.kernels.gpu.shards.mail.DirectMail", unreachable)
    graph = ordered(drawn(1, 40, 400))
    parts = dealt(graph, 2)
    assert {state.way for state in peel(parts, "auto")} == {RELAY}
    with pytest.raises(UsageError, match=r"bounding\.carrier.*mailboxes"):
        peel(parts, "mailboxes")


class Deaf(MemoryCarrier):
    """Carries a few packets, then its group is gone."""

    most = 30

    def exchange(self, common: Any, own: Any) -> Any:
        self.most -= 1
        if not self.most:
            self._end("is gone")
        return super().exchange(common, own)


def test_a_group_that_is_lost_while_mail_is_carried(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = ordered(drawn(1, 90, 4000))
    parts = dealt(graph, 2)
    carriers = Deaf.open(2)
    with pytest.raises(ClusterLost, match=r"group [01] .*is gone"):
        peel_groups_on_gpu(parts, carriers, way="dask")


@pytest.fixture
def folder() -> Iterator[str]:
    """In memory: Linux lets no device write to memory that belongs to files on a disk."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as found:
        yield found
        assert not os.listdir(found)


def started(folder: str, way: str, killed: Sequence[int]) -> tuple[list[Any], Any]:
    context = mp.get_context("spawn")
    to = context.Queue()
    processes = [context.Process(target=peel_apart, args=(rank, 2, folder, way, to, rank in killed)) for rank in (0, 1)]
    for process in processes:
        process.start()
    return processes, to


USED = {"mailboxes": MAILBOXES, "shared-memory": HOST_MEMORY, "nccl": NCCL}


def need_gpus(way: str) -> None:
    if way == "nccl" and kernels.device().count < 2:
        pytest.skip("NCCL needs a GPU for each process, and this machine has one")


@pytest.mark.parametrize("way", USED)
def test_groups_of_two_processes(folder: str, way: str) -> None:
    """On one GPU, where the way allows that."""
    need_gpus(way)
    processes, to = started(folder, way, [])
    found = dict((rank, rest) for rank, *rest in (to.get(timeout=100) for _ in processes))
    for process in processes:
        process.join(60)
    graph = ordered(drawn(1, 90, 4000))
    together = {**found[0][1], **found[1][1]}
    assert together == by_the_other_peel(graph)
    assert [found[rank][0] for rank in (0, 1)] == [USED[way]] * 2


@pytest.mark.parametrize("way", USED)
def test_a_process_that_is_killed(folder: str, way: str) -> None:
    """The other one hears of it, whatever its kernel waits for."""
    need_gpus(way)
    processes, to = started(folder, way, [1])
    rank, message = to.get(timeout=100)
    assert rank == 0
    assert "group 1" in message
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, -signal.SIGKILL]


def test_letters_that_are_not_mail() -> None:
    mail = shard_mail.RelayedMail(0, 2, 100, 1)
    for common, own in (([1], []), ([2, 0, 0, 0, 1, 1], []), ([0, 0, 0, 0], [0] * 4 * 201)):
        with pytest.raises(ValueError, match="a packet with"):
            mail.deliver(1, 1, np.array(common, np.uint32), np.array(own, np.uint32))
    mail.close()
