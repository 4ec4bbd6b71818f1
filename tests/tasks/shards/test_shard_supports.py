"""Supports by shards, and the edges that groups get, against the definition; and what must not go unnoticed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import known_graphs
import strategies
from drive import order_buckets
from edgemill.kernels.cpu.shards import Cut, triangles
from edgemill.kernels.runtime.threads import kernel_threads
from edgemill.pipeline.stages.partitioning import OrderedGraph
from edgemill.tasks.errors import InternalError, OutOfRoom
from edgemill.tasks.shards import group_edges, supports
from edgemill.tasks.shards.assignment import ShardAssignment
from edgemill.tasks.shards.supports import EdgeStream, sort_edges
from oracles import brute_force_support, simple_edges
from shard_edges import Edge, Sharded, buckets_of, numbers, shapes, shard
from sharding import drawn

SHAPES = {"no edge": [], **shapes(198, 40)}


def graph_of(edges: Sequence[Edge], buckets: int) -> OrderedGraph:
    """In degree order, with as many vertices as the highest number tells."""
    vertices = max((v for edge in edges for v in edge), default=1) + 1
    return order_buckets(buckets_of(sorted(simple_edges(edges)), vertices, buckets))


def check(graph: OrderedGraph, sharded: Sharded, expected: dict[Edge, int]) -> None:
    """Supports are those of the definition, and each group has exactly the edges with an end in its classes."""
    assert sharded.support(graph.edges) == expected
    assert 3 * sharded.triangles == sum(expected.values())
    ranked: dict[Edge, tuple[int, int, int]] = {}
    for oriented, bucket, found in zip(graph.oriented, graph.edges, sharded.supports, strict=True):
        for row, ends in enumerate(zip(oriented.low.tolist(), oriented.high.tolist(), strict=True)):
            ranked[ends] = (bucket.bucket, row, int(found.support[row]))
    closed = {ends: own for ends, own in ranked.items() if own[2]}
    owners: dict[Edge, int] = {}
    for group, own in enumerate(sharded.groups):
        edges = own.edges
        pairs = list(zip(edges.low.tolist(), edges.high.tolist(), strict=True))
        assert (edges.group, edges.groups, edges.edges) == (group, sharded.assignment.groups, len(closed))
        first = sharded.assignment.first
        classes = range(first[group], first[group + 1])
        class_of = edges.cut.classes(np.arange(graph.vertices, dtype=np.uint32)).tolist()
        ends_here = {pair: [class_of[end] in classes for end in pair] for pair in closed}
        assert pairs == sorted(pair for pair, here in ends_here.items() if any(here))
        assert edges.support.tolist() == [closed[pair][2] for pair in pairs]
        assert [str(array.dtype) for array in (edges.low, edges.high, edges.support)] == ["uint32", "uint32", "int32"]
        owned = [pair for pair in pairs if ends_here[pair][1]]
        rows = list(zip(own.rows.bucket.tolist(), own.rows.row.tolist(), strict=True))
        assert rows == [closed[pair][:2] for pair in owned]
        assert own.counts.entries == sum(sum(ends_here[pair]) for pair in pairs)
        assert (own.counts.edges, own.counts.owned) == (len(pairs), len(owned))
        assert not owners.keys() & set(owned)
        owners |= dict.fromkeys(owned, group)
    assert owners.keys() == closed.keys()


@pytest.mark.parametrize(("groups", "shards"), [(1, 1), (2, 2), (3, 7), (7, 28), (16, 16)])
@pytest.mark.parametrize("name", SHAPES)
def test_shapes(name: str, groups: int, shards: int) -> None:
    graph = graph_of(SHAPES[name], 3)
    check(graph, shard(graph, groups, shards, 2), brute_force_support(SHAPES[name]))


@given(
    rows=strategies.simple_graphs(max_vertices=18),
    groups=st.sampled_from([1, 2, 3, 7, 16]),
    each=st.integers(1, 4),
    buckets=st.integers(1, 5),
    together=st.integers(1, 5),
)
@settings(max_examples=60)
def test_supports_by_definition(rows: list[Edge], groups: int, each: int, buckets: int, together: int) -> None:
    graph = graph_of(rows, buckets)
    check(graph, shard(graph, groups, groups * each, together), brute_force_support(rows))


@pytest.mark.parametrize("marks", [True, False])
@pytest.mark.parametrize("threads", [1, 2])
def test_long_rows(monkeypatch: pytest.MonkeyPatch, marks: bool, threads: int) -> None:
    """Rows that are sorted by more than insertion and searched as well as read, with and without marks."""
    if not marks:
        monkeypatch.setattr(triangles, "SMALL_MARKS", 0)
        monkeypatch.setattr(triangles, "MARK_BYTES", 0)
    edges = drawn(3, 150, 6000)
    graph = graph_of(edges, 4)
    expected = brute_force_support(edges)
    with kernel_threads(threads):
        for groups in (1, 3):
            check(graph, shard(graph, groups, 2 * groups), expected)


@pytest.mark.parametrize("name", ["ca-GrQc", "email-Eu-core"])
@pytest.mark.parametrize(("groups", "shards", "buckets"), [(1, 2, 1), (4, 8, 3)])
@pytest.mark.skipif(known_graphs.SKIP_REASON is not None, reason=known_graphs.SKIP_REASON or "")
def test_known_triangles(name: str, groups: int, shards: int, buckets: int) -> None:
    known = known_graphs.known_graph(name)
    table = pq.read_table(known.path)
    ends, numbers_ = np.unique(np.stack([table["src"].to_numpy(), table["dst"].to_numpy()]), return_inverse=True)
    pairs = numbers_.reshape(2, -1)
    edges = simple_edges(zip(*pairs.tolist(), strict=True))
    assert len(ends) == known.vertices
    assert len(edges) == known.edges
    graph = order_buckets(buckets_of(sorted(edges), len(ends), buckets))
    assert shard(graph, groups, shards).triangles == known.triangles


def test_ranks_of_any_width() -> None:
    """Ranks of a graph of more than 2^31 vertices are int64, and so many times as large as int32 can tell."""
    edges = drawn(5, 40, 300)
    graph = graph_of(edges, 2)
    vertices = graph.edges[0].all_vertices
    # As many vertices without edges before: the same graph, with ranks near 2^32.
    shift = 2**32 - 2 - vertices
    wide = [
        replace(own, low=own.low.astype(np.int64) + shift, high=own.high.astype(np.int64) + shift)
        for own in graph.oriented
    ]
    narrow = [sort_edges(own) for own in graph.oriented]
    for own, other in zip(map(sort_edges, wide), narrow, strict=True):
        assert (own.stream.low - np.uint32(shift)).tolist() == other.stream.low.tolist()
        assert (own.stream.high - np.uint32(shift)).tolist() == other.stream.high.tolist()
        assert own.row.tolist() == other.row.tolist()
    high = np.concatenate([own.stream.high for own in narrow])
    for groups, shards in ((1, 1), (3, 5), (4, 16)):
        small, large = (ShardAssignment.of(n, groups, shards) for n in (vertices, 2**32 - 2))
        assert small.group_of(high).tolist() == large.group_of(high + np.uint32(shift)).tolist()
    with pytest.raises(OutOfRoom, match="4,294,967,295 vertices"):
        ShardAssignment.of(2**32 - 1, 1, 1)


@given(vertices=st.integers(1, 200), shards=st.integers(1, 9), data=st.data())
def test_numbers_of_a_group_ascend(vertices: int, shards: int, data: st.DataObject) -> None:
    """Each vertex of the group's classes has a number of its own, and a higher rank has a higher one."""
    first = data.draw(st.integers(0, shards - 1))
    own = data.draw(st.integers(1, shards - first))
    cut = Cut(vertices, shards)
    ranks = np.arange(vertices, dtype=np.uint32)
    here = ranks[(cut.classes(ranks) >= first) & (cut.classes(ranks) < first + own)]
    merged = triangles.merge_rows(np.zeros_like(here), here, np.array([0, len(here)]), vertices)
    rows = triangles.third_vertex_rows(merged, cut, first, own)
    assert (np.diff(rows.code.astype(np.int64)) > 0).all()
    assert len(here) == 0 or rows.code.max() < rows.width


