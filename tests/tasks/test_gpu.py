"""The tasks of triangulation and bounding on the GPU, against the same tasks on the CPU."""

from __future__ import annotations

import time
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bounding
import drive
import strategies
from cut_graphs import cut_graph
from edgemill import kernels
from edgemill.tasks.bound.step import open_mailbox, peel_in_step
from edgemill.tasks.device import intervals_to_host, owned_to_device
from edgemill.tasks.errors import ClusterLost
from edgemill.tasks.subgraph import Subgraph

VERTICES = 40

pytestmark = pytest.mark.gpu
peers = pytest.importorskip("edgemill.kernels.gpu.peers", exc_type=ImportError)


@given(
    rows=strategies.edge_lists(VERTICES),
    partitions=st.sampled_from([1, 2, 3, 7]),
    method=st.sampled_from(["range", "hash"]),
)
@settings(max_examples=500)
def test_drawn_graphs(rows: strategies.EdgeList, partitions: int, method: str) -> None:
    graph = cut_graph(rows, partitions, "hash" if method == "hash" else "range")
    there = drive.subgraphs([owned_to_device(owned) for owned in graph.owned])
    for here, subgraph in zip(graph.subgraphs, there, strict=True):
        assert here.counts == subgraph.counts
        assert np.array_equal(here.support, kernels.to_host(subgraph.support))
        for name in ("owned", "number", "ghost", "ghost_number", "subscriber_offsets", "subscriber", "is_owned"):
            assert np.array_equal(getattr(here, name), kernels.to_host(getattr(subgraph, name))), name
    for schedule in bounding.schedules(partitions):
        for here_ends, ends in zip(schedule(graph.subgraphs), map(intervals_to_host, schedule(there)), strict=True):
            assert np.array_equal(here_ends.low, ends.low), schedule
            assert np.array_equal(here_ends.high, ends.high), schedule
    for here_ends, ends in zip(bounding.band(graph.subgraphs), bounding.in_step(there), strict=True):
        assert np.array_equal(here_ends.low, kernels.to_host(ends.low))
        assert ends.unsettled == 0


@given(rows=strategies.edge_lists(VERTICES), partitions=st.sampled_from([2, 3]))
@settings(max_examples=50)
def test_in_step_ends_early_with_intervals(rows: strategies.EdgeList, partitions: int) -> None:
    graph = cut_graph(rows, partitions, "hash")
    there = drive.subgraphs([owned_to_device(owned) for owned in graph.owned])
    exact = bounding.band(graph.subgraphs)
    for known, ends in zip(exact, map(intervals_to_host, bounding.in_step(there, max_seconds=0)), strict=True):
        assert np.all(ends.low <= known.low)
        assert np.all(known.low <= ends.high)


@given(rows=strategies.edge_lists(VERTICES), partitions=st.sampled_from([1, 2, 3]))
@settings(max_examples=100)
def test_in_pieces(rows: strategies.EdgeList, partitions: int) -> None:
    """Gone on with after every level, from what was found until then."""
    graph = cut_graph(rows, partitions, "hash")
    there = drive.subgraphs([owned_to_device(owned) for owned in graph.owned])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("edgemill.kernels.gpu.peel.MOST_ROUNDS", 1)
        found = [bounding.in_step_in_pieces(there)]
        if partitions == 1:
            found.append(bounding.peeling_in_pieces(there))
    for ends in found:
        for known, own in zip(bounding.band(graph.subgraphs), map(intervals_to_host, ends), strict=True):
            assert np.array_equal(known.low, own.low)
            assert own.unsettled == 0


def two_cliques() -> list[Subgraph]:
    """A clique of 9 and one of 5, each over both of two partitions."""
    rows = [*combinations(range(9), 2), *combinations(range(9, 14), 2)]
    return drive.subgraphs([owned_to_device(owned) for owned in cut_graph(rows, 2, "hash").owned])


def test_a_partition_that_fails_ends_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    launch = peers.PeerPeeling.launch

    def fail_second(self: Any, quit: bool) -> None:
        if self._links.rank == 1:
            raise MemoryError("planted")
        launch(self, quit)

    monkeypatch.setattr(peers.PeerPeeling, "launch", fail_second)
    started = time.monotonic()
    with pytest.raises(MemoryError, match="planted"):
        bounding.in_step(two_cliques())
    assert time.monotonic() - started < peers.PATIENCE_SECONDS / 2  # the other one was told


def test_one_that_is_late_stops_all(monkeypatch: pytest.MonkeyPatch) -> None:
    launch = peers.PeerPeeling.launch
    monkeypatch.setattr(peers.PeerPeeling, "launch", lambda self, _: launch(self, self._links.rank == 1))
    assert sum(ends.unsettled for ends in bounding.in_step(two_cliques())) == 36  # those of the clique of 9


def test_a_partition_that_does_not_come_is_waited_for_no_longer_than_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "PATIENCE_SECONDS", 0.1)
    monkeypatch.setattr(peers.Links, "abandon", lambda self: None)
    subgraphs = two_cliques()
    mailboxes = [open_mailbox(subgraph) for subgraph in subgraphs]
    addresses = [mailbox.address() for mailbox in mailboxes]
    with pytest.raises(ClusterLost, match="another partition has failed, or not moved for"):
        peel_in_step(subgraphs[:1], mailboxes[:1], addresses)
