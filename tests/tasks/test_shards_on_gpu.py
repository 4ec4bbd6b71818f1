"""Peeling by shards on the GPU: the graphs and answers of the shards on the CPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import strategies
from edgemill import kernels
from edgemill.kernels.cpu.shards import Cut
from edgemill.kernels.graph import Topology
from edgemill.tasks.errors import ClusterLost
from edgemill.tasks.shards.edges import ShardEdges
from edgemill.tasks.shards.on_gpu import ShardOnGpu, check_sums, open_shard_mailbox, peel_shards_on_gpu
from oracles import brute_force_lambda, simple_edges
from sharding import Edge, Graph, ordered

SHAPES: dict[str, list[Edge]] = {
    "triangle": [(0, 1), (0, 2), (1, 2)],
    "wheel": [(0, rim) for rim in range(1, 30)] + [(rim, rim % 29 + 1) for rim in range(1, 30)],
    "hub and its book": [(0, 1)] + [(end, page) for page in range(2, 60) for end in (0, 1)],
    "clique": list(combinations(range(14), 2)),
    "cliques in a chain": [(7 * k + u, 7 * k + v) for k in range(4) for u, v in combinations(range(8), 2)],
    "a large clique": list(combinations(range(300), 2)),
}
pytestmark = pytest.mark.gpu
shards_on_gpu = pytest.importorskip("edgemill.kernels.gpu.shards", exc_type=ImportError)
SHARED_PATCH = [HealthCheck.function_scoped_fixture]  # the same for every example


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(shards_on_gpu, "PATIENCE_SECONDS", 10.0)
    yield


def dealt(graph: Graph, shards: int) -> list[ShardEdges]:
    """What each shard stores, on the device."""
    cut, closed = Cut(graph.vertices, shards), graph.support > 0
    low, high, support = graph.low[closed], graph.high[closed], graph.support[closed]
    found = []
    for shard in range(shards):
        mine = (cut.classes(low) == shard) | (cut.classes(high) == shard)
        ends = [kernels.to_device(array[mine]) for array in (low, high, support)]
        found.append(ShardEdges(shard, shards, cut, ends[0], ends[1], ends[2], len(low)))
    return found


def peel(edges: Sequence[ShardEdges], **named: Any) -> list[ShardOnGpu]:
    mailboxes = [open_shard_mailbox(one) for one in edges]
    return peel_shards_on_gpu(edges, mailboxes, [mailbox.address() for mailbox in mailboxes], **named)


def intervals(graph: Graph, edges: Sequence[ShardEdges], states: Sequence[ShardOnGpu]) -> dict[Edge, tuple[int, int]]:
    """Bounds of λ by edge, with the vertices' own names; each edge must be there once."""
    ends = zip(graph.low.tolist(), graph.high.tolist(), graph.support.tolist(), strict=True)
    found = {_named(graph, low, high): (0, 0) for low, high, support in ends if not support}
    for one, state in zip(edges, states, strict=True):
        low, high = kernels.to_host(one.low), kernels.to_host(one.high)
        owned = one.cut.classes(high) == one.group
        bounds = kernels.to_host(state.low).tolist(), kernels.to_host(state.high).tolist()
        for u, v, *both in zip(low[owned].tolist(), high[owned].tolist(), *bounds, strict=True):
            assert _named(graph, u, v) not in found
            found[_named(graph, u, v)] = (both[0], both[1])
    return found


def _named(graph: Graph, low: int, high: int) -> Edge:
    u, v = sorted((graph.name[low], graph.name[high]))
    return u, v


def drawn(seed: int, vertices: int, edges: int) -> list[Edge]:
    """A graph with hubs: the ends of an edge are near 0 more often."""
    ends = (vertices * np.random.default_rng(seed).random((edges, 2)) ** 3).astype(np.int64)
    return sorted(simple_edges(map(tuple, ends.tolist())))


def by_the_other_peel(graph: Graph) -> dict[Edge, tuple[int, int]]:
    """On the CPU."""
    topology = Topology(graph.low.astype(np.int32), graph.high.astype(np.int32), graph.vertices)
    peeling = kernels.peeling(topology, graph.support)
    while peeling.left:
        peeling.advance()
    ends = zip(graph.low.tolist(), graph.high.tolist(), peeling.low.tolist(), strict=True)
    return {_named(graph, low, high): (level, level) for low, high, level in ends}


def exact(edges: Sequence[Edge]) -> dict[Edge, tuple[int, int]]:
    return {edge: (level, level) for edge, level in brute_force_lambda(edges).items()}


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
        box = shards_on_gpu.ShardMailbox
        patch.setattr(
            kernels, "shard_mailbox", lambda like, shards, edges: box(shards, edges, most_at_once, most_at_once)
        )
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


def test_a_shard_that_does_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards_on_gpu, "PATIENCE_SECONDS", 0.2)
    parts = dealt(ordered(drawn(1, 30, 300)), 2)
    mailboxes = [open_shard_mailbox(one) for one in parts]
    with pytest.raises(ClusterLost, match="another shard has failed"):
        peel_shards_on_gpu(parts[:1], mailboxes[:1], [mailbox.address() for mailbox in mailboxes])


def test_too_many_triangles() -> None:
    (part,) = dealt(ordered([(0, 1), (0, 2), (1, 2)]), 1)
    support = kernels.to_device(np.full(3, 2**27, np.int32))
    with pytest.raises(ValueError, match="an edge of 134,217,728 triangles; GPUs count up to 134,217,727"):
        peel([replace(part, support=support)])
