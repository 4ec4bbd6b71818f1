"""Shards on a cluster of two processes: supports, edges of groups, and results in buckets."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distributed import Client

import runs
from backends import kernel_types
from edgemill.kernels.runtime.warm import warm
from edgemill.pipeline.cluster.engine import Engine, Future
from edgemill.pipeline.events import Events
from edgemill.pipeline.inputs.input_object import open_input
from edgemill.pipeline.settings.sources import make_settings
from edgemill.pipeline.stages import ingesting, sharding
from edgemill.pipeline.stages.partitioning import OrderedGraph, order_by_degree
from edgemill.pipeline.stages.sharding import make_batches, positions_in_batches
from edgemill.tasks.bound.intervals import Intervals
from edgemill.tasks.device import MemorySpace
from edgemill.tasks.errors import InternalError
from edgemill.tasks.inputs.sources import plan_blocks
from edgemill.tasks.shards import supports
from edgemill.tasks.shards.supports import TriangleSums
from oracles import brute_force_support, simple_edges

ROWS = sorted(
    simple_edges(
        [
            *combinations(range(25), 2),
            *((25, leaf) for leaf in range(26, 60)),
            *map(tuple, np.random.default_rng(2).integers(20, 80, (300, 2)).tolist()),
        ]
    )
)
EXPECTED = brute_force_support(ROWS)
BUCKETS = 4


@pytest.fixture(params=["two processes", "one process", pytest.param("files", marks=pytest.mark.slow)])
def graph(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OrderedGraph]:
    client: Client = request.getfixturevalue("client" if request.param == "one process" else "two_workers")
    path = runs.write_rows(tmp_path / "rows.parquet", ROWS)
    settings = make_settings(str(path), str(tmp_path / "out"))
    source = open_input(settings)
    in_files: dict[str, Any] = {"results_in_files": True, "partitions_at_once": 1} if request.param == "files" else {}
    engine = Engine.connect(client, "run", pinned_partitions=3, **in_files)
    with Events() as events:
        blocks, _ = ingesting.read(engine, events, source, plan_blocks(source, 100), "refuse", MemorySpace.HOST)
        buckets = ingesting.number(engine, events, source, blocks, BUCKETS, MemorySpace.HOST)
    yield order_by_degree(engine, buckets.edges, int(buckets.starts[-1]), MemorySpace.HOST)
    engine.session.release_all()
    engine.session.close()


def by_edge(graph: OrderedGraph, results: list[Future]) -> dict[tuple[int, int], tuple[int, int, int]]:
    """Support, and λ from and to, of each edge; ids are dense numbers here."""
    found: dict[tuple[int, int], tuple[int, int, int]] = {}
    for edges, own in zip(graph.engine.gather(graph.edges), graph.engine.gather(results), strict=True):
        ends = zip((edges.low + edges.first).tolist(), edges.highs[edges.high].tolist(), strict=True)
        found.update(
            zip(ends, zip(own.support.tolist(), own.low.tolist(), own.high.tolist(), strict=True), strict=True)
        )
    return found


@pytest.mark.parametrize(("batch", "groups"), [(sharding.MIN_BATCH_EDGES, 2), (1, 3)])
def test_there_and_back(graph: OrderedGraph, monkeypatch: pytest.MonkeyPatch, batch: int, groups: int) -> None:
    monkeypatch.setattr(sharding, "MIN_BATCH_EDGES", batch)
    monkeypatch.setattr(sharding, "MAX_GROUP_SHARE", 10**6)  # each bucket passes by alone if batches are small
    engine = graph.engine
    with Events() as events:
        shards = sharding.triangulate_shards(engine, events, graph, groups, 2 * groups)
        assert [stage.stage for stage in events.stages] == ["triangulate"]
    assert 3 * shards.triangles == sum(EXPECTED.values())
    closed = sum(1 for count in EXPECTED.values() if count)
    parts = engine.gather(shards.edges)
    rows = engine.gather(shards.rows)
    assert [own.edges for own in parts] == [closed] * groups
    assert sum(own.owned for own in shards.counts) == closed == sum(map(len, rows))
    assert sum(own.entries for own in shards.counts) == 2 * closed
    assert [own.bytes for own in shards.counts] == [12 * len(own.low) for own in parts]
    # As if the λ of each edge were its number among those of its group, and not known to 1.
    numbers = [np.arange(len(own), dtype=np.int32) for own in rows]
    states = engine.map("states", Intervals, [(low, low + 1) for low in numbers])
    found = by_edge(graph, sharding.collect_intervals(engine, shards.rows, shards.supports, states))
    assert {edge: support for edge, (support, _, _) in found.items()} == EXPECTED
    answers = sorted((low, high) for support, low, high in found.values() if support)
    assert answers == sorted((i, i + 1) for own in rows for i in range(len(own)))
    assert {(low, high) for support, low, high in found.values() if not support} == {(0, 0)}


def test_supports_alone(graph: OrderedGraph) -> None:
    engine = graph.engine
    counted = engine.gather(sharding.count_supports_by_shards(graph, 3))
    found: dict[tuple[int, int], int] = {}
    for edges, own in zip(engine.gather(graph.edges), counted, strict=True):
        ends = zip((edges.low + edges.first).tolist(), edges.highs[edges.high].tolist(), strict=True)
        found.update(zip(ends, own.support.tolist(), strict=True))
    assert found == EXPECTED


def test_few_tasks_for_a_small_graph(graph: OrderedGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks: dict[str, int] = {}
    start = Engine._start

    def started(self: Engine, name: str, function: Any, arguments: Any, *more: Any, **named: Any) -> list[Future]:
        tasks[name] = tasks.get(name, 0) + len(arguments)
        return start(self, name, function, arguments, *more, **named)

    monkeypatch.setattr(Engine, "_start", started)
    sharding.count_supports_by_shards(graph, 2)
    assert (tasks["stream"], tasks["count-closed"], tasks["partial"], tasks["add-partials"]) == (BUCKETS, 2, 2, 1)


def test_warm_workers_compile_nothing(graph: OrderedGraph, request: pytest.FixtureRequest) -> None:
    client: Client = request.getfixturevalue("client" if graph.engine.shares_memory else "lasting")
    assert isinstance(graph.engine, Engine)
    graph.engine.on_every_worker(warm, "peel", 2)
    before = client.run(kernel_types)
    sharding.count_supports_by_shards(graph, 2)
    assert client.run(kernel_types) == before


@pytest.mark.parametrize("graph", ["one process"], indirect=True)  # others have modules of their own
def test_a_lost_triangle_is_noticed(graph: OrderedGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    count = supports.count_streams

    def one_less(*given: Any) -> TriangleSums:
        found = count(*given)
        return TriangleSums(found.sums, found.partial, found.triangles - 1)

    monkeypatch.setattr(supports, "count_streams", one_less)
    with pytest.raises(InternalError, match="supports add"):
        sharding.count_supports_by_shards(graph, 2)


def test_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharding, "MIN_BATCH_EDGES", 10)
    sizes = [4, 6, 1, 30, 0, 10, 2]
    batches = make_batches(sizes, 100)
    assert batches == [[0, 1], [2], [3], [4, 5], [6]]
    assert positions_in_batches(batches, sizes) == [(0, 0), (0, 4), (1, 0), (2, 0), (3, 0), (3, 0), (4, 0)]
    assert make_batches(sizes, 1) == [[0, 1, 2], [3], [4, 5, 6]]
    assert make_batches([0, 0], 1) == [[0, 1]]
