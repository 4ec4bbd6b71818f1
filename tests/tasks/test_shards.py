"""Peeling by rows cut by the third vertex, on groups of shards in step, against the definition and the other peel."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import strategies
from edgemill import kernels
from edgemill.kernels.cpu.shards import Cut, ShardGroup, build_rows
from edgemill.kernels.graph import Topology
from edgemill.tasks.errors import ClusterLost, InternalError
from edgemill.tasks.shards import MemoryCarrier, Parcel
from oracles import brute_force_lambda, simple_edges
from sharding import Edge, Reordering, levels, ordered, peel_in_groups

SHAPES: dict[str, list[Edge]] = {
    "one edge": [(0, 1)],
    "triangle": [(0, 1), (0, 2), (1, 2)],
    "star": [(0, leaf) for leaf in range(1, 40)],
    "wheel": [(0, rim) for rim in range(1, 30)] + [(rim, rim % 29 + 1) for rim in range(1, 30)],
    "hub and its book": [(0, 1)] + [(end, page) for page in range(2, 60) for end in (0, 1)],
    "clique": list(combinations(range(14), 2)),
    "cliques in a chain": [(7 * k + u, 7 * k + v) for k in range(4) for u, v in combinations(range(8), 2)],
}
"""Ties: all edges of a wheel's rim, of a clique and of a book leave in one round."""


@pytest.mark.parametrize("shards", [1, 2, 3, 4, 7, 16])
@pytest.mark.parametrize("name", SHAPES)
def test_shapes(name: str, shards: int) -> None:
    edges = sorted(simple_edges(SHAPES[name]))
    graph = ordered(edges)
    found = levels(graph, peel_in_groups(graph, shards, min(shards, 2)))
    assert found == brute_force_lambda(edges)


@given(
    graph=strategies.simple_graphs(),
    shards=st.sampled_from([1, 2, 3, 4, 7, 16]),
    groups=st.integers(1, 4),
    near=st.integers(1, 6),
    seed=st.integers(0, 2**16),
)
@settings(max_examples=60)
def test_levels_by_definition(graph: list[Edge], shards: int, groups: int, near: int, seed: int) -> None:
    """Neither shards, groups, windows nor the order of messages change λ, and no edge needs to be in every shard."""
    edges = sorted(simple_edges(graph))
    prepared = ordered(edges)
    peeled = peel_in_groups(
        prepared, shards, min(groups, shards), near, lambda carrier: Reordering(carrier, seed + carrier.rank)
    )
    assert levels(prepared, peeled) == brute_force_lambda(edges)


def drawn(seed: int, vertices: int, edges: int) -> list[Edge]:
    """A graph with hubs: the ends of an edge are near 0 more often."""
    ends = (vertices * np.random.default_rng(seed).random((edges, 2)) ** 3).astype(np.int64)
    return sorted(simple_edges(map(tuple, ends.tolist())))


@pytest.mark.parametrize(
    ("shards", "groups", "near"), [(1, 1, 4), (2, 2, 4), (3, 1, 1), (4, 2, 8), (7, 3, 4), (16, 4, 2)]
)
def test_the_other_peel(shards: int, groups: int, near: int) -> None:
    graph = ordered(drawn(1, 90, 4000))
    peeling = kernels.peeling(
        Topology(graph.low.astype(np.int32), graph.high.astype(np.int32), graph.vertices), graph.support
    )
    while peeling.left:
        peeling.advance()
    ends = zip(graph.low.tolist(), graph.high.tolist(), peeling.low.tolist(), strict=True)
    expected = {(graph.name[low], graph.name[high]): level for low, high, level in ends}
    found = levels(graph, peel_in_groups(graph, shards, groups, near))
    assert found == {(min(edge), max(edge)): level for edge, level in expected.items()}
    assert max(found.values()) > 8


