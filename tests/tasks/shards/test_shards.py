"""Peeling by rows cut by the third vertex, on groups of shards in step, against the definition and the other peel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import strategies
from edgemill.kernels.cpu.shards import Cut, ShardGroup, build_rows
from edgemill.kernels.cpu.shards.group import MAX_ROUND_EDGES, MAX_SUPPORT
from edgemill.kernels.cpu.shards.half_counts import LIVE_ABOVE, REMOVED_AT, REMOVED_BELOW, REPORT
from edgemill.kernels.cpu.shards.packets import EDGES, HEADER, LAST, LEAST_KEEPER, LEVEL, REMAINING_LOW
from edgemill.kernels.graph import MAX_TRIANGLES
from edgemill.tasks.errors import ClusterLost, InternalError
from edgemill.tasks.shards import (
    Carrier,
    GroupPacket,
    MemoryCarrier,
    ShardState,
    Words,
    peel_shards,
)
from oracles import brute_force_lambda, simple_edges
from shard_edges import shapes
from sharding import (
    Edge,
    Reordering,
    Wrapped,
    drawn,
    intervals,
    levels,
    ordered,
    other_peel,
    peel_in_groups,
    shard_edges,
)

SHAPES = shapes(58, 14)
"""Ties: all edges of a wheel's rim, of a clique and of a book leave in one round."""


@pytest.mark.parametrize("shards", [1, 2, 3, 4, 7, 16])
@pytest.mark.parametrize("name", SHAPES)
def test_shapes(name: str, shards: int) -> None:
    edges = sorted(simple_edges(SHAPES[name]))
    graph = ordered(edges)
    found = levels(graph, shards, peel_in_groups(graph, shards, min(shards, 2)))
    assert found == brute_force_lambda(edges)


@given(
    graph=strategies.simple_graphs(),
    shards=st.sampled_from([1, 2, 3, 4, 7, 16]),
    groups=st.integers(1, 4),
    window=st.integers(1, 6),
    seed=st.integers(0, 2**16),
)
@settings(max_examples=60)
def test_levels_by_definition(graph: list[Edge], shards: int, groups: int, window: int, seed: int) -> None:
    """Neither shards, groups, windows nor the order of messages change λ, and no edge needs to be in every shard."""
    edges = sorted(simple_edges(graph))
    prepared = ordered(edges)
    peeled = peel_in_groups(
        prepared, shards, min(groups, shards), window, lambda carrier: Reordering(carrier, shards, seed + carrier.rank)
    )
    assert levels(prepared, shards, peeled) == brute_force_lambda(edges)


@pytest.mark.parametrize(
    ("shards", "groups", "window"), [(1, 1, 4), (2, 2, 4), (3, 1, 1), (4, 2, 8), (7, 3, 4), (16, 4, 2)]
)
def test_the_other_peel(shards: int, groups: int, window: int) -> None:
    graph = ordered(drawn(1, 90, 4000))
    found = levels(graph, shards, peel_in_groups(graph, shards, groups, window))
    assert found == other_peel(graph)
    assert max(found.values()) > 8


def test_messages_cross_and_counts_are_split_again() -> None:
    """The graph of the other tests is one in which all three kinds of messages occur."""
    peeled = peel_in_groups(ordered(drawn(1, 90, 4000)), 4, 2)
    assert all(sum(getattr(one.figures, kind) for one in peeled) for kind in ("alarms", "reports", "grants"))
    assert len({one.figures.exchanges for one in peeled}) == 1
    assert sum(one.figures.edges for one in peeled) == shard_edges(ordered(drawn(1, 90, 4000)), 4, 0, 2).edges


