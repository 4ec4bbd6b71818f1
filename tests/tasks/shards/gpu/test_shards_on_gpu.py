"""Peeling by shards on the GPU: the graphs and answers of the shards on the CPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import strategies
from edgemill import kernels
from edgemill.tasks.errors import ClusterLost
from edgemill.tasks.shards.gpu.shard import (
    ShardOnGpu,
    check_totals,
    direct_mail,
    open_shard_mailbox,
    peel_shards_on_gpu,
)
from edgemill.tasks.shards.group_edges import ShardEdges
from gpu_shards import SHARED_PATCH, by_the_other_peel, dealt, exact, intervals
from oracles import simple_edges
from sharding import Edge, drawn, ordered

SHAPES: dict[str, list[Edge]] = {
    "triangle": [(0, 1), (0, 2), (1, 2)],
    "wheel": [(0, rim) for rim in range(1, 30)] + [(rim, rim % 29 + 1) for rim in range(1, 30)],
    "hub and its book": [(0, 1)] + [(end, page) for page in range(2, 60) for end in (0, 1)],
    "clique": list(combinations(range(14), 2)),
    "cliques in a chain": [(7 * k + u, 7 * k + v) for k in range(4) for u, v in combinations(range(8), 2)],
    "a large clique": list(combinations(range(300), 2)),
}
pytestmark = pytest.mark.gpu
shards_on_gpu = pytest.importorskip("edgemill.kernels.gpu.shards.peel", exc_type=ImportError)
shard_mail = pytest.importorskip("edgemill.kernels.gpu.shards.mail", exc_type=ImportError)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(shards_on_gpu, "PATIENCE_SECONDS", 10.0)
    yield


def peel(edges: Sequence[ShardEdges], **named: Any) -> list[ShardOnGpu]:
    mailboxes = [open_shard_mailbox(one) for one in edges]
    with direct_mail(edges, mailboxes, [mailbox.address() for mailbox in mailboxes]) as mails:
        return peel_shards_on_gpu(edges, mails, **named)


def check_sums(states: Sequence[ShardOnGpu]) -> None:
    check_totals([state.totals for state in states])


@pytest.mark.parametrize("shards", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("name", SHAPES)
def test_shapes(name: str, shards: int) -> None:
    edges = sorted(simple_edges(SHAPES[name]))
    graph = ordered(edges)
    parts = dealt(graph, shards)
    states = peel(parts)
    check_sums(states)
    assert intervals(graph, parts, states) == by_the_other_peel(graph)


@given(
    graph=strategies.simple_graphs(40),
    shards=st.sampled_from([1, 2, 3, 4, 7, 8]),
    most_at_once=st.sampled_from([1, 2, 5, 2**20]),
)
@settings(max_examples=200, deadline=None, suppress_health_check=SHARED_PATCH)
def test_levels_by_definition(
    monkeypatch: pytest.MonkeyPatch, graph: list[Edge], shards: int, most_at_once: int
) -> None:
    """Neither shards nor how much goes into an exchange change λ."""
    edges = sorted(simple_edges(graph))
    prepared = ordered(edges)
    parts = dealt(prepared, shards)
    states = with_room_for(monkeypatch, most_at_once, parts)
    check_sums(states)
    assert intervals(prepared, parts, states) == exact(edges)


def with_room_for(monkeypatch: pytest.MonkeyPatch, most_at_once: int, parts: list[ShardEdges]) -> list[ShardOnGpu]:
    with monkeypatch.context() as patch:
        box = shard_mail.ShardMailbox
        patch.setattr(shard_mail, "ShardMailbox", lambda shards, edges: box(shards, edges, most_at_once, most_at_once))
        return peel(parts)


@pytest.mark.parametrize("most_at_once", [3, 64, 2**20])
@pytest.mark.parametrize("shards", [1, 2, 3, 4, 8])
def test_messages_of_all_kinds(monkeypatch: pytest.MonkeyPatch, shards: int, most_at_once: int) -> None:
    edges = drawn(1, 90, 4000)
    graph = ordered(edges)
    parts = dealt(graph, shards)
    states = with_room_for(monkeypatch, most_at_once, parts)
    check_sums(states)
    assert intervals(graph, parts, states) == by_the_other_peel(graph)
    if shards > 1:
        assert all(sum(getattr(state.sums, kind) for state in states) for kind in ("alarms", "reports", "grants"))


@given(graph=strategies.simple_graphs(40), shards=st.sampled_from([1, 2, 3]))
@settings(max_examples=50, deadline=None, suppress_health_check=SHARED_PATCH)
def test_in_pieces(monkeypatch: pytest.MonkeyPatch, graph: list[Edge], shards: int) -> None:
    """Gone on with after every level; until then bounds hold."""
    edges = sorted(simple_edges(graph))
    prepared, known = ordered(edges), exact(edges)
    parts = dealt(prepared, shards)
    before = peel(parts, seconds=0)
    while before[0].left:
        found = intervals(prepared, parts, before)
        assert all(low <= known[edge][0] <= high for edge, (low, high) in found.items())
        after = peel(parts, before=before, seconds=0)
        assert after[0].level > before[0].level
        before = after
    check_sums(before)
    assert intervals(prepared, parts, before) == known


def test_launches_of_different_lengths(monkeypatch: pytest.MonkeyPatch) -> None:
    """All shards stop with the first that has run enough rounds, so that their windows of levels stay the same."""
    most_rounds = [3, 7, 2000]
    launch = shards_on_gpu.ShardPeeling.launch

    def launch_so_long(self: Any, quit: bool) -> None:
        monkeypatch.setattr(shards_on_gpu, "MAX_ROUNDS", most_rounds[self.part.own])
        launch(self, quit)

    monkeypatch.setattr(shards_on_gpu.ShardPeeling, "launch", launch_so_long)
    graph = ordered(drawn(1, 90, 4000))
    parts = dealt(graph, 3)
    states = peel(parts)
    check_sums(states)
    assert intervals(graph, parts, states) == by_the_other_peel(graph)


def test_a_shard_that_does_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards_on_gpu, "PATIENCE_SECONDS", 0.2)
    parts = dealt(ordered(drawn(1, 30, 300)), 2)
    mailboxes = [open_shard_mailbox(one) for one in parts]
    addresses = [mailbox.address() for mailbox in mailboxes]
    with (
        direct_mail(parts[:1], mailboxes[:1], addresses) as mails,
        pytest.raises(ClusterLost, match="another shard"),
    ):
        peel_shards_on_gpu(parts[:1], mails)


def test_too_many_triangles() -> None:
    (part,) = dealt(ordered([(0, 1), (0, 2), (1, 2)]), 1)
    support = kernels.to_device(np.full(3, 2**27, np.int32))
    with pytest.raises(ValueError, match=r"134,217,728.*GPUs.*134,217,727"):
        peel([replace(part, support=support)])