def test_messages_cross_and_counts_are_split_again() -> None:
    """The graph of the other tests is one in which all three kinds of messages occur."""
    peeled = peel_in_groups(ordered(drawn(1, 90, 4000)), 4, 2)
    assert all(sum(getattr(one.progress, kind) for one in peeled) for kind in ("alarms", "reports", "grants"))
    assert len({one.progress.exchanges for one in peeled}) == 1


def test_a_graph_is_stored_once() -> None:
    graph = ordered(drawn(2, 300, 4000))
    cut = Cut(graph.vertices, 4)
    stored = [build_rows(graph.low, graph.high, cut, shard, 1)[0] for shard in range(4)]
    assert sum(len(rows.neighbour) for rows in stored) == 2 * len(graph.low)
    assert max(len(rows.neighbour) for rows in stored) <= 0.27 * 2 * len(graph.low)


class Losing:
    """A carrier that loses one message."""

    def __init__(self, carrier: MemoryCarrier) -> None:
        self._carrier, self._lost = carrier, False
        self.rank, self.groups = carrier.rank, carrier.groups

    def exchange(self, parcels: list[Parcel]) -> list[Parcel]:
        return [self._without_one(parcel) for parcel in self._carrier.exchange(parcels)]

    def abandon(self) -> None:
        self._carrier.abandon()

    def _without_one(self, parcel: Parcel) -> Parcel:
        if self._lost or len(parcel) != 6 or not len(parcel[3]) or parcel[4][-1] & 3 != 1:
            return parcel
        self._lost = True  # the last report
        words, low, high, target, value, start = parcel
        return words, low, high, target[:-1], value[:-1], np.minimum(start, len(target) - 1)


def test_a_lost_message() -> None:
    with pytest.raises(InternalError, match=r"shards sent \d+ messages, and \d+ arrived"):
        peel_in_groups(ordered(drawn(1, 90, 4000)), 4, 2, wrap=Losing)  # type: ignore[arg-type]


def test_an_edge_whose_shards_disagree() -> None:
    def spoil(rank: int, group: ShardGroup) -> None:
        group.counts[0, 2] += rank == 1

    with pytest.raises(InternalError, match="do not agree on the λ of an edge"):
        peel_in_groups(ordered(drawn(1, 90, 4000)), 4, 2, tamper=spoil)


def test_a_triangle_that_is_removed_twice() -> None:
    def spoil(rank: int, group: ShardGroup) -> None:
        group.counts[0, 1] += rank == 1

    with pytest.raises(InternalError, match=r"shards removed \d+ triangles; the supports say \d+"):
        peel_in_groups(ordered(drawn(1, 90, 4000)), 4, 2, tamper=spoil)


def test_a_group_that_fails_ends_the_others() -> None:
    ended: list[type[BaseException]] = []

    def spoil(rank: int, group: ShardGroup) -> None:
        if rank == 1:
            group.send = _fail  # type: ignore[method-assign]

    class Noting(Reordering):
        def exchange(self, parcels: Sequence[Parcel]) -> list[Parcel]:
            try:
                return super().exchange(parcels)
            except ClusterLost as error:
                ended.append(type(error))
                raise

    with pytest.raises(RuntimeError, match="no memory left"):
        peel_in_groups(ordered(drawn(1, 90, 4000)), 4, 3, wrap=lambda carrier: Noting(carrier, 1), tamper=spoil)
    assert ended == [ClusterLost, ClusterLost]


def _fail(level: int, last: int) -> None:
    raise RuntimeError("no memory left")


def test_supports_that_counts_cannot_hold() -> None:
    graph = ordered(SHAPES["triangle"])
    huge = graph.__class__(graph.low, graph.high, graph.support + np.int32(2**29), graph.vertices, graph.name)
    with pytest.raises(ValueError, match="shards count up to 536,870,911"):
        peel_in_groups(huge, 2, 1)


def test_no_edges() -> None:
    graph = ordered([])
    empty = graph.__class__(graph.low, graph.high, graph.support, 1, [0])
    assert levels(empty, peel_in_groups(empty, 3, 2)) == {}