def test_too_many_triangles() -> None:
    """No sum wraps unnoticed."""
    most = np.full(2, 2**28 - 1, np.int32)
    assert supports.add_partials(None, [most]).tolist() == most.tolist()
    with pytest.raises(OutOfRoom, match="268,435,456 triangles"):
        supports.add_partials(most, [np.array([0, 1], np.int32)])


@pytest.fixture
def sharded() -> Sharded:
    return shard(graph_of(SHAPES["clique"] + [(39, 40)], 2), 3, 6)


def states_of(sharded: Sharded) -> list[tuple[np.ndarray, np.ndarray]]:
    """A λ for each owned edge that tells which one it is."""
    states = []
    for own in sharded.groups:
        low = 1000 * own.rows.bucket.astype(np.int32) + own.rows.row
        states.append((low, low + 1))
    return states


def test_intervals_come_back(sharded: Sharded) -> None:
    for b, results in enumerate(sharded.collect(states_of(sharded))):
        support = sharded.supports[b].support
        own = np.where(support > 0, 1000 * b + np.arange(len(support)), 0)
        assert results.support.tolist() == support.tolist()
        assert results.low.tolist() == own.tolist()
        assert results.high.tolist() == np.where(support > 0, own + 1, 0).tolist()
    assert sum((own.support == 0).sum() for own in sharded.supports) == 1


