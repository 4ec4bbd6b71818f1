"""One cluster for all runs of the tests; and made-up results, so that what reads and shows a result needs no run."""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from distributed import Client

import runs
from edgemill.pipeline import Result, mine
from edgemill.pipeline.output.manifest import (
    BoundingRecord,
    Counts,
    ExchangeRecord,
    InputFile,
    InputRecord,
    LambdaRecord,
    Manifest,
    OutputRecord,
    PartitionRecord,
    StageRecord,
    versions,
    write_manifest,
)

WriteResult = Callable[..., Manifest]
Mine = Callable[..., Result]


def _table(folder: Path, name: str, columns: dict[str, list[int]]) -> OutputRecord:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.table(columns), path)
    content = path.read_bytes()
    rows = len(next(iter(columns.values())))
    return OutputRecord(path=name, rows=rows, bytes=len(content), sha256=hashlib.sha256(content).hexdigest())


def _write_result(folder: Path, **changes: Any) -> Manifest:
    """A triangle on 1, 2, 3 in two partitions, written to `folder` with its manifest."""
    folder.mkdir(parents=True, exist_ok=True)
    if changes.get("converged") is False:
        changes = {"lambda_high": LambdaRecord(max=2, sum=6, histogram=[(2, 3)])} | changes
    edges = [
        {"src": [1, 1], "dst": [2, 3], "support": [1, 1], "lambda": [1, 1]},
        {"src": [2], "dst": [3], "support": [1], "lambda": [1]},
    ]
    outputs = [_table(folder, f"edges/part-0000{part}.parquet", columns) for part, columns in enumerate(edges)]
    vertices = {"id": [1, 2, 3], "degree": [2, 2, 2], "triangles": [1, 1, 1], "lambda": [1, 1, 1]}
    outputs.append(_table(folder, "vertices/part-00000.parquet", vertices))
    started = datetime(2026, 11, 1, 12, tzinfo=UTC)
    parts = [PartitionRecord(partition=part, owned=2 - part, inner=0, cut=2 - part, vertices=3) for part in (0, 1)]
    exchange = ExchangeRecord(
        exchange=1, step=1, open_bands=1, settled=3, unsettled=0, messages=2, bytes=64, evaluations=3, seconds=0.02
    )
    record = Manifest(
        run="20261101T120000-abcdef",
        versions=versions(),
        settings={"input": {"path": "edges.parquet"}},
        started=started,
        finished=started + timedelta(seconds=1.5),
        input=InputRecord(
            files=[InputFile(path="edges.parquet", bytes=100, rows=5)],
            id_type="int64",
            source_column="src",
            target_column="dst",
        ),
        counts=Counts(rows=5, self_loops=1, duplicates=1, nulls_dropped=0, edges=3, vertices=3, triangles=1),
        partitions=parts,
        how_bounded=BoundingRecord(method="band", steps=1, exchanges=1, evaluations=3),
        exchanges=[exchange],
        stages=[StageRecord(stage="read", seconds=0.5), StageRecord(stage="bound", seconds=1.0)],
        lambda_low=LambdaRecord(max=1, sum=3, histogram=[(1, 3)]),
        converged=True,
        outputs=outputs,
    ).model_copy(update=changes)
    write_manifest(folder, record)
    return record


@pytest.fixture
def write_result() -> WriteResult:
    return _write_result


@pytest.fixture(scope="session")
def client() -> Iterator[Client]:
    """A worker with two threads inside this process."""
    with runs.cluster(n_workers=1, processes=False, threads_per_worker=2) as client:
        yield client


@pytest.fixture(scope="session")
def lasting() -> Iterator[Client]:
    with runs.two_processes() as client:
        yield client


@pytest.fixture
def two_workers(lasting: Client) -> Iterator[Client]:
    """Two worker processes that outlive the tests on them: none ends them, or leaves anything there."""
    yield lasting
    runs.assert_nothing_left(lasting)


@pytest.fixture
def mined(client: Client, tmp_path: Path) -> Mine:
    """`mine` on the shared cluster into a new folder; fails if the run leaves anything behind but its result.

    Without reports, which take longer than most of the graphs here; test_report.py is about them.
    """
    numbers = itertools.count()

    def run(rows: str | os.PathLike[str], **settings: Any) -> Result:
        place = tmp_path / f"run {next(numbers)}"
        result = mine(rows, place / "out", client=client, **{"output.report": False} | settings)
        assert [entry.name for entry in place.iterdir()] == ["out"]
        dense = {"hierarchy", "dn_graphs", "dn_graph_members"} if result.converged else set()
        names = {"edges", "vertices", "manifest.json", "log.jsonl"} | dense
        assert {entry.name for entry in result.path.iterdir()} - {"report.html"} == names
        runs.assert_nothing_left(client)
        return result

    return run
