"""Supports by shards over arrays that are not NumPy's: those of the CPU, and nothing mixes."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import foreign
import strategies
from drive import order_buckets
from edgemill import kernels
from edgemill.pipeline.stages.partitioning import OrderedGraph
from edgemill.tasks.device import MemorySpace, map_arrays
from edgemill.tasks.errors import InternalError, OutOfRoom
from edgemill.tasks.publish.lambda_columns import BucketResults
from edgemill.tasks.shards import group_edges, supports, warm
from edgemill.tasks.shards.assignment import ShardAssignment
from shard_edges import Edge, Sharded, buckets_of, shard


def graph_of(edges: list[Edge], vertices: int, buckets: int) -> OrderedGraph:
    return order_buckets(buckets_of(edges, vertices, buckets))


def elsewhere(graph: OrderedGraph) -> OrderedGraph:
    """The same buckets with their ranks elsewhere."""
    return replace(graph, oriented=[map_arrays(own, foreign.to_foreign) for own in graph.oriented])


def plain(held: Any) -> dict[str, Any]:
    """The fields of a value, arrays as lists with their types."""
    values = {f.name: getattr(held, f.name) for f in fields(held)}
    return {
        name: (str(value.dtype), kernels.to_host(value).tolist()) if hasattr(value, "nbytes") else value
        for name, value in values.items()
    }


def lambdas(sharded: Sharded) -> list[tuple[Any, Any]]:
    """As if λ of each owned edge were known to one, and told which edge it is."""
    found = []
    for own in sharded.groups:
        low = 1000 * own.rows.bucket.astype(np.int32) + own.rows.row
        found.append((low, low + np.int32(1)))
    return found


def results(sharded: Sharded, states: list[tuple[Any, Any]]) -> list[dict[str, Any]]:
    found: list[BucketResults] = sharded.collect(states)
    return list(map(plain, found))


@given(
    rows=strategies.simple_graphs(max_vertices=18),
    groups=st.sampled_from([1, 2, 3, 7]),
    each=st.integers(1, 2),
    buckets=st.integers(1, 4),
    together=st.integers(1, 4),
    buckets_there=st.booleans(),
)
@settings(max_examples=60)
def test_the_same_elsewhere(
    rows: list[Edge], groups: int, each: int, buckets: int, together: int, buckets_there: bool
) -> None:
    """Groups are elsewhere, and buckets with them or not."""
    vertices = max((v for edge in rows for v in edge), default=1) + 1
    graph = graph_of(sorted(rows), vertices, buckets)
    here = shard(graph, groups, groups * each, together)
    with foreign.with_kernels():
        given = elsewhere(graph) if buckets_there else graph
        row_space = MemorySpace.DEVICE if buckets_there else MemorySpace.HOST
        there = shard(given, groups, groups * each, together, MemorySpace.DEVICE, row_space)
        assert there.triangles == here.triangles
        for own, other in zip(there.supports, here.supports, strict=True):
            assert foreign.is_foreign(own.support) == buckets_there
            assert plain(own) == plain(other)
        for part, known in zip(there.groups, here.groups, strict=True):
            assert all(map(foreign.is_foreign, (part.edges.low, part.edges.high, part.edges.support)))
            assert foreign.is_foreign(part.rows.row) == foreign.is_foreign(part.rows.bucket) == buckets_there
            assert plain(part.edges) == plain(known.edges)
            assert plain(part.rows) == plain(known.rows)
            assert part.counts == known.counts
        states = [tuple(map(foreign.to_foreign, ends)) for ends in lambdas(here)]
        assert results(there, states) == results(here, lambdas(here))  # type: ignore[arg-type]


def test_known_lambda_travels_once() -> None:
    """From a group elsewhere to buckets on the host."""
    here = shard(graph_of([(0, 1), (0, 2), (1, 2)], 3, 1), 1, 1)
    with foreign.with_kernels():
        low = foreign.to_foreign(lambdas(here)[0][0])
        for ends in ((low, low), (low, low + np.int32(0))):
            (part,) = group_edges.send_intervals(here.groups[0].rows, *ends).parts.values()
            assert part.low is part.high
            assert kernels.on_host(part.low)


def test_an_answer_that_is_missing() -> None:
    graph = graph_of([(0, 1), (0, 2), (1, 2)], 3, 1)
    with foreign.with_kernels():
        there = shard(elsewhere(graph), 1, 1, 1, MemorySpace.DEVICE, MemorySpace.DEVICE)
        rows = map_arrays(there.groups[0].rows, lambda array: array[1:])
        part = group_edges.send_intervals(rows, rows.row, rows.row).parts[0]
        with pytest.raises(InternalError, match=r"3.*2.*arrived"):
            group_edges.collect_intervals(there.supports[0], {0: part})


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("there", [True, False])
def test_cliques_that_warm(groups: int, there: bool) -> None:
    """They have the supports that they should: else fewer kernels would be called than a run calls."""
    edges = warm.CLIQUES * warm.CLIQUE * (warm.CLIQUE - 1) // 2
    with foreign.with_kernels():
        space = MemorySpace.DEVICE if there else MemorySpace.HOST
        by_bucket, own = warm.find_groups(groups, MemorySpace.DEVICE, space)
        assert [kernels.to_host(bucket.support).tolist() for bucket in by_bucket] == [
            [warm.CLIQUE - 2] * (edges // warm.BUCKETS)
        ] * warm.BUCKETS
        assert sum(len(part.rows) for part in own) == edges


def test_too_many_edges_of_a_group() -> None:
    supports.check_limits(1, 2**31 - 2, on_gpu=True)
    supports.check_limits(1, 2**32 - 2, on_gpu=False)
    for edges, on_gpu in ((2**31 - 1, True), (2**32 - 1, False)):
        with pytest.raises(OutOfRoom, match=rf"1.*{edges:,}.*{edges - 1:,}"):
            supports.check_limits(1, edges, on_gpu)


def test_groups_of_ranks_near_the_top() -> None:
    """Ranks are unsigned: those of 2^31 and more are not negative."""
    ranks = np.array([0, 1, 2**31 - 1, 2**31, 2**32 - 3], np.uint32)
    for shards, groups in ((1, 1), (3, 3), (7, 3)):
        assignment = ShardAssignment.of(2**32 - 2, groups, shards)
        with foreign.with_kernels():
            there = assignment.group_of(foreign.to_foreign(ranks))  # type: ignore[arg-type]
            assert str(there.dtype) == "int16"
            assert kernels.to_host(there).tolist() == assignment.group_of(ranks).tolist()
