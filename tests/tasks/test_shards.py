"""Peeling by rows cut by the third vertex, on groups of shards in step, against the definition and the other peel."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import strategies
from edgemill import kernels
from edgemill.kernels.cpu.shards import Cut, ShardGroup, build_rows
from edgemill.kernels.cpu.shards.halves import REPORT
from edgemill.kernels.cpu.shards.letters import EDGES, HEADER, KEEPERS, LAST, LEFT_LOW, LEVEL
from edgemill.kernels.graph import Topology
from edgemill.tasks.errors import ClusterLost, InternalError, OutOfRoom
from edgemill.tasks.shards import Carrier, FileRoom, Letter, MemoryCarrier, ShardState, Words, file_room, peel_shards
from oracles import brute_force_lambda, simple_edges
from sharding import (
    Edge,
    Graph,
    Reordering,
    Wrapped,
    intervals,
    levels,
    ordered,
    peel_in_groups,
    shard_edges,
)

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
    found = levels(graph, shards, peel_in_groups(graph, shards, min(shards, 2)))
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
        prepared, shards, min(groups, shards), near, lambda carrier: Reordering(carrier, shards, seed + carrier.rank)
    )
    assert levels(prepared, shards, peeled) == brute_force_lambda(edges)


def drawn(seed: int, vertices: int, edges: int) -> list[Edge]:
    """A graph with hubs: the ends of an edge are near 0 more often."""
    ends = (vertices * np.random.default_rng(seed).random((edges, 2)) ** 3).astype(np.int64)
    return sorted(simple_edges(map(tuple, ends.tolist())))


@pytest.mark.parametrize(
    ("shards", "groups", "near"), [(1, 1, 4), (2, 2, 4), (3, 1, 1), (4, 2, 8), (7, 3, 4), (16, 4, 2)]
)
def test_the_other_peel(shards: int, groups: int, near: int) -> None:
    graph = ordered(drawn(1, 90, 4000))
    found = levels(graph, shards, peel_in_groups(graph, shards, groups, near))
    assert found == other_peel(graph)
    assert max(found.values()) > 8


def other_peel(graph: Graph) -> dict[Edge, int]:
    """λ by the peel of one partition."""
    peeling = kernels.peeling(
        Topology(graph.low.astype(np.int32), graph.high.astype(np.int32), graph.vertices), graph.support
    )
    while peeling.left:
        peeling.advance()
    ends = zip(graph.low.tolist(), graph.high.tolist(), peeling.low.tolist(), strict=True)
    named = ((graph.name[low], graph.name[high], level) for low, high, level in ends)
    return {(min(u, v), max(u, v)): level for u, v, level in named}


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
    """Changes the first letter that `change` gives another one for; for one group."""

    def __init__(self, carrier: Carrier, change: Callable[[Letter], Letter | None]) -> None:
        super().__init__(carrier)
        self._change: Callable[[Letter], Letter | None] = change
        self.done = False

    def changed(self, sender: int, letter: Letter) -> Letter:
        if self.done or len(letter.common) < HEADER or len(letter.own) <= 1:
            return letter
        another = self._change(letter)
        self.done = another is not None
        return another or letter


def with_messages(letter: Letter, target: Words, value: Words, start: Words) -> Letter:
    return Letter(letter.common, np.concatenate([np.array([len(target)], np.uint32), start, target, value]))


def messages(letter: Letter, senders: int, here: int) -> tuple[Words, Words, Words]:
    """Targets, values and starts."""
    table, count = 1 + senders * (here + 1), int(letter.own[0])
    return letter.own[table : table + count], letter.own[table + count :], letter.own[1:table]


def spoiled(change: Callable[[Letter], Letter | None]) -> Callable[[Carrier], Carrier]:
    return lambda carrier: Changing(carrier, change) if carrier.rank == 1 else carrier


def without_last_report(letter: Letter) -> Letter | None:
    target, value, start = messages(letter, 2, 2)
    if not len(target) or value[-1] & 3 != REPORT:
        return None
    return with_messages(letter, target[:-1], value[:-1], np.minimum(start, np.uint32(len(target) - 1)))


def with_last_report_twice(letter: Letter) -> Letter | None:
    target, value, start = messages(letter, 2, 2)
    if not len(target) or value[-1] & 3 != REPORT:
        return None
    start = np.where(start == len(target), len(target) + 1, start).astype(np.uint32)
    return with_messages(letter, np.append(target, target[-1]), np.append(value, value[-1]), start)


@pytest.mark.parametrize("change", [without_last_report, with_last_report_twice])
def test_a_message_that_does_not_arrive_once(change: Callable[[Letter], Letter | None]) -> None:
    with pytest.raises(InternalError, match=r"shards sent \d+ messages, and \d+ arrived"):
        peel_in_groups(ordered(drawn(1, 90, 4000)), 4, 2, wrap=spoiled(change))


@pytest.mark.parametrize("word", [LEVEL, LAST, LEFT_LOW, EDGES])
def test_headers_that_disagree(word: int) -> None:
    def change(letter: Letter) -> Letter:
        common = letter.common.copy()
        common[word] += 1
        return Letter(common, letter.own)

    with pytest.raises(InternalError, match=r"groups of shards disagree at level 0, with [\d,]+ edges left"):
        peel_in_groups(ordered(drawn(1, 90, 4000)), 4, 2, wrap=spoiled(change))


@pytest.mark.parametrize("word", [0, 3, 6])
def test_a_letter_that_is_not_whole(word: int) -> None:
    """The count of messages and the table before them are checked before any message is read."""

    def change(letter: Letter) -> Letter:
        own = letter.own.copy()
        own[word] += 10**6
        return Letter(letter.common, own)

    with pytest.raises(InternalError, match="groups of shards disagree at level 0"):
        peel_in_groups(ordered(drawn(1, 90, 4000)), 4, 2, wrap=spoiled(change))


def test_groups_that_go_to_different_levels() -> None:
    """A group that takes another level for the next one is found out at the next exchange."""

    def change(letter: Letter) -> Letter | None:
        if letter.common[LEVEL] == 0 or letter.common[KEEPERS] == 2**32 - 1:
            return None
        common = letter.common.copy()
        common[LEVEL] -= 1
        return Letter(common, letter.own)

    with pytest.raises(InternalError, match=r"groups of shards disagree at level [1-9]"):
        peel_in_groups(ordered(drawn(1, 90, 4000)), 4, 2, wrap=spoiled(change))


def spoiling(column: int) -> Callable[[int, ShardGroup], None]:
    def spoil(rank: int, group: ShardGroup) -> None:
        group.counts[0, column] += rank == 1

    return spoil


def test_an_edge_whose_shards_disagree() -> None:
    with pytest.raises(InternalError, match="do not agree on the λ of an edge"):
        peel_in_groups(ordered(drawn(1, 90, 4000)), 4, 2, tamper=spoiling(2))


def test_a_triangle_that_is_removed_twice() -> None:
    with pytest.raises(InternalError, match=r"shards removed 1 triangles and count \d+ more; the supports say \d+"):
        peel_in_groups(ordered(drawn(1, 90, 4000)), 4, 2, tamper=spoiling(1))


@pytest.mark.parametrize("change", [3, -3])
def test_a_wrong_support(change: int) -> None:
    graph = ordered(drawn(1, 90, 4000))
    support = graph.support.copy()
    support[np.argmax(support)] += change
    with pytest.raises(InternalError, match=r"shards removed \d+ triangles and count 0 more; the supports say \d+"):
        peel_in_groups(replace(graph, support=support), 4, 2)


def test_a_changed_count() -> None:
    def spoil(rank: int, group: ShardGroup) -> None:
        group.count[0] += rank

    with pytest.raises(InternalError, match=r"shards removed 0 triangles and count \d+\.\d+ more"):
        peel_in_groups(ordered(drawn(1, 90, 4000)), 4, 2, tamper=spoil)


def test_groups_with_other_edges_between_them() -> None:
    """Group 1 lacks one of the edges that it has in common with group 0."""
    graph = ordered(SHAPES["clique"])
    firsts = [shard_edges(graph, 4, group, 2) for group in range(2)]
    one = firsts[1]
    common = np.isin(one.low.astype(np.int64) << 32 | one.high, firsts[0].low.astype(np.int64) << 32 | firsts[0].high)
    kept = np.arange(len(one.low)) != np.flatnonzero(common)[0]
    spoiled_edges = replace(one, low=one.low[kept], high=one.high[kept], support=one.support[kept])
    with pytest.raises(InternalError, match=r"edges in common with group|same edges between them"):
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
        def exchange(self, common: Words, own: Sequence[Words]) -> list[Letter]:
            try:
                return super().exchange(common, own)
            except ClusterLost as error:
                ended.append(type(error))
                raise

    with pytest.raises(RuntimeError, match="no memory left"):
        peel_in_groups(ordered(drawn(1, 90, 4000)), 4, 3, wrap=Noting, tamper=spoil)
    assert ended == [ClusterLost, ClusterLost]


def _fail(level: int, last: int, left: int, late: bool) -> tuple[Words, list[Words]]:
    raise RuntimeError("no memory left")


def test_supports_that_counts_cannot_hold() -> None:
    graph = ordered(SHAPES["triangle"])
    with pytest.raises(ValueError, match="shards count up to 536,870,911"):
        peel_in_groups(replace(graph, support=graph.support + np.int32(2**29)), 2, 1)


def test_no_edges() -> None:
    graph = replace(ordered([]), vertices=1, name=[0])
    assert levels(graph, 3, peel_in_groups(graph, 3, 2)) == {}


@given(
    graph=strategies.simple_graphs(),
    shards=st.sampled_from([1, 2, 4, 7]),
    groups=st.integers(1, 3),
    near=st.integers(1, 6),
)
@settings(max_examples=30)
def test_stop_after_each_level_and_go_on(graph: list[Edge], shards: int, groups: int, near: int) -> None:
    """Intervals are right at every stop, and the end is that of a run without stops."""
    edges = sorted(simple_edges(graph))
    prepared, expected = ordered(edges), brute_force_lambda(edges)
    groups, stops = min(groups, shards), 0
    peeled: list[ShardState] | None = None
    while peeled is None or not peeled[0].finished:
        level = -1 if peeled is None else peeled[0].level
        peeled = peel_in_groups(prepared, shards, groups, near, before=peeled, stop=lambda: 0.0)
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
    assert set(seen) == {(seen[0][0], peeled[0].left)} and len(seen) == 3
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
    with pytest.raises(InternalError, match="that of other shards"):
        peel_in_groups(graph, 6, 2, before=stopped)
    with pytest.raises(InternalError, match="that of other shards"):
        peel_in_groups(graph, 4, 2, before=stopped[::-1])


def test_rows_in_files(tmp_path: Path) -> None:
    """What lies in files gives the same λ, leaves nothing behind and takes little memory."""
    graph = ordered(drawn(1, 90, 4000))
    with FileRoom(tmp_path, 0) as room, FileRoom(tmp_path, 2**40) as wide:
        peeled = peel_in_groups(graph, 4, 2, rooms=[room, wide])
        assert not list(tmp_path.iterdir())
        assert len(looking()) == 2
    assert not looking()
    assert levels(graph, 4, peeled) == other_peel(graph)
    assert wide.trims == 0


def looking() -> list[threading.Thread]:
    """The threads of rooms."""
    return [thread for thread in threading.enumerate() if thread.name == "edgemill-file-room"]


def test_arrays_in_files_survive_that_their_pages_go(tmp_path: Path) -> None:
    with FileRoom(tmp_path, 2**20) as room:
        array = room.array(2**21, np.int64)
        array[:] = np.arange(2**21)
        trims = room.trims
        while room.trims < trims + 2:
            assert np.array_equal(array, np.arange(2**21))
    assert array[-1] == 2**21 - 1
    assert room.given_bytes == array.nbytes
    assert room.mapped_bytes > 2 * 0.9 * array.nbytes  # written once, and read once at least
    assert open_files(tmp_path)
    del array  # the only name of the map, which needs no collection
    assert not open_files(tmp_path)


def test_what_others_map_is_not_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages go when 20 bytes of them are resident above what is left when they have gone."""
    levels = iter([10, 10, 50, 45, 55, 64, 70, 46, 30, 49, 51, 30, 35])
    monkeypatch.setattr(file_room, "EVERY", 0)
    monkeypatch.setattr(file_room, "_shared_bytes", lambda: next(levels))
    room = FileRoom(tmp_path, 20)
    with pytest.raises(StopIteration):
        room._look()
    # At 50, where 45 stay; at 70, where 46 stay; at 51, as 30 was the least meanwhile.
    assert (room.trims, room.mapped_bytes) == (3, 50 - 10 + 70 - 45 + 51 - 30)


