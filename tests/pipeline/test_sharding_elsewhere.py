"""Shards on a GPU, or on what stands for one, in a Dask cluster in this process: supports, edges, and the way back."""

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
from edgemill.pipeline import sharding, stages
from edgemill.pipeline.config import make_settings
from edgemill.pipeline.engine import Engine
from edgemill.pipeline.extracting import supports_of
from edgemill.pipeline.partitioning import Ordered, put_in_order
from edgemill.pipeline.planning import open_input
from edgemill.pipeline.telemetry import Events
from edgemill.tasks.bound.intervals import Intervals
from edgemill.tasks.ingest import OwnedRows
from edgemill.tasks.numbering import BucketEdges
from edgemill.tasks.publish import BucketResults
from edgemill.tasks.sources import plan_blocks
from oracles import brute_force_support, simple_edges

ROWS = sorted(simple_edges(map(tuple, (80 * np.random.default_rng(2).random((900, 2)) ** 2).astype(np.int64).tolist())))
EXPECTED = brute_force_support(ROWS)
BUCKETS = 4


PLACES = [("elsewhere", there) for there in (True, False)]


@pytest.fixture(params=[*PLACES, *(pytest.param(("gpu", there), marks=pytest.mark.gpu) for there in (True, False))])
def graph(request: pytest.FixtureRequest, client: Client, tmp_path: Path) -> Iterator[Ordered]:
    """Groups are to lie elsewhere, or on the GPU; its buckets lie there or on the host."""
    place, there = request.param
    with foreign.with_kernels() if place == "elsewhere" else nullcontext():
        put = kernels.to_device if there else kernels.to_host
        source = open_input(make_settings(str(runs.write_rows(tmp_path / "rows.parquet", ROWS)), str(tmp_path / "out")))
        engine = Engine(client, "run")
        if place == "gpu":
            engine.use("gpu")
        else:
            engine.capacity = replace(engine.capacity, device_bytes=2**30)
        with Events() as events:
            blocks, _ = stages.read(engine, events, source, plan_blocks(source, 100), "refuse", put)
            buckets = stages.number(engine, events, source, blocks, BUCKETS, put)
        engine.keep_apart(3)
        yield put_in_order(engine, buckets.edges, int(buckets.starts[-1]), put)
        engine.abandon()
        engine.end()


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
    """Task: as the group would find them, where it lies."""
    low = kernels.to_device(np.arange(len(rows), dtype=np.int32))
    return Intervals(low, low + np.int32(1))


@pytest.mark.parametrize(("batch", "groups"), [(sharding.BATCH, 2), (1, 3)])
def test_there_and_back(graph: Ordered, monkeypatch: pytest.MonkeyPatch, batch: int, groups: int) -> None:
    monkeypatch.setattr(sharding, "BATCH", batch)
    monkeypatch.setattr(sharding, "LONGEST", 10**6)  # each bucket passes by alone if batches are small
    engine = graph.engine
    with Events() as events:
        shards = sharding.triangulate_shards(engine, events, graph, groups, groups)
    assert 3 * shards.triangles == sum(EXPECTED.values())
    on_host = graph.put is kernels.to_host
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
def test_supports_alone(graph: Ordered, partitions: int) -> None:
    found = by_edge(graph.engine.gather(graph.edges), graph.engine.gather(supports_of(graph, partitions)))
    assert found == {edge: (count, count, count) for edge, count in EXPECTED.items()}
