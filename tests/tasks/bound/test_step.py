"""Peeling in step: what partitions tell each other, how it ends, the same λ. Its kernels: tests/tasks/test_gpu.py."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import bounding
import oracles
import peers_here
import strategies
from cut_graphs import cut_graph
from edgemill.tasks.bound.step import open_mailbox, peel_in_step, subscriptions
from edgemill.tasks.errors import ClusterLost, InternalError, OutOfRoom
from edgemill.tasks.subgraph import Subgraph
from examples import examples

VERTICES = 14
SHARED_PATCH = [HealthCheck.function_scoped_fixture]  # the stand-in is the same for every example


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    peers_here.stand_in(monkeypatch)


def cliques() -> list[Subgraph]:
    """Three partitions that share edges."""
    return cut_graph(list(combinations(range(9), 2)), 3, "hash").subgraphs


@given(graph=strategies.simple_graphs(VERTICES), partitioning=strategies.partitionings(VERTICES, 6))
@settings(max_examples=examples(200))
def test_both_sides_name_an_edge_by_the_same_place(
    graph: strategies.EdgeList, partitioning: strategies.Partitioning
) -> None:
    cut = cut_graph(graph, partitioning.count, partitioning.part)
    names = [cut.local_names(p) for p in range(partitioning.count)]
    told = set()
    for p, subgraph in enumerate(cut.subgraphs):
        found = subscriptions(subgraph)
        assert len(found.start) == subgraph.topology.edges + 1
        for edge in range(subgraph.topology.edges):
            for q, place in found.entry[found.start[edge] : found.start[edge + 1]].tolist():
                other = cut.subgraphs[q]
                first, stop = other.ghost_offsets[p : p + 2].tolist()
                assert place < stop - first
                assert names[q][other.ghost[first + place]] == names[p][edge]
                told.add((q, first + place))
    assert told == {(q, i) for q, other in enumerate(cut.subgraphs) for i in range(len(other.ghost))}


def test_more_subscriptions_than_kernels_count_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    subgraph = max(cliques(), key=lambda subgraph: len(subgraph.subscriber))
    monkeypatch.setattr("edgemill.tasks.bound.step.MOST_SUBSCRIPTIONS", len(subgraph.subscriber))
    subscriptions(subgraph)
    monkeypatch.setattr("edgemill.tasks.bound.step.MOST_SUBSCRIPTIONS", len(subgraph.subscriber) - 1)
    with pytest.raises(OutOfRoom, match=r"copies of its edges in others, over the .* allowed; use bound"):
        subscriptions(subgraph)


@pytest.mark.usefixtures("here")
@given(graph=strategies.simple_graphs(VERTICES), partitioning=strategies.partitionings(VERTICES, 6))
@settings(max_examples=examples(100), suppress_health_check=SHARED_PATCH)
def test_lambda(graph: strategies.EdgeList, partitioning: strategies.Partitioning) -> None:
    cut = cut_graph(graph, partitioning.count, partitioning.part)
    for schedule in (bounding.in_step, bounding.in_step_in_pieces):
        low, high = cut.bounds(schedule)
        assert low == high == oracles.brute_force_lambda(graph)


@pytest.mark.usefixtures("here")
@given(graph=strategies.simple_graphs(VERTICES), partitioning=strategies.partitionings(VERTICES, 6))
@settings(max_examples=50, suppress_health_check=SHARED_PATCH)
def test_without_time_all_end_after_a_level_with_intervals(
    graph: strategies.EdgeList, partitioning: strategies.Partitioning
) -> None:
    cut = cut_graph(graph, partitioning.count, partitioning.part)
    low, high = cut.bounds(partial(bounding.in_step, max_seconds=0))
    exact = oracles.brute_force_lambda(graph)
    assert all(low[edge] <= lam <= high[edge] for edge, lam in exact.items())
    assert all(low[edge] == high[edge] == 0 or low[edge] > 0 for edge in exact)


@pytest.mark.usefixtures("here")
def test_what_is_counted() -> None:
    subgraphs = cliques()
    mailboxes = [open_mailbox(subgraph) for subgraph in subgraphs]
    told: list[tuple[int, int]] = []
    found = peel_in_step(
        subgraphs,
        mailboxes,
        [mailbox.address() for mailbox in mailboxes],
        progress=lambda level, left: told.append((level, left)),
    )
    assert sum(one.messages for one in found) == sum(len(subgraph.ghost) for subgraph in subgraphs) > 0
    assert [one.evaluations for one in found] == [subgraph.topology.edges for subgraph in subgraphs]
    assert [one.levels for one in found] == [1, 1, 1]  # a clique falls at once
    assert told[-1] == (8, 0)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("where", ["launch", "__init__"])
def test_a_partition_that_fails_frees_the_others(monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    plain = getattr(peers_here.PeerPeeling, where)
    running: list[peers_here.PeerPeeling] = []

    def fail_second(self: peers_here.PeerPeeling, *arguments: Any) -> None:
        running.append(self)
        if len(running) == 2:
            raise MemoryError("planted")
        plain(self, *arguments)

    monkeypatch.setattr(peers_here.PeerPeeling, where, fail_second)
    with pytest.raises(MemoryError, match="planted"):
        bounding.in_step(cliques())
    assert [(box.abandoned, box.closed) for box in peers_here.OPEN.values()] == [(True, True)] * 3
    assert running[0].waited_for


@pytest.mark.usefixtures("here")
def test_one_that_is_late_stops_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each process has a clock of its own: what one finds all must do, or it would be waited for."""
    launch = peers_here.PeerPeeling.launch
    monkeypatch.setattr(peers_here.PeerPeeling, "launch", lambda self, _: launch(self, self.rank == 1))
    subgraphs = cliques()
    found = bounding.in_step(subgraphs)
    assert sum(ends.unsettled for ends in found) == 36


@pytest.mark.usefixtures("here")
def test_a_lost_partition_is_a_lost_cluster() -> None:
    subgraphs = cliques()
    mailboxes = [open_mailbox(subgraph) for subgraph in subgraphs]
    addresses = [mailbox.address() for mailbox in mailboxes]
    with pytest.raises(ClusterLost, match="peeling in step ended: another partition has failed; run again"):
        peel_in_step(subgraphs[:2], mailboxes[:2], addresses)


@pytest.mark.usefixtures("here")
def test_ghosts_that_do_not_match_their_subscribers() -> None:
    subgraphs = cliques()
    subgraphs[0] = replace(subgraphs[0], subscriber=np.zeros_like(subgraphs[0].subscriber))
    with pytest.raises(InternalError, match="partition 0 has subscribers for"):
        bounding.in_step(subgraphs)