def test_known_lambda_travels_once(sharded: Sharded) -> None:
    states = [(low, low.copy()) for low, _ in states_of(sharded)]
    for part in group_edges.send_intervals(sharded.groups[0].rows, *states[0]).parts.values():
        assert part.low is part.high
    for results in sharded.collect(states):
        assert results.low is results.high


def test_every_edge_has_one_answer(sharded: Sharded) -> None:
    states = states_of(sharded)
    sent = [group_edges.send_intervals(own.rows, *state) for own, state in zip(sharded.groups, states, strict=True)]
    mail = {g: own.parts[0] for g, own in enumerate(sent)}
    counts = sharded.supports[0]
    group_edges.collect_intervals(counts, mail)
    one = mail[0]
    fewer = group_edges.EdgeIntervals(one.row[1:], one.low[1:], one.high[1:])
    twice = group_edges.EdgeIntervals(np.append(one.row[1:], one.row[1]), one.low, one.high)
    for wrong in (fewer, twice):
        with pytest.raises(InternalError, match="not one for each"):
            group_edges.collect_intervals(counts, {**mail, 0: wrong})
    open_edge = supports.BucketSupports(0, counts.support.copy())
    open_edge.support[one.row[0]] = 0
    with pytest.raises(InternalError, match="not one for each"):
        group_edges.collect_intervals(open_edge, mail)
    with pytest.raises(InternalError, match="has λ of"):
        group_edges.send_intervals(sharded.groups[0].rows, states[0][0][1:], states[0][1][1:])


def test_lost_counts_are_noticed() -> None:
    graph = graph_of(SHAPES["clique"], 2)
    sorted_edges = [sort_edges(own) for own in graph.oriented]
    assignment = ShardAssignment.of(40, 2, 2)
    edges = sorted_edges[0]
    partial = np.zeros(len(edges), np.int32)
    with pytest.raises(InternalError, match="were counted"):
        supports.collect_supports(edges, assignment, partial[1:], 0, {})
    with pytest.raises(InternalError, match="received 0"):
        supports.collect_supports(edges, assignment, partial, 0, {})
    with pytest.raises(InternalError, match="groups counted"):
        supports.add_partials(partial, [partial[1:]])
    with pytest.raises(InternalError, match="found 4"):
        supports.check_triangles([5, 6], [4])


def test_a_stream_is_small() -> None:
    """4 bytes an edge where vertices have several edges each."""
    graph = graph_of(SHAPES["clique"], 1)
    stream = sort_edges(graph.oriented[0]).stream
    assert isinstance(stream, EdgeStream)
    assert stream.low.nbytes + stream.high.nbytes + stream.starts.nbytes == 4 * len(stream) + 4 * 39 + 4 * 40
    assert sorted(numbers(graph.edges[0])) == SHAPES["clique"]
