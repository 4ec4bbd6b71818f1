"""Partitions and buckets stay on their workers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from copy import copy
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from distributed import Client

from edgemill.pipeline import mine
from edgemill.pipeline.cluster.engine import Engine
from edgemill.pipeline.events import Events, Stage
from edgemill.pipeline.stages.ingesting import number
from edgemill.pipeline.stages.task_engine import SequentialEngine
from edgemill.tasks import ingest
from edgemill.tasks.device import MemorySpace
from edgemill.tasks.generate import generate
from edgemill.tasks.ingest import BucketEdges
from edgemill.tasks.ingest.reading import IdRows
from edgemill.tasks.inputs.sources import Source


def test_a_task_runs_where_its_partition_is_kept(two_workers: Client) -> None:
    assert Engine.connect(two_workers, "elsewhere").partition_workers is None
    engine = Engine.connect(two_workers, "homes", pinned_partitions=2)
    assert engine.partition_workers == [0, 1]
    pids = engine.gather(engine.map("pid", os.getpid, [(), ()], engine.partition_workers))
    assert len(set(pids)) == 2
    futures = engine.map("again", os.path.realpath, [("/proc/self",)] * 4, [1, 0, 1, 0])
    assert engine.gather(futures) == [f"/proc/{pids[place]}" for place in (1, 0, 1, 0)]
    links = engine.map("links", str, [("/proc/self",)] * 2, [0, 0])
    assert engine.peek(links, os.path.realpath, [0, 1]) == [f"/proc/{pid}" for pid in pids]


def test_tasks_run_where_their_bucket_is(two_workers: Client) -> None:
    engine = Engine.connect(two_workers, "buckets")
    assert engine.bucket_workers(3) == [0, 1, 0]
    capacity = replace(engine.capacity, in_process=True)
    here = replace(engine, execution=replace(engine.execution, capacity=capacity))
    assert here.bucket_workers(3) is None


def test_a_task_reads_parts_of_results_that_are_on_one_worker(
    two_workers: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Engine.connect(two_workers, "looks")
    at = [1, 0, 1, 1, 0, 1, 1]
    futures = engine.map("held", "a".__mul__, [(size,) for size in range(7)], at)
    started: list[int] = []
    own = Engine.map

    def count(self: Engine, name: str, function: Any, arguments: Sequence[Any], *more: Any, **options: Any) -> Any:
        started.append(len(arguments))
        return own(self, name, function, arguments, *more, **options)

    monkeypatch.setattr(Engine, "map", count)
    stage = Stage(Events(), "held", 7)
    assert engine.peek(futures, len, at, stage) == list(range(7))
    assert started == [3]  # at most four results in a task
    assert stage.done == 7
    assert engine.peek(futures, len) == list(range(7))
    assert started == [3, 7]
    assert engine.peek([], len, []) == []


def test_the_workers_that_hold_results(two_workers: Client) -> None:
    engine = Engine.connect(two_workers, "holders")
    at = [1, 0, 0, 1]
    futures = engine.map("held", len, [("a" * size,) for size in range(4)], at)
    assert engine.gather(futures) == [0, 1, 2, 3]
    assert engine.holders(futures) == at
    assert engine.holders([]) == []


def test_packed_rows_are_sorted_where_they_are(two_workers: Client) -> None:
    """As on GPUs: each worker sends the rows of all its blocks once, and nothing else."""
    rng, source = np.random.default_rng(3), Source("rows", (), "src", "dst", pa.int64())
    rows = [IdRows(*rng.integers(0, 300, (2, 500))) for _ in range(5)]
    packed = [block for at, own in enumerate(rows) if (block := ingest.pack(at, own)) is not None]
    engine = Engine.connect(two_workers, "merged")
    started: list[str] = []

    class Seen(Engine):
        def map(self, name: str, *arguments: Any, **options: Any) -> Any:
            started.extend([name] * len(arguments[1]))
            return super().map(name, *arguments, **options)

    seen = Seen(**{field.name: getattr(engine, field.name) for field in fields(engine)})
    blocks = engine.map("rows", copy, [(block,) for block in packed], [0, 1, 1, 0, 1])
    engine.wait(blocks)
    found = number(seen, Events(), source, list(blocks), 2, MemorySpace.HOST)
    assert started.count("send-keys") == 2
    assert not {"sample", "send-ids", "unpack"} & set(started)
    cleaned = [ingest.clean(at, own) for at, own in enumerate(rows)]
    expected = number(SequentialEngine(), Events(), source, list(cleaned), 2, MemorySpace.HOST)
    assert edges_of(engine.gather(found.edges)) == edges_of(expected.edges)
    assert found.duplicates == expected.duplicates + sum(block.duplicates for block in cleaned)


def edges_of(buckets: Sequence[BucketEdges]) -> list[tuple[int, int]]:
    """All edges as dense numbers."""
    ends = [(own.low + own.first, own.highs[own.high]) for own in buckets]
    return [pair for low, high in ends for pair in zip(low.tolist(), high.tolist(), strict=True)]


def test_a_run_whose_buckets_stay_on_their_workers(
    two_workers: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on GPUs. The result is that of a run whose tasks the scheduler places."""
    generate("rmat", str(tmp_path / "rows"), files=3, seed=4, scale=10, edge_factor=8)
    how: dict[str, Any] = {"client": two_workers, "device": "cpu", "partitions": 2}
    plain = mine(tmp_path / "rows", tmp_path / "plain", **how)
    own, placed = Engine.map, {}

    def place(self: Engine, buckets: int) -> list[int]:
        return [(bucket + 1) % 2 for bucket in range(buckets)]

    def see(
        self: Engine,
        name: str,
        function: Any,
        arguments: Sequence[Any],
        at: Sequence[int] | None = None,
        soon: bool = False,
    ) -> Any:
        if name in ("ids", "sums", "results", "write-edges", "write-vertices") and not soon:
            placed[name] = (at, len(arguments))
        return own(self, name, function, arguments, at, soon)

    monkeypatch.setattr(Engine, "bucket_workers", place)
    monkeypatch.setattr(Engine, "map", see)
    found = mine(tmp_path / "rows", tmp_path / "out", **how)
    for name in ("edges", "vertices", "hierarchy", "dn_graphs", "dn_graph_members"):
        assert getattr(found, name).to_table() == getattr(plain, name).to_table()
    assert len(placed) == 5
    for at, tasks in placed.values():
        assert at == [(bucket + 1) % 2 for bucket in range(tasks)]
