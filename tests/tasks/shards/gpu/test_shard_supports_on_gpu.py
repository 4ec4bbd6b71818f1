"""Supports by shards on the GPU: those of the definition and of the CPU, from buckets there and on the host."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import strategies
from drive import order_buckets
from edgemill import kernels
from edgemill.kernels.cpu.shards import Cut, triangles
from edgemill.pipeline.stages.partitioning import OrderedGraph
from edgemill.tasks.device import MemorySpace, move_arrays
from edgemill.tasks.errors import OutOfRoom
from edgemill.tasks.shards import warm
from edgemill.tasks.shards.assignment import ShardAssignment
from edgemill.tasks.shards.group_edges import SupportedEdges, build_group_edges
from oracles import brute_force_support, simple_edges
from shard_edges import Edge, Sharded, buckets_of, numbers, shapes, shard
from sharding import drawn

pytestmark = pytest.mark.gpu
SHAPES = {"no edge": [], **shapes(1498, 40), "a large clique": list(combinations(range(300), 2))}


def graph_of(edges: list[Edge], buckets: int) -> OrderedGraph:
    vertices = max((v for edge in edges for v in edge), default=1) + 1
    return order_buckets(buckets_of(sorted(simple_edges(edges)), vertices, buckets))


def on_gpu(graph: OrderedGraph, groups: int, together: int, buckets_there: bool, shards: int | None = None) -> Sharded:
    """Groups on the GPU, and buckets with them or not."""
    space = MemorySpace.DEVICE if buckets_there else MemorySpace.HOST
    given = replace(graph, oriented=[move_arrays(own, space) for own in graph.oriented])
    return shard(given, groups, shards or groups, together, MemorySpace.DEVICE, space)


def plain(array: Any) -> tuple[str, list[Any]]:
    return str(array.dtype), kernels.to_host(array).tolist()


def supports(graph: OrderedGraph, sharded: Sharded) -> dict[Edge, int]:
    """By dense numbers."""
    return {
        edge: count
        for bucket, found in zip(graph.edges, sharded.supports, strict=True)
        for edge, count in zip(numbers(bucket), kernels.to_host(found.support).tolist(), strict=True)
    }


def check(graph: OrderedGraph, found: Sharded, expected: Sharded, buckets_there: bool) -> None:
    """All that comes out is what comes out on the CPU, and lies where it should."""
    assert found.triangles == expected.triangles
    for own, other in zip(found.supports, expected.supports, strict=True):
        assert kernels.on_host(own.support) != buckets_there
        assert plain(own.support) == plain(other.support)
    for part, known in zip(found.groups, expected.groups, strict=True):
        assert part.counts == known.counts
        assert (part.edges.group, part.edges.groups, part.edges.edges) == (
            known.edges.group,
            known.edges.groups,
            known.edges.edges,
        )
        for name in ("low", "high", "support"):
            assert not kernels.on_host(getattr(part.edges, name))
            assert plain(getattr(part.edges, name)) == plain(getattr(known.edges, name))
        for name in ("bucket", "row"):
            assert kernels.on_host(getattr(part.rows, name)) != buckets_there
            assert plain(getattr(part.rows, name)) == plain(getattr(known.rows, name))
    lows = [1000 * own.rows.bucket.astype(np.int32) + own.rows.row for own in expected.groups]
    answers = [(kernels.to_device(low), kernels.to_device(low + np.int32(1))) for low in lows]
    theirs = expected.collect([(low, low + 1) for low in lows])
    for results, right in zip(found.collect(answers), theirs, strict=True):
        for name in ("support", "low", "high"):
            assert kernels.on_host(getattr(results, name)) != buckets_there
            assert plain(getattr(results, name)) == plain(getattr(right, name))


@pytest.mark.parametrize("buckets_there", [True, False])
@pytest.mark.parametrize("groups", [1, 2, 3, 8])
@pytest.mark.parametrize("name", SHAPES)
def test_shapes(name: str, groups: int, buckets_there: bool) -> None:
    graph = graph_of(SHAPES[name], 3)
    found = on_gpu(graph, groups, 2, buckets_there)
    assert supports(graph, found) == brute_force_support(SHAPES[name])
    check(graph, found, shard(graph, groups, groups, 2), buckets_there)


@given(
    rows=strategies.simple_graphs(max_vertices=24),
    groups=st.sampled_from([1, 2, 3, 8]),
    each=st.integers(1, 2),
    buckets=st.integers(1, 5),
    together=st.integers(1, 5),
    buckets_there=st.booleans(),
)
@settings(max_examples=100, deadline=None)
def test_supports_by_definition(
    rows: list[Edge], groups: int, each: int, buckets: int, together: int, buckets_there: bool
) -> None:
    graph = graph_of(rows, buckets)
    found = on_gpu(graph, groups, together, buckets_there, groups * each)
    assert supports(graph, found) == brute_force_support(rows)
    check(graph, found, shard(graph, groups, groups * each, together), buckets_there)


@pytest.mark.parametrize("together", [1, 3, 8])
@pytest.mark.parametrize("groups", [1, 2, 3, 8])
def test_long_rows(groups: int, together: int) -> None:
    """Tables of several sizes, on both sides, from streams cut into batches of any size."""
    graph = graph_of(drawn(3, 4000, 120_000), 8)
    check(graph, on_gpu(graph, groups, together, True), shard(graph, groups, groups, together), True)


def test_tables_of_all_sizes() -> None:
    """Rows of up to 9,000 entries, all past the same few vertices: a table takes several passes."""
    hubs, leaves = 6, 9000
    edges = [(hub, hubs + leaf) for hub in range(hubs) for leaf in range(leaves)] + list(combinations(range(hubs), 2))
    low, high = np.array(sorted(edges), np.uint32).T
    rows = triangles.third_vertex_rows(
        triangles.merge_rows(low, high, np.array([0, len(low)]), hubs + leaves), Cut(hubs + leaves, 1), 0, 1
    )
    starts = np.searchsorted(low, np.arange(hubs + 1, dtype=np.uint32)).astype(np.uint32)
    lists = np.arange(hubs, dtype=np.uint32)
    expected = np.zeros(len(low), np.int32)
    found, counted = triangles.count_by_third_vertex(rows, starts, lists, high, expected)
    there = [kernels.to_device(array) for array in (low, high, starts, lists, np.zeros(len(low), np.int32))]
    merged = kernels.merge_rows(there[0], there[1], np.array([0, len(low)]), hubs + leaves)
    own = kernels.third_vertex_rows(merged, Cut(hubs + leaves, 1), 0, 1)
    partial, closed = kernels.count_by_third_vertex(own, there[2], there[3], there[1], there[4])
    assert closed == counted == leaves * hubs * (hubs - 1) // 2 + hubs * (hubs - 1) * (hubs - 2) // 6
    assert plain(partial) == plain(found)
    assert plain(there[4]) == plain(expected)


@pytest.mark.parametrize("at_once", [3, 700, 5000, 2**28])
def test_runs_are_merged(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranks of all 32 bits, in runs of which some are empty, by ranges of any size."""
    monkeypatch.setattr("edgemill.kernels.gpu.shards.triangles.MERGED_AT_ONCE", at_once)
    rng = np.random.default_rng(7)
    key = np.unique(rng.integers(0, 2**64, 5000, np.uint64))
    low, high = (key >> np.uint64(32)).astype(np.uint32), key.astype(np.uint32)
    run = rng.integers(0, 3, len(key))
    order = np.argsort(run, kind="stable")
    runs = np.array([0, 0, *np.cumsum(np.bincount(run, minlength=3)).tolist()])
    merged: Any = kernels.merge_rows(kernels.to_device(low[order]), kernels.to_device(high[order]), runs, 2**32 - 2)
    assert plain(merged.low) == plain(low)
    assert plain(merged.high) == plain(high)
    assert kernels.to_host(merged.origin).tolist() == np.argsort(order).tolist()