def open_files(folder: Path) -> list[str]:
    """Files below a folder that this process has open; other threads close theirs meanwhile."""
    found = []
    for handle in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            found.append(os.readlink(f"/proc/self/fd/{handle}"))
    return [name for name in found if name.startswith(str(folder))]


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with FileRoom(tmp_path, 0) as room, pytest.raises(OutOfRoom, match="no room for 400 bytes of shards"):
        room.array(100, np.uint32)
    assert not list(tmp_path.iterdir())


def test_warm_shards_compiles_all(tmp_path: Path) -> None:
    """Nothing is compiled for a type that `warm_shards` has not seen, whatever the arrays come from."""
    script = """
import sys
import numpy as np
from pathlib import Path
from edgemill.kernels.cpu.shards import cut, entries, group, halves, letters, removal, rounds, rows, sides
from edgemill.tasks.shards import FileRoom, warm_shards
from sharding import ordered, peel_in_groups
modules = (cut, entries, group, halves, letters, removal, rounds, rows, sides)
def signatures():
    return {name: len(k.signatures) for m in modules for name, k in vars(m).items() if hasattr(k, "signatures")}
warm_shards(2)
before = signatures()
rng = np.random.default_rng(1)
graph = ordered(sorted({(min(a, b), max(a, b)) for a, b in rng.integers(0, 40, (300, 2)).tolist() if a != b}))
for array in (graph.low, graph.high, graph.support):
    array.flags.writeable = False
with FileRoom(Path(sys.argv[1]), 0) as one, FileRoom(Path(sys.argv[1]), 0) as two:
    stopped = peel_in_groups(graph, 4, 2, rooms=[one, two], stop=lambda: 0.0)
    peel_in_groups(graph, 4, 2, before=stopped)
peel_in_groups(graph, 3, 1)
assert before["play"] == 1 and signatures() == before, (before, signatures())
"""
    tests = str(Path(__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([tests, os.environ.get("PYTHONPATH", "")])}
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True, env=environment, timeout=280)
