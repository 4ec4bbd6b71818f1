"""What a plan chooses and refuses; and that more buckets than partitions change nothing of a result but its files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from edgemill.pipeline import OutOfRoom, mine
from edgemill.pipeline import plan as plan_module
from edgemill.pipeline.config import make_settings
from edgemill.pipeline.engine import Capacity
from edgemill.pipeline.plan import make_plan, open_input, plan_run
from edgemill.pipeline.plan_text import describe
from edgemill.tasks.generate import generate


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rows")
    generate("rmat", str(folder), files=2, seed=5, scale=10, edge_factor=8)
    return folder


@pytest.mark.parametrize(
    ("partitions", "threads", "buckets"), [(1, 1, 2), (1, 3, 6), (1, 100, 8), (7, 3, 7), (9, 4, 9)]
)
def test_buckets(rows: Path, monkeypatch: pytest.MonkeyPatch, partitions: int, threads: int, buckets: int) -> None:
    monkeypatch.setattr("edgemill.pipeline.plan.MIN_BUCKET_ROWS", 1000)  # of 8,192 rows
    settings = make_settings(str(rows), "out", partitions=partitions)
    plan = plan_run(settings, open_input(settings), Capacity(1, threads, 0))
    assert plan.buckets == buckets
    assert replace(plan, capacity=Capacity(2, threads, 0)).buckets == max(partitions, min(4 * threads, 8))


def test_few_rows_have_a_bucket_for_each_partition(rows: Path) -> None:
    assert make_plan(make_settings(str(rows), "out", partitions=1)).buckets == 1


def test_the_same_rows_in_more_files(rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = mine(rows, tmp_path / "plain", partitions=1)
    monkeypatch.setattr("edgemill.pipeline.plan.MIN_BUCKET_ROWS", 1000)
    spread = mine(rows, tmp_path / "spread", partitions=1, cluster={"threads_per_worker": 2})
    assert spread.edges.to_table() == plain.edges.to_table()
    assert spread.vertices.to_table() == plain.vertices.to_table()
    assert (len(plain.manifest.outputs), len(spread.manifest.outputs)) == (2, 8)
    assert len(spread.manifest.partitions) == 1


@pytest.mark.parametrize(
    ("partitions", "what"),
    [
        (1, r"1 of 1 partitions at once and has 345\.00 MiB: raise partitioning\.count, give"),
        (100, r"1 of 1 blocks, of up to 8,192 rows, at once and has 345\.00 MiB: lower ingest\.rows_per_block"),
    ],
)
def test_what_cannot_fit_is_refused(rows: Path, partitions: int, what: str) -> None:
    settings = make_settings(str(rows), "out", partitions=partitions)
    source = open_input(settings)
    plan = plan_run(settings, source, Capacity(1, 2, plan_module.WORKER_BYTES))
    with pytest.raises(OutOfRoom, match=rf"a worker would need about 34\d\.\d+ MiB for {what}"):
        plan.refuse_if_hopeless()
    plan_run(settings, source, Capacity(1, 2, plan.worker_bytes)).refuse_if_hopeless()


@pytest.mark.parametrize(
    ("device_bytes", "kind", "there"),
    [(10**9, "integer", True), (10**5, "integer", False), (10**9, "string", False), (0, "integer", False)],
)
def test_ingest_on_a_gpu(
    rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, device_bytes: int, kind: str, there: bool
) -> None:
    """Integers that fit are cleaned there, in a bucket a partition, which several files are written from."""
    monkeypatch.setattr("edgemill.pipeline.plan.MIN_BUCKET_ROWS", 1000)
    if kind == "string":
        table = pa.concat_tables([pq.read_table(path) for path in sorted(rows.glob("*.parquet"))])
        pq.write_table(table.cast(pa.schema({"src": pa.string(), "dst": pa.string()})), tmp_path / "a.parquet")
    settings = make_settings(str(tmp_path / "a.parquet" if kind == "string" else rows), "out", partitions=2)
    plan = plan_run(settings, open_input(settings), Capacity(1, 3, 0, device_bytes))
    assert plan.ingest_on_device is there
    assert (plan.buckets, plan.files) == ((2, 3) if there else (6, 1))
    assert (plan.partition_bytes == 0) is there
    assert ("rows cleaned and numbered there" in describe(plan)) is there
