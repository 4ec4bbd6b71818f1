"""Shards on a GPU or a substitute, in a Dask cluster in this process: supports, edges, and results in buckets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from distributed import Client

import foreign
import runs
from edgemill import kernels
from edgemill.pipeline.cluster.engine import Engine
from edgemill.pipeline.events import Events
from edgemill.pipeline.inputs.input_object import open_input
from edgemill.pipeline.settings.sources import make_settings
from edgemill.pipeline.stages import ingesting, sharding
from edgemill.pipeline.stages.partitioning import OrderedGraph, order_by_degree
from edgemill.pipeline.stages.sharding import count_supports_by_shards
from edgemill.tasks.bound.intervals import Intervals
from edgemill.tasks.device import MemorySpace
from edgemill.tasks.ingest import OwnedRows
from edgemill.tasks.ingest.numbering import BucketEdges
from edgemill.tasks.inputs.sources import plan_blocks
from edgemill.tasks.publish.lambda_columns import BucketResults
from oracles import brute_force_support, simple_edges

ROWS = sorted(simple_edges(map(tuple, (80 * np.random.default_rng(2).random((900, 2)) ** 2).astype(np.int64).tolist())))
EXPECTED = brute_force_support(ROWS)
BUCKETS = 4


PLACES = [("elsewhere", there) for there in (True, False)]


@pytest.fixture(params=[*PLACES, *(pytest.param(("gpu", there), marks=pytest.mark.gpu) for there in (True, False))])
def graph(request: pytest.FixtureRequest, client: Client, tmp_path: Path) -> Iterator[OrderedGraph]:
    """A graph with groups on the GPU or its substitute. Its buckets lie there or on the host."""
    place, there = request.param
    with foreign.with_kernels() if place == "elsewhere" else nullcontext():
        space = MemorySpace.DEVICE if there else MemorySpace.HOST
        source = open_input(make_settings(str(runs.write_rows(tmp_path / "rows.parquet", ROWS)), str(tmp_path / "out")))
        engine = Engine.connect(client, "run", "gpu" if place == "gpu" else "cpu", pinned_partitions=3)
        if place != "gpu":
            capacity = replace(engine.capacity, device_bytes=2**30)
            engine = Engine.set_up(engine.session, replace(engine.execution, capacity=capacity))
        with Events() as events:
            blocks, _ = ingesting.read(engine, events, source, plan_blocks(source, 100), "refuse", space)
            buckets = ingesting.number(engine, events, source, blocks, BUCKETS, space)
        yield order_by_degree(engine, buckets.edges, int(buckets.starts[-1]), space)
        engine.session.release_all()
        engine.session.close()


def by_edge(edges: list[BucketEdges], results: list[BucketResults]) -> dict[tuple[int, int], tuple[int, int, int]]:
    """Support, and λ from and to, of each edge, by the ids of its ends."""
    names = sorted({end for edge in ROWS for end in edge})
    found: dict[tuple[int, int], tuple[int, int, int]] = {}
    for bucket, own in zip(edges, results, strict=True):
        low, highs, high = (kernels.to_host(array).tolist() for array in (bucket.low, bucket.highs, bucket.high))
        values = [kernels.to_host(array).tolist() for array in (own.support, own.low, own.high)]
        for u, v, *rest in zip(low, high, *values, strict=True):
            found[names[u + bucket.first], names[highs[v]]] = (rest[0], rest[1], rest[2])
    return found


def numbered(rows: OwnedRows) -> Intervals:
    """Task: intervals that a group might find, on its device."""
    low = kernels.to_device(np.arange(len(rows), dtype=np.int32))
    return Intervals(low, low + np.int32(1))


@pytest.mark.parametrize(("batch", "groups"), [(sharding.MIN_BATCH_EDGES, 2), (1, 3)])
def test_there_and_back(graph: OrderedGraph, monkeypatch: pytest.MonkeyPatch, batch: int, groups: int) -> None:
    monkeypatch.setattr(sharding, "MIN_BATCH_EDGES", batch)
    monkeypatch.setattr(sharding, "MAX_GROUP_SHARE", 10**6)  # each bucket passes by alone if batches are small
    engine = graph.engine
    with Events() as events:
        shards = sharding.triangulate_shards(engine, events, graph, groups, groups)
    assert 3 * shards.triangles == sum(EXPECTED.values())
    on_host = graph.space is MemorySpace.HOST
    for edges in engine.gather(shards.edges):
        assert not any(map(kernels.on_host, (edges.low, edges.high, edges.support)))
    rows = engine.gather(shards.rows)
    assert all(kernels.on_host(own.row) == kernels.on_host(own.bucket) == on_host for own in rows)
    assert all(kernels.on_host(own.support) == on_host for own in engine.gather(shards.supports))
    # As if the λ of each edge were its number among those of its group, and not known to 1.
    states = engine.map("states", numbered, [(own,) for own in shards.rows])
    results = engine.gather(sharding.collect_intervals(engine, shards.rows, shards.supports, states))
    assert all(kernels.on_host(own.low) == on_host for own in results)
    found = by_edge(engine.gather(graph.edges), results)
    assert {edge: support for edge, (support, _, _) in found.items()} == EXPECTED
    answers = sorted((low, high) for support, low, high in found.values() if support)
    assert answers == sorted((i, i + 1) for own in rows for i in range(len(own)))
    assert {(low, high) for support, low, high in found.values() if not support} <= {(0, 0)}


@pytest.mark.parametrize("partitions", [1, 3])
def test_supports_alone(graph: OrderedGraph, partitions: int) -> None:
    buckets = graph.engine.gather(graph.edges)
    counted = graph.engine.gather(count_supports_by_shards(graph, partitions))
    results = [BucketResults(own.bucket, own.support, own.support, own.support) for own in counted]
    assert by_edge(buckets, results) == {edge: (count, count, count) for edge, count in EXPECTED.items()}
