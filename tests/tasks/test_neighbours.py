"""Partitioners that follow the edges: what they walk on is the graph, and what they give is a partition of it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import foreign
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import drive
import strategies
from edgemill import kernels
from edgemill.tasks import ingest
from edgemill.tasks.errors import ClusterLost, UsageError
from edgemill.tasks.partition import HashPartitioner, RangePartitioner, bfs, multilevel, streaming
from edgemill.tasks.partition.neighbours import (
    Neighbours,
    Parts,
    answer_parts,
    collect_neighbours,
    room_for,
    send_half_edges,
    unit_weights,
)
from edgemill.tasks.sources import open_source


def ingested(folder: Path, rows: Sequence[tuple[int, int]], buckets: int, put: ingest.Put) -> drive.Ingested:
    ids = np.array(rows, np.int64).reshape(-1, 2)
    pq.write_table(pa.table({"src": ids[:, 0], "dst": ids[:, 1]}), folder / "rows.parquet")
    return drive.ingest(open_source(str(folder / "rows.parquet")), 1, buckets=buckets, put=put)


def neighbours_of(graph: drive.Ingested, weights: Sequence[NDArray[np.int32]] | None = None) -> list[Neighbours]:
    weights = weights or [unit_weights(edges) for edges in graph.edges]
    load = [np.asarray(kernels.to_host(degrees.degree)) for degrees in graph.degrees]
    return drive.exchange(
        map(send_half_edges, graph.edges, weights),
        len(graph.edges),
        lambda b, mail: collect_neighbours(graph.edges[b], weights[b], load[b], mail),
    )


def told(
    near: Sequence[Neighbours], parts: Sequence[Parts], function: Callable[..., Parts], *arguments: Any
) -> list[Parts]:
    return drive.exchange(
        map(answer_parts, near, parts), len(near), lambda b, mail: function(near[b], parts[b], *arguments, mail)
    )


def all_loads(parts: Sequence[Parts]) -> NDArray[np.int64]:
    loads: NDArray[np.int64] = np.sum([own.loads for own in parts], axis=0)
    return loads


def streamed(near: Sequence[Neighbours], partitions: int, passes: int) -> list[Parts]:
    vertices = sum(own.vertices for own in near)
    start = RangePartitioner(np.arange(1, partitions) * vertices // partitions)
    parts = [streaming.start_parts(own, start) for own in near]
    total = int(all_loads(parts).sum())
    for turn in range(passes):
        loads = all_loads(parts)
        capacity, room = room_for(loads, total, len(near))
        before = np.maximum(loads, capacity)
        parts = told(near, parts, streaming.restream, loads, room, capacity, turn)
        assert (all_loads(parts) <= before).all()  # what is full takes no more
        assert all_loads(parts).sum() == total
    return parts


def whole(parts: Sequence[Parts]) -> NDArray[np.int16]:
    return np.concatenate([own.part for own in parts])


def cut(near: Sequence[Neighbours], part: NDArray[np.int16]) -> int:
    """Edges between partitions, each seen from both ends."""
    found = 0
    for own in near:
        numbers = np.concatenate([np.arange(own.first, own.first + own.vertices), own.foreign])
        row = np.repeat(np.arange(own.vertices), np.diff(own.offsets)) + own.first
        found += int(np.count_nonzero(part[row] != part[numbers[own.member]]))
    return found // 2


@given(rows=strategies.edge_lists(20), buckets=st.sampled_from([1, 2, 5]), elsewhere=st.booleans(), drawn=st.data())
@settings(max_examples=60)
def test_neighbours_are_those_of_the_graph(
    tmp_path_factory: pytest.TempPathFactory,
    rows: strategies.EdgeList,
    buckets: int,
    elsewhere: bool,
    drawn: st.DataObject,
) -> None:
    with foreign.with_kernels():
        put = foreign.to_foreign if elsewhere else kernels.to_host
        graph = ingested(tmp_path_factory.mktemp("rows"), rows, buckets, put)
        weights = [
            np.array(drawn.draw(st.lists(st.integers(0, 2), min_size=len(e), max_size=len(e))), np.int32)
            for e in graph.edges
        ]
        near = neighbours_of(graph, weights)
        expected: set[tuple[int, int, int]] = set()
        for edges, weight in zip(graph.edges, weights, strict=True):
            low = kernels.to_host(edges.low) + edges.first
            high = kernels.to_host(edges.highs)[kernels.to_host(edges.high)]
            for u, v, w in zip(low.tolist(), high.tolist(), weight.tolist(), strict=True):
                expected |= {(u, v, w), (v, u, w)} if w else set()
        found = []
        for own in near:
            numbers = np.concatenate([np.arange(own.first, own.first + own.vertices), own.foreign])
            row = np.repeat(np.arange(own.vertices), np.diff(own.offsets)) + own.first
            found += list(zip(row.tolist(), numbers[own.member].tolist(), own.weight.tolist(), strict=True))
        assert len(found) == len(set(found))
        assert set(found) == expected


def communities(count: int, size: int, seed: int) -> list[tuple[int, int]]:
    """Cliques whose ids are scattered, and one edge from each to the next."""
    name = np.random.default_rng(seed).permutation(count * size).tolist()
    rows = []
    for c in range(count):
        members = range(c * size, (c + 1) * size)
        rows += [(name[u], name[v]) for u in members for v in members if u < v]
        rows.append((name[c * size], name[(c + 1) % count * size]))
    return rows


@pytest.mark.parametrize("buckets", [1, 4])
def test_streaming_finds_communities(tmp_path: Path, buckets: int) -> None:
    near = neighbours_of(ingested(tmp_path, communities(40, 12, 1), buckets, kernels.to_host))
    parts = streamed(near, 4, 24)
    start = whole(streamed(near, 4, 0))
    assert cut(near, whole(parts)) < 0.2 * cut(near, start)
    assert set(np.unique(whole(parts))) == {0, 1, 2, 3}
    np.testing.assert_array_equal(whole(streamed(near, 4, 24)), whole(parts))


@pytest.mark.parametrize("buckets", [1, 4])
def test_regions_grow_until_all_are_in_one(tmp_path: Path, buckets: int) -> None:
    near = neighbours_of(ingested(tmp_path, communities(40, 12, 1), buckets, kernels.to_host))
    vertices = sum(own.vertices for own in near)
    total = int(sum(own.load.sum() for own in near))
    seeds = np.arange(4) * vertices // 4
    parts = [bfs.plant(own, seeds) for own in near]
    assert np.count_nonzero(whole(parts) >= 0) == 4
    for _ in range(40):
        _, room = room_for(all_loads(parts), total, buckets)
        before, parts = whole(parts), told(near, parts, bfs.grow, room, 1)
        labelled = before >= 0
        np.testing.assert_array_equal(whole(parts)[labelled], before[labelled])
    capacity, room = room_for(all_loads(parts), total, buckets)
    assert all_loads(parts).max() <= capacity
    parts = told(near, parts, bfs.grow, room, 0)
    assert whole(parts).min() >= 0
    assert cut(near, whole(parts)) < 0.5 * cut(near, HashPartitioner(4)(np.arange(vertices)))


def test_seeds_that_fall_together(tmp_path: Path) -> None:
    near = neighbours_of(ingested(tmp_path, communities(3, 4, 1), 2, kernels.to_host))
    assert whole([bfs.plant(own, np.array([0, 0, 7, 7])) for own in near]).tolist() == [0, *6 * [-1], 2, *4 * [-1]]


@pytest.mark.parametrize("missing", [set(), {"kaminpar"}])
def test_multilevel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: set[str]) -> None:
    for name in missing:
        monkeypatch.setitem(sys.modules, name, None)
    near = neighbours_of(ingested(tmp_path, communities(40, 12, 1), 3, kernels.to_host))
    found = multilevel.multilevel(near, 4)
    assert found.dtype == np.int16
    assert cut(near, found) <= 8
    parts = [multilevel.parts_of(found, own, 4) for own in near]
    np.testing.assert_array_equal(whole(parts), found)
    assert all_loads(parts).max() <= 1.3 * all_loads(parts).mean()
    np.testing.assert_array_equal(multilevel.multilevel(near, 4), found)


def test_other_parts_are_noticed(tmp_path: Path) -> None:
    """A task done again where another partitioner is installed: an edge's two ends would disagree on its owner."""
    graph = ingested(tmp_path, communities(3, 4, 1), 2, kernels.to_host)
    near = neighbours_of(graph)
    first, other = (streaming.start_parts(near[0], RangePartitioner(np.array([cut]))) for cut in (2, 3))
    first.check(first.digest())
    oriented: Any = None
    with pytest.raises(ClusterLost, match="have the same packages on all workers, and run again"):
        ingest.answer_parts(graph.degrees[0], other, first.digest())
    with pytest.raises(ClusterLost, match="have the same packages on all workers, and run again"):
        ingest.send_owned_to(graph.edges[0], oriented, 2, other, first.digest(), {})


def test_multilevel_without_its_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("kaminpar", "pymetis"):
        monkeypatch.setitem(sys.modules, name, None)
    near = neighbours_of(ingested(tmp_path, [(0, 1)], 1, kernels.to_host))
    with pytest.raises(UsageError, match=r"install edgemill\[partition\]"):
        multilevel.multilevel(near, 2)