def test_large_rounds_are_merged_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several threads sort and merge the edges of a large round, to the same order for groups of other sizes."""
    monkeypatch.setattr("edgemill.kernels.cpu.shards.group.LARGE", 1)
    graph = ordered(drawn(1, 90, 4000))
    assert levels(graph, 7, peel_in_groups(graph, 7, 2)) == other_peel(graph)


def test_a_graph_is_stored_once() -> None:
    graph = ordered(drawn(2, 300, 4000))
    cut = Cut(graph.vertices, 4)
    stored = [build_rows(graph.low, graph.high, cut, shard, 1)[0] for shard in range(4)]
    assert sum(len(rows.entry) for rows in stored) == 2 * len(graph.low)
    assert max(len(rows.entry) for rows in stored) <= 0.27 * 2 * len(graph.low)


class Changing(Wrapped):
    """Changes the first packet that `change` gives another one for; for one group."""

    def __init__(self, carrier: Carrier, change: Callable[[GroupPacket], GroupPacket | None]) -> None:
        super().__init__(carrier)
        self._change: Callable[[GroupPacket], GroupPacket | None] = change
        self.done = False

    def changed(self, sender: int, packet: GroupPacket) -> GroupPacket:
        if self.done or len(packet.common) < HEADER or len(packet.own) <= 1:
            return packet
        another = self._change(packet)
        self.done = another is not None
        return another or packet


def with_messages(packet: GroupPacket, target: Words, value: Words, start: Words) -> GroupPacket:
    return GroupPacket(packet.common, np.concatenate([np.array([len(target)], np.uint32), start, target, value]))


def messages(packet: GroupPacket, senders: int, here: int) -> tuple[Words, Words, Words]:
    """Targets, values and starts."""
    table, count = 1 + senders * (here + 1), int(packet.own[0])
    return packet.own[table : table + count], packet.own[table + count :], packet.own[1:table]


def spoiled(change: Callable[[GroupPacket], GroupPacket | None]) -> Callable[[Carrier], Carrier]:
    return lambda carrier: Changing(carrier, change) if carrier.rank == 1 else carrier


def without_last_report(packet: GroupPacket) -> GroupPacket | None:
    target, value, start = messages(packet, 2, 2)
    if not len(target) or value[-1] & 3 != REPORT:
        return None
    return with_messages(packet, target[:-1], value[:-1], np.minimum(start, np.uint32(len(target) - 1)))


def with_last_report_twice(packet: GroupPacket) -> GroupPacket | None:
    target, value, start = messages(packet, 2, 2)
    if not len(target) or value[-1] & 3 != REPORT:
        return None
    start = np.where(start == len(target), len(target) + 1, start).astype(np.uint32)
    return with_messages(packet, np.append(target, target[-1]), np.append(value, value[-1]), start)


@pytest.mark.parametrize("change", [without_last_report, with_last_report_twice])
def test_a_message_that_does_not_arrive_once(change: Callable[[GroupPacket], GroupPacket | None]) -> None:
    with pytest.raises(InternalError, match="shards sent"):
        peel_in_groups(ordered(drawn(1, 90, 4000)), 4, 2, wrap=spoiled(change))


@pytest.mark.parametrize("word", [LEVEL, LAST, REMAINING_LOW, EDGES])
def test_headers_that_disagree(word: int) -> None:
    def change(packet: GroupPacket) -> GroupPacket:
        common = packet.common.copy()
        common[word] += 1
        return GroupPacket(common, packet.own)

    with pytest.raises(InternalError, match=r"groups .*disagree at level 0, .*[\d,]+ edges remaining"):
        peel_in_groups(ordered(drawn(1, 90, 4000)), 4, 2, wrap=spoiled(change))


@pytest.mark.parametrize("word", [0, 3, 6])
def test_a_letter_that_is_not_whole(word: int) -> None:
    """The count of messages and the table before them are checked before any message is read."""

    def change(packet: GroupPacket) -> GroupPacket:
        own = packet.own.copy()
        own[word] += 10**6
        return GroupPacket(packet.common, own)

    with pytest.raises(InternalError, match=r"disagree.*0"):
        peel_in_groups(ordered(drawn(1, 90, 4000)), 4, 2, wrap=spoiled(change))


def test_groups_that_go_to_different_levels() -> None:
    """A group that takes another level for the next one is found out at the next exchange."""

    def change(packet: GroupPacket) -> GroupPacket | None:
        if packet.common[LEVEL] == 0 or packet.common[LEAST_KEEPER] == 2**32 - 1:
            return None
        common = packet.common.copy()
        common[LEVEL] -= 1
        return GroupPacket(common, packet.own)

    with pytest.raises(InternalError, match=r"groups .*disagree at level [1-9]"):
        peel_in_groups(ordered(drawn(1, 90, 4000)), 4, 2, wrap=spoiled(change))


def spoiling(column: int) -> Callable[[int, ShardGroup], None]:
    def spoil(rank: int, group: ShardGroup) -> None:
        group.counts[0, column] += rank == 1

    return spoil


def test_an_edge_whose_shards_disagree() -> None:
    with pytest.raises(InternalError, match="not agree"):
        peel_in_groups(ordered(drawn(1, 90, 4000)), 4, 2, tamper=spoiling(2))


def test_a_triangle_that_is_removed_twice() -> None:
    with pytest.raises(InternalError, match="removed 1 triangles"):
        peel_in_groups(ordered(drawn(1, 90, 4000)), 4, 2, tamper=spoiling(1))


@pytest.mark.parametrize("change", [3, -3])
def test_a_wrong_support(change: int) -> None:
    graph = ordered(drawn(1, 90, 4000))
    support = graph.support.copy()
    support[np.argmax(support)] += change
    with pytest.raises(InternalError, match=r"0.*supports"):
        peel_in_groups(replace(graph, support=support), 4, 2)


def test_a_changed_count() -> None:
    def spoil(rank: int, group: ShardGroup) -> None:
        group.count[0] += rank

    with pytest.raises(InternalError, match="removed 0"):
        peel_in_groups(ordered(drawn(1, 90, 4000)), 4, 2, tamper=spoil)


def test_groups_with_other_edges_between_them() -> None:
    """Group 1 lacks one of the edges that it has in common with group 0."""
    graph = ordered(SHAPES["clique"])
    firsts = [shard_edges(graph, 4, group, 2) for group in range(2)]
    one = firsts[1]
    common = np.isin(one.low.astype(np.int64) << 32 | one.high, firsts[0].low.astype(np.int64) << 32 | firsts[0].high)
    kept = np.arange(len(one.low)) != np.flatnonzero(common)[0]
    spoiled_edges = replace(one, low=one.low[kept], high=one.high[kept], support=one.support[kept])
    with pytest.raises(InternalError, match=r"in common with group|same edges between"):
        run_groups([firsts[0], spoiled_edges])


def run_groups(edges: Sequence[Any], **options: Any) -> list[ShardState]:
    """`peel_shards` of each group in a thread."""
    carriers = MemoryCarrier.open(len(edges))
    with ThreadPoolExecutor(len(edges)) as threads:
        running = [
            threads.submit(peel_shards, one, carrier, **options) for one, carrier in zip(edges, carriers, strict=True)
        ]
    errors = [error for error in (one.exception() for one in running) if error is not None]
    if errors:
        raise min(errors, key=lambda error: isinstance(error, ClusterLost))
    return [one.result() for one in running]


def test_a_group_that_fails_ends_the_others() -> None:
    ended: list[type[BaseException]] = []

    def spoil(rank: int, group: ShardGroup) -> None:
        if rank == 1:
            group.write = _fail  # type: ignore[method-assign]

    class Noting(Wrapped):
        def exchange(self, common: Words, own: Sequence[Words]) -> list[GroupPacket]:
            try:
                return super().exchange(common, own)
            except ClusterLost as error:
                ended.append(type(error))
                raise

    with pytest.raises(RuntimeError, match="memory left"):
        peel_in_groups(ordered(drawn(1, 90, 4000)), 4, 3, wrap=Noting, tamper=spoil)
    assert ended == [ClusterLost, ClusterLost]


def _fail(level: int, last: int, left: int, late: bool) -> tuple[Words, list[Words]]:
    raise RuntimeError("no memory left")


def test_supports_that_counts_cannot_hold() -> None:
    graph = ordered(SHAPES["triangle"])
    with pytest.raises(ValueError, match=r"count.*268,435,455"):
        peel_in_groups(replace(graph, support=graph.support + np.int32(2**28)), 2, 1)


def test_counts_positions_and_levels_do_not_meet() -> None:
    """They share an int32: counts of live halves, positions in the largest round, and the levels of removed edges."""
    fewest, most_support = -(MAX_SUPPORT - 1), MAX_SUPPORT - 1
    assert most_support == MAX_TRIANGLES
    positions = LIVE_ABOVE, LIVE_ABOVE - (MAX_ROUND_EDGES - 1)
    levels = REMOVED_AT + most_support, REMOVED_AT
    assert fewest > positions[0] > positions[1] > REMOVED_BELOW > levels[0] > levels[1] >= np.iinfo(np.int32).min
    assert MAX_ROUND_EDGES == 2**31 - 2**29


def test_no_edges() -> None:
    graph = replace(ordered([]), vertices=1, name=[0])
    assert levels(graph, 3, peel_in_groups(graph, 3, 2)) == {}


@given(
    graph=strategies.simple_graphs(),
    shards=st.sampled_from([1, 2, 4, 7]),
    groups=st.integers(1, 3),
    window=st.integers(1, 6),
)
@settings(max_examples=30)
def test_stop_after_each_level_and_go_on(graph: list[Edge], shards: int, groups: int, window: int) -> None:
    """Intervals are right at every stop, and the end is that of a run without stops."""
    edges = sorted(simple_edges(graph))
    prepared, expected = ordered(edges), brute_force_lambda(edges)
    groups, stops = min(groups, shards), 0
    peeled: list[ShardState] | None = None
    while peeled is None or not peeled[0].finished:
        level = -1 if peeled is None else peeled[0].level
        peeled = peel_in_groups(prepared, shards, groups, window, before=peeled, stop=lambda: 0.0)
        found = intervals(prepared, shards, peeled)
        assert all(below <= expected[edge] <= above for edge, (below, above) in found.items())
        assert sum(below < above or below == peeled[0].level for below, above in found.values()) >= peeled[0].left
        assert len({(one.level, one.left) for one in peeled}) == 1 and peeled[0].level > level
        stops += 1
    assert levels(prepared, shards, peeled) == expected
    assert stops <= 1 + max([0, *expected.values()])


def test_stops_change_no_figures() -> None:
    graph = ordered(drawn(1, 90, 4000))
    whole = peel_in_groups(graph, 4, 2)
    stopped = peel_in_groups(graph, 4, 2, stop=lambda: 0.0)
    levels_seen = 1
    while not stopped[0].finished:
        stopped = peel_in_groups(graph, 4, 2, before=stopped, stop=lambda: 0.0)
        levels_seen += 1
    assert levels_seen > 5
    for one, other in zip(whole, stopped, strict=True):
        assert np.array_equal(one.low, other.low) and np.array_equal(one.count, other.count)
        for name in ("rounds", "levels", "triangles", "alarms", "reports", "grants", "messages", "edges"):
            assert getattr(one.figures, name) == getattr(other.figures, name)


def test_one_late_group_stops_all() -> None:
    graph = ordered(drawn(1, 90, 4000))
    edges = [shard_edges(graph, 4, group, 3) for group in range(3)]
    carriers = MemoryCarrier.open(3)
    seen: list[tuple[int, int]] = []
    with ThreadPoolExecutor(3) as threads:
        running = [
            threads.submit(
                peel_shards, one, carrier, None, 0.0 if one.group == 2 else None, lambda a, b: seen.append((a, b))
            )
            for one, carrier in zip(edges, carriers, strict=True)
        ]
    peeled = [one.result() for one in running]
    assert len({one.level for one in peeled}) == 1 and not peeled[0].finished
    # Each group tells the state before the first level and after it. The level has no edges.
    assert set(seen) == {(seen[0][0], peeled[0].left)} and len(seen) == 6
    resumed = [replace(one, low=one.low[:0], high=one.high[:0]) for one in peeled]  # intervals are not needed to go on
    assert levels(graph, 4, peel_in_groups(graph, 4, 3, before=resumed)) == other_peel(graph)


@pytest.mark.parametrize("array", ["count", "role"])
def test_a_checkpoint_that_was_changed(array: str) -> None:
    graph = ordered(drawn(1, 90, 4000))
    stopped = peel_in_groups(graph, 4, 2, stop=lambda: 0.0)
    changed = getattr(stopped[1], array).copy()
    here = int(np.argmax(stopped[1].count))
    changed[here] = changed[here] + 1 if array == "count" else 2
    spoiled_states = [stopped[0], replace(stopped[1], **{array: changed})]
    with pytest.raises(InternalError):
        peel_in_groups(graph, 4, 2, before=spoiled_states)


def test_a_checkpoint_of_other_shards() -> None:
    graph = ordered(drawn(1, 90, 4000))
    stopped = peel_in_groups(graph, 4, 2, stop=lambda: 0.0)
    with pytest.raises(InternalError, match="other shards"):
        peel_in_groups(graph, 6, 2, before=stopped)
    with pytest.raises(InternalError, match="other shards"):
        peel_in_groups(graph, 4, 2, before=stopped[::-1])