def test_groups_of_vertices() -> None:
    ranks = np.concatenate([np.arange(1000), 2**31 + np.arange(-500, 500), 2**32 - 2 - np.arange(1, 1000)])
    for groups, shards in ((1, 1), (3, 3), (3, 7), (8, 8)):
        assignment = ShardAssignment.of(2**32 - 2, groups, shards)
        host = ranks.astype(np.uint32)
        assert plain(assignment.group_of(kernels.to_device(host))) == plain(assignment.group_of(host))


def test_too_many_triangles() -> None:
    """More than GPUs count, though the host could."""
    ends = np.array([0, 0, 1], np.uint32), np.array([1, 2, 2], np.uint32)
    part = SupportedEdges(*ends, np.full(3, 2**27, np.int32), np.arange(3, dtype=np.int32))
    build_group_edges(0, ShardAssignment.of(3, 1, 1), 3, MemorySpace.HOST, MemorySpace.HOST, {0: part})
    with pytest.raises(OutOfRoom, match="134,217,728 triangles"):
        build_group_edges(0, ShardAssignment.of(3, 1, 1), 3, MemorySpace.DEVICE, MemorySpace.HOST, {0: part})
    small = replace(part, support=np.ones(3, np.int32))
    build_group_edges(0, ShardAssignment.of(3, 1, 1), 3, MemorySpace.DEVICE, MemorySpace.HOST, {0: small})


def test_warm_shards_finds_lambda() -> None:
    """It peels what it should: else it would not call what a run calls."""
    edges = warm.CLIQUES * warm.CLIQUE * (warm.CLIQUE - 1) // 2
    assert warm.warm_shards_on_gpu() == 4 * edges * (warm.CLIQUE - 2)
