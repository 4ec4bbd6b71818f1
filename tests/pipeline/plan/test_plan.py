"""What a plan chooses and refuses; and that more buckets than partitions change nothing of a result but its files."""

from __future__ import annotations

import json
import re
import shutil
import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import runs
from edgemill.pipeline import InputError, OutOfRoom, UsageError, mine
from edgemill.pipeline.cli.documents import plan_document
from edgemill.pipeline.cluster.connecting.local import WORKER_BYTES
from edgemill.pipeline.cluster.execution import Capacity
from edgemill.pipeline.inputs.input_object import open_input
from edgemill.pipeline.output.manifest import Manifest
from edgemill.pipeline.plan import choice as planning
from edgemill.pipeline.plan import plan as plan_module
from edgemill.pipeline.plan.choice import make_plan, plan_run
from edgemill.pipeline.plan.fit import describe, refuse_if_too_large
from edgemill.pipeline.settings.models import MAX_PARTITIONS
from edgemill.pipeline.settings.sources import make_settings
from edgemill.pipeline.stages import ingesting, limits
from edgemill.pipeline.stages.ingesting import block_bytes
from edgemill.tasks.estimate.estimate import Estimate, estimate
from edgemill.tasks.generate import generate


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rows")
    generate("rmat", str(folder), files=2, seed=5, scale=10, edge_factor=8)
    return folder


@pytest.mark.parametrize(
    ("partitions", "threads", "buckets"), [(1, 1, 4), (1, 3, 4), (1, 6, 6), (1, 100, 8), (7, 3, 7), (9, 4, 9)]
)
def test_buckets(rows: Path, monkeypatch: pytest.MonkeyPatch, partitions: int, threads: int, buckets: int) -> None:
    monkeypatch.setattr("edgemill.pipeline.plan.plan.MIN_BUCKET_ROWS", 1000)  # of 8,192 rows
    settings = make_settings(str(rows), "out")
    plan = plan_run(settings, open_input(settings), Capacity(1, threads, 0, in_process=True))
    plan = replace(plan, partitions=partitions)
    assert plan.buckets == buckets
    # Tasks of other processes exchange more slowly, so a bucket has two threads.
    assert replace(plan, capacity=Capacity(1, threads, 0)).buckets == max(partitions, min(max(threads // 2, 4), 8))
    assert replace(plan, capacity=Capacity(2, threads, 0)).buckets == max(partitions, min(max(threads, 4), 8))


def test_no_more_buckets_or_partitions_than_can_be_told_apart(rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many workers there are: what numbers them is an int16."""
    monkeypatch.setattr("edgemill.pipeline.plan.plan.MIN_BUCKET_ROWS", 0.1)  # of 8,192 rows
    settings = make_settings(str(rows), "out", partitions=MAX_PARTITIONS)
    plan = plan_run(settings, open_input(settings), Capacity(5_000, 16, 0))
    assert plan.source.rows // 0.1 > limits.MOST_BUCKETS == plan.buckets == np.iinfo(np.int16).max
    assert plan.partitions == MAX_PARTITIONS < limits.MOST_BUCKETS
    monkeypatch.setattr("edgemill.pipeline.plan.choice.LEAST_EDGES", 1)
    plan = plan_run(make_settings(str(rows), "out"), plan.source, Capacity(5_000, 8, 0))
    assert (plan.partitions, plan.band_workers) == (1, 5_000)
    plan = plan_run(
        make_settings(str(rows), "out"), plan.source, Capacity(5_000, 8, int(plan.worker_bytes / limits.FILL) - 1000)
    )
    assert (plan.in_shards, plan.partitions, plan.shards) == (True, MAX_PARTITIONS, 8 * MAX_PARTITIONS)
    with pytest.raises(UsageError, match=r"partitioning\.count: .* 1 to 4096"):
        make_settings(str(rows), "out", partitions=MAX_PARTITIONS + 1)


def test_memory_of_a_block_by_kind_of_id(tmp_path: Path) -> None:
    """Integers near each other have a table, those far apart a hash table of the distinct ones, strings their bytes."""
    numbers = np.random.default_rng(1).integers(0, 500, (2, 4000))
    columns = {"near": numbers, "apart": numbers * 2**40 - 2**50, "text": numbers.astype("U") + "-" * 17}
    found = {}
    for name, (src, dst) in columns.items():
        pq.write_table(pa.table({"src": pa.array(src), "dst": pa.array(dst)}), tmp_path / f"{name}.parquet")
        plan = make_plan(make_settings(str(tmp_path / f"{name}.parquet"), str(tmp_path / "out"), device="cpu"))
        found[name] = block_bytes(plan.source, plan.graph, 4000)
        assert (plan.graph.id_span > 0) is (name != "text")
        assert plan.reading_bytes == int(block_bytes(plan.source, plan.graph, 4000, plan_module.IN_PROCESS_FACTOR))
        assert replace(plan, capacity=Capacity(1, 1, 0)).reading_bytes == int(found[name])
    assert found["near"] == 4000 * ingesting.ROW_BYTES
    assert found["apart"] == pytest.approx(found["near"] + ingesting.HASHED_BYTES * 500, rel=0.01)
    text, pages = 4000 * 2 * 20, ingesting.TEXT_PAGE_COPIES * 2 * ingesting.TEXT_PAGE_ROWS * 20
    coded = ingesting.TEXT_CODING_COPIES * (text + 4000 * 2 * 8)
    expected = 4000 * ingesting.TEXT_ROW_BYTES + coded + ingesting.TEXT_FETCHED * text + pages
    assert found["text"] == pytest.approx(expected, rel=0.02)


def test_what_is_read_is_left_to_dask(rows: Path) -> None:
    """Of blocks it spills what is kept, strings too, which never lie in files; partitions are what goes in waves."""
    settings = make_settings(str(rows), "out", partitions=1)
    source = open_input(settings)
    free = plan_run(settings, source, Capacity(1, 1, 0))
    figures = replace(free.graph, id_bytes=100_000.0)
    limit = int((WORKER_BYTES + free._share_bytes) / limits.FILL) + 1
    plan = replace(free, graph=figures, capacity=Capacity(1, 1, limit))
    assert plan.unspilled_bytes > limits.FILL * limit
    assert plan.spilled_bytes > 0
    assert not plan.in_waves
    assert replace(plan, capacity=Capacity(1, 1, limit - 1000)).in_waves


def test_smaller_blocks_where_memory_is_short(rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many threads as there are read one at a time; a GPU, and no limit, have the blocks that are asked for."""
    monkeypatch.setattr("edgemill.pipeline.plan.choice.MIN_BLOCK_ROWS", 100)
    settings = make_settings(str(rows), "out")
    source = open_input(settings)

    def most(threads: int, memory: int, device: int = 0) -> int:
        capacity = Capacity(1, threads, memory, device)
        figures = plan_run(settings, source, capacity).graph
        return planning._rows_per_block(3000, source, figures, capacity)

    def by_default(workers: int, device: int) -> int:
        monkeypatch.setattr("edgemill.pipeline.plan.choice.BLOCK_ROWS", 1000)
        monkeypatch.setattr("edgemill.pipeline.plan.choice.GPU_BLOCK_ROWS", 2000)
        monkeypatch.setattr("edgemill.pipeline.plan.choice.MOST_GPU_BLOCK_ROWS", 1500)
        capacity = Capacity(workers, 1, 0, device)
        return planning._rows_per_block(None, source, plan_run(settings, source, capacity).graph, capacity)

    room = int((WORKER_BYTES + 1600 * ingesting.ROW_BYTES) / limits.FILL)
    assert most(1, 0) == most(1, 2**40) == 3000
    assert most(1, room) == 1500
    assert most(2, room) == 750
    assert most(1, WORKER_BYTES) == 100
    assert most(1, room, 2**30) == 3000
    own = by_default(1, 0), by_default(2, 0), by_default(1, 2**36), by_default(2, 2**36)
    assert own == (1000, 1000, 1500, 2000)


def test_few_rows_have_a_bucket_for_each_partition(rows: Path) -> None:
    assert make_plan(make_settings(str(rows), "out", partitions=1)).buckets == 1


def test_the_same_rows_in_more_files(rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = mine(rows, tmp_path / "plain", partitions=1)
    monkeypatch.setattr("edgemill.pipeline.plan.plan.MIN_BUCKET_ROWS", 1000)
    spread = mine(rows, tmp_path / "spread", partitions=1, cluster={"threads_per_worker": 2})
    assert spread.edges.to_table() == plain.edges.to_table()
    assert spread.vertices.to_table() == plain.vertices.to_table()
    assert (len(plain.manifest.outputs), len(spread.manifest.outputs)) == (5, 20)
    assert len(spread.manifest.partitions) == 1


@pytest.mark.parametrize(
    ("partitions", "method", "what"),
    [
        ("auto", "band", r"one of 1 partitions at once and has 305\.\d\d MiB: use bounding\.method=peel, give"),
        (1, "peel", r"1 of 1 blocks, of up to 8,192 rows, at once and has 305\.\d\d MiB: lower ingest\.rows_per_block"),
    ],
)
def test_what_cannot_fit_is_refused(rows: Path, partitions: Any, method: str, what: str) -> None:
    settings = make_settings(str(rows), "out", partitions=partitions, method=method)
    source = open_input(settings)
    plan = plan_run(settings, source, Capacity(1, 2, WORKER_BYTES))
    with pytest.raises(OutOfRoom, match=rf"MiB.*{what}"):
        refuse_if_too_large(plan)
    refuse_if_too_large(plan_run(settings, source, Capacity(1, 2, plan.worker_bytes)))
    with pytest.raises(OutOfRoom, match=r"305\.00 MiB.*300"):
        refuse_if_too_large(plan_run(settings, source, Capacity(1, 2, 300)))


@pytest.mark.parametrize("in_process", [True, False])
def test_text_ids_take_memory_beside_the_graph(tmp_path: Path, in_process: bool) -> None:
    """While the tables are written a worker holds the names of its vertices, of the rows it writes, and the graph."""
    ends = [[f"{end}{number:039}" for number in range(30_000)] for end in "ab"]
    pq.write_table(pa.table(dict(zip(("src", "dst"), ends, strict=True))), tmp_path / "rows.parquet")
    settings = make_settings(str(tmp_path / "rows.parquet"), "out", partitions=1)
    plan = plan_run(settings, open_input(settings), Capacity(1, 1, 0, in_process=in_process))
    names, rows = 60_000 * (40 + 8), 2 * 30_000 * 40
    graph = plan.edges * (plan_module.EDGE_BYTES if in_process else plan_module.WORKER_EDGE_BYTES)
    graph += 60_000 * (plan_module.VERTEX_BYTES if in_process else plan_module.WORKER_VERTEX_BYTES)
    expected = graph + plan_module.ID_COPIES * names + plan_module.TEXT_COPIES * rows
    assert plan.unspilled_bytes - plan._idle_bytes == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize("disk", [None, 10**12, 1000])
@pytest.mark.parametrize("share", [0.3, 0.9, 1.0, 1.2, 1.9])
def test_a_plan_says_of_itself_what_the_run_does(rows: Path, share: float, disk: int | None) -> None:
    """It is not tight, and refused then."""
    settings = make_settings(str(rows), "out", partitions=1)
    source = open_input(settings)
    needed = plan_run(settings, source, Capacity(1, 2, 0)).worker_bytes
    plan = replace(plan_run(settings, source, Capacity(1, 2, int(share * needed))), disk_bytes=disk)
    try:
        refuse_if_too_large(plan)
        expected = {"yes", "tight"}
    except OutOfRoom:
        expected = {"no"}
    (said,) = (line.split()[1].strip(":") for line in describe(plan).splitlines() if line.startswith("fits"))
    assert said in expected
    document = plan_document(plan)
    assert (document["fits"], document["tight"] is not None) == (said == "yes", said == "tight")


@pytest.mark.parametrize(("workers", "more"), [(1, "start more workers"), (3, r"raise partitioning\.count")])
def test_shards_that_cannot_fit_are_refused(
    rows: Path, monkeypatch: pytest.MonkeyPatch, workers: int, more: str
) -> None:
    """Even with their rows in files."""
    monkeypatch.setattr("edgemill.pipeline.stages.ingesting.ROW_BYTES", 0)
    settings = make_settings(str(rows), "out", partitions=1)
    plan = plan_run(settings, open_input(settings), Capacity(workers, 2, WORKER_BYTES))
    assert (plan.shards, plan.on_disk) == (2, True)
    told = rf"MiB for one of 1 groups of shards at once and has 305\.00 MiB: {more}, give workers more memory"
    with pytest.raises(OutOfRoom, match=told):
        refuse_if_too_large(plan)


def test_shards_on_gpus_that_may_fit_are_not_refused(rows: Path) -> None:
    """Memory is tight. What does not fit is refused, if shards are equal and nothing is in reserve."""
    settings = make_settings(str(rows), "out", partitions=2)
    source = open_input(settings)
    wide = plan_run(settings, source, Capacity(2, 2, 0, 2**40))
    assert wide.in_shards and wide.fits_device() and wide.may_fit_device()
    tight = replace(wide, capacity=replace(wide.capacity, device_bytes=wide.device_bytes))
    assert not tight.fits_device()
    assert "tight" in describe(tight)
    refuse_if_too_large(tight)
    over = replace(wide, capacity=replace(wide.capacity, device_bytes=wide.device_bytes // 2))
    with pytest.raises(OutOfRoom, match="1 of 2 shards"):
        refuse_if_too_large(over)


def test_too_many_edges_for_one_partition_are_refused(rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edgemill.pipeline.plan.plan.MAX_LOCAL_EDGES", 2000)
    monkeypatch.setattr("edgemill.pipeline.plan.fit.MAX_LOCAL_EDGES", 2000)
    settings = make_settings(str(rows), "out", method="band")
    plan = plan_run(settings, open_input(settings), Capacity(1, 1, 0))
    told = r"of 1 partitions would hold about \d,\d{3} edges, over the 2,000 allowed: use bounding\.method=peel$"
    with pytest.raises(OutOfRoom, match=told):
        refuse_if_too_large(plan)
    settings = make_settings(str(rows), "out", partitions=2)
    for workers, more in ((2, "start more workers"), (3, "raise partitioning.count")):
        plan = plan_run(settings, open_input(settings), Capacity(workers, 1, 0))
        told = rf"of 2 groups of shards would hold about \d,\d{{3}} edges, over the 2,000 allowed: {re.escape(more)}$"
        with pytest.raises(OutOfRoom, match=told):
            refuse_if_too_large(plan)


def test_a_result_that_its_disk_cannot_hold_is_refused(rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free = shutil.disk_usage("/")._replace(free=1000)
    monkeypatch.setattr("edgemill.pipeline.plan.choice.shutil.disk_usage", lambda folder: free)
    settings = make_settings(str(rows), "out")
    plan = plan_run(settings, open_input(settings), Capacity(1, 1, 0))
    with pytest.raises(OutOfRoom, match=r"kiB.*0.98 kiB"):
        refuse_if_too_large(plan)
    assert plan_run(make_settings(str(rows), "s3://bucket/out"), plan.source, plan.capacity).disk_bytes is None


def test_auto_does_not_split_in_vain(rows: Path) -> None:
    """What a worker takes with nothing to do is too much already."""
    settings = make_settings(str(rows), "out")
    assert plan_run(settings, open_input(settings), Capacity(1, 1, 300 * 2**20)).partitions <= 2


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("count", [0, 1])
def test_next_to_no_rows(tmp_path: Path, count: int, text: bool) -> None:
    ids = pa.array(["a"] * count if text else [1] * count, pa.string() if text else pa.int64())
    pq.write_table(pa.table({"src": ids, "dst": ids}), tmp_path / "a.parquet")
    plan = make_plan(make_settings(str(tmp_path / "a.parquet"), str(tmp_path / "out"), device="cpu", partitions=3))
    refuse_if_too_large(plan)
    assert "edges        ~0, " in describe(plan)


def test_what_is_told(rows: Path, tmp_path: Path) -> None:
    plan = make_plan(make_settings(str(rows), str(tmp_path / "out"), device="cpu", method="band"))
    lines = runs.plan_lines(plan)
    assert lines["sample"] == "all rows read"
    assert re.fullmatch(r"~6,\d\d0, ~9\d% of them in triangles", lines["edges"])
    assert re.match(r"1: one worker ", lines["partitions"])
    assert re.search(r", and 1 that iterates, .*after each checkpoint$", lines["tasks"])
    assert lines["fits"] == "yes"
    part = make_plan(make_settings(str(rows), "out", device="cpu", ingest={"sample_rows": 2048}))
    lines = runs.plan_lines(part)
    assert re.match(r"2,048 of 8,192 rows read: .*estimates; raise ingest\.sample_rows", lines["sample"])
    assert re.fullmatch(r"~\d,\d\d0, from \d,\d\d0 to \d,\d\d0", lines["edges"])


def test_a_run_records_what_was_expected(rows: Path, tmp_path: Path) -> None:
    manifest = mine(rows, tmp_path / "out", device="cpu", partitions=2).manifest
    assert manifest.plan is not None
    assert (manifest.plan.rows_looked_at, manifest.plan.edges) == (manifest.counts.rows, manifest.counts.edges)
    assert manifest.plan.vertices == manifest.counts.vertices
    written = (tmp_path / "out" / "manifest.json").read_text()
    assert '"plan"' in written
    assert Manifest.model_validate(json.loads(written) | {"plan": None}).plan is None  # of an earlier release


def test_the_sample_is_gone_when_rows_are_read(rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is as large as 20 M rows, and in one process it would be so beside all of the run."""
    seen: list[weakref.ref[Estimate]] = []
    when_read: list[bool] = []

    def watched(*given: Any) -> Estimate:
        found = estimate(*given)
        seen.append(weakref.ref(found))
        return found

    read = ingesting.read

    def reading(*given: Any) -> Any:
        when_read.append(seen[0]() is None)
        return read(*given)

    monkeypatch.setattr("edgemill.pipeline.plan.choice.estimate", watched)
    monkeypatch.setattr("edgemill.pipeline.stages.ingesting.read", reading)
    mine(rows, tmp_path / "out", device="cpu", partitions=2)
    assert when_read == [True]


@pytest.mark.parametrize("count", [1, "auto"])
def test_rows_are_not_looked_at_where_they_change_nothing(
    rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int | str
) -> None:
    """One partition, which fits if every row is an edge: the same run, but for what it expected."""
    options: dict[str, Any] = {"device": "cpu", "partitions": count}
    with monkeypatch.context() as patched:
        patched.setattr("edgemill.pipeline.plan.choice.estimate", None)
        manifest = mine(rows, tmp_path / "out", **options).manifest
    looked = make_plan(make_settings(str(rows), str(tmp_path / "other"), **options))
    assert len(manifest.partitions) == looked.partitions == 1
    assert manifest.plan is not None
    assert (manifest.plan.rows_looked_at, manifest.plan.reason) == (0, looked.reason)
    assert manifest.plan.edges == 8192 > manifest.counts.edges
    assert 2**10 >= manifest.plan.vertices > manifest.counts.vertices  # of ids below that
    assert manifest.plan.worker_bytes > looked.unspilled_bytes
    page = (tmp_path / "out" / "report.html").read_text()
    assert "The plan read no row" in page
    assert "at most 8,192" in page


def test_rows_are_looked_at_where_they_may_change_something(
    rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = make_settings(str(rows), str(tmp_path / "out"))
    source = open_input(settings)
    roomy = Capacity(1, 2, 0)
    known = planning.plan_without_sample(settings, source, roomy)
    assert known is not None
    limit = int(known.worker_bytes / limits.FILL)
    assert planning.plan_without_sample(settings, source, Capacity(1, 2, limit + 1)) is not None
    assert planning.plan_without_sample(settings, source, Capacity(1, 2, limit - 1000)) is None
    device = int(known.source.rows * plan_module.GPU_EDGE_BYTES / limits.GPU_FILL)
    assert planning.plan_without_sample(settings, source, Capacity(1, 2, 0, device + 1)) is not None
    assert planning.plan_without_sample(settings, source, Capacity(1, 2, 0, device - 1000)) is None
    several = planning.plan_without_sample(settings, source, Capacity(2, 2, 0))
    assert several is not None
    assert (several.partitions, several.band_workers, several.graph.rows_looked_at) == (1, 1, 0)
    assert planning.plan_without_sample(settings, source, Capacity(2, 2, limit - 1000)) is None
    assert planning.plan_without_sample(make_settings(str(rows), "out", partitions=2), source, roomy) is None
    one = make_settings(str(rows), "out", partitions=1)
    assert planning.plan_without_sample(one, source, Capacity(2, 2, 0)) is not None
    four = make_settings(str(rows), "out", partitions=4)
    on_gpus = planning.plan_without_sample(four, source, Capacity(4, 2, 0, 2**36))
    assert on_gpus is not None
    assert (on_gpus.partitions, on_gpus.in_shards, on_gpus.graph.rows_looked_at) == (4, True, 0)
    too_small = int(on_gpus.device_bytes / limits.GPU_FILL) - 1000
    assert planning.plan_without_sample(four, source, Capacity(4, 2, 0, too_small)) is None
    assert planning.plan_without_sample(four, source, Capacity(4, 2, 0)) is None
    alone = planning.plan_without_sample(settings, source, Capacity(4, 2, 0, device + 1))
    assert alone is not None
    assert alone.partitions == 1
    assert planning.plan_without_sample(settings, source, Capacity(4, 2, 0, device - 1000)) is None
    studied = make_settings(str(rows), "out", method="fixpoint")
    assert planning.plan_without_sample(studied, source, Capacity(4, 2, 0, 2**36)) is None
    free = shutil.disk_usage(tmp_path)._replace(free=known.graph.output_bytes // 2)
    monkeypatch.setattr("edgemill.pipeline.plan.choice.shutil.disk_usage", lambda folder: free)
    assert planning.plan_without_sample(settings, source, roomy) is not None
    free = free._replace(free=known.graph.output_bytes // 2 - 1)
    assert planning.plan_without_sample(settings, source, roomy) is None


def named(rows: Path, path: Path) -> Path:
    """The rows with names for ids, of lengths that differ, in one file."""
    table = pa.concat_tables([pq.read_table(part) for part in sorted(rows.glob("*.parquet"))])
    texts = [[f"user-{value}" + "x" * (value % 20) for value in table[end].to_pylist()] for end in ("src", "dst")]
    pq.write_table(pa.table(texts, names=["src", "dst"]), path, row_group_size=1000)
    return path


def test_rows_of_text_are_not_looked_at_where_they_change_nothing(
    rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The footers have the bytes of all names."""
    path = named(rows, tmp_path / "a.parquet")
    options: dict[str, Any] = {"device": "cpu", "cluster": {"threads_per_worker": 2}}
    with monkeypatch.context() as patched:
        patched.setattr("edgemill.pipeline.plan.choice.estimate", None)
        result = mine(path, tmp_path / "out", **options)
    expected = result.manifest.plan
    looked = make_plan(make_settings(str(path), str(tmp_path / "other"), **options))
    assert expected is not None
    assert (expected.rows_looked_at, expected.reason, expected.edges, expected.vertices) == (
        0,
        looked.reason,
        8192,
        2 * 8192,
    )
    assert expected.worker_bytes > looked.unspilled_bytes
    assert "plan read" in (tmp_path / "out" / "report.html").read_text()
    monkeypatch.setattr("edgemill.pipeline.run.full.plan_without_sample", lambda *_: None)
    sampled = mine(path, tmp_path / "sampled", **options)
    assert sampled.manifest.plan is not None and sampled.manifest.plan.rows_looked_at == 8192
    assert sampled.edges.to_table() == result.edges.to_table()
    assert sampled.vertices.to_table() == result.vertices.to_table()


def test_bounds_of_text_are_no_less_than_what_a_sample_tells(rows: Path, tmp_path: Path) -> None:
    """Memory, and the size of the result. While blocks are read, the sample takes the names of rows to be as long as
    distinct names, and here the names in many rows are shorter. That is when a worker with a GPU takes most memory.
    """
    settings = make_settings(str(named(rows, tmp_path / "a.parquet")), str(tmp_path / "out"))
    source = open_input(settings)
    for capacity in (
        Capacity(1, 2, 0, in_process=True),
        Capacity(1, 2, 0),
        Capacity(2, 2, 0),
        Capacity(1, 2, 0, 2**36),
    ):
        known, sampled = planning.plan_without_sample(settings, source, capacity), plan_run(settings, source, capacity)
        assert known is not None
        assert known.graph.is_bound and not sampled.graph.is_bound
        for name in ("partition_bytes", "unspilled_bytes", "device_bytes"):
            assert getattr(known, name) >= getattr(sampled, name), name
        less = sampled.reading_bytes - known.reading_bytes if capacity.device_bytes else 0
        assert known.worker_bytes >= sampled.worker_bytes - less
        assert sampled.reading_bytes > known.reading_bytes > 0.9 * sampled.reading_bytes
        assert (
            known.graph.id_bytes * known.graph.vertices.most >= sampled.graph.id_bytes * sampled.graph.vertices.likely
        )
        assert known.graph.output_bytes > sampled.graph.output_bytes
        assert (known.buckets, len(known.blocks)) == (sampled.buckets, len(sampled.blocks))


def test_rows_of_text_are_looked_at_where_they_may_change_something(
    rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = make_settings(str(named(rows, tmp_path / "a.parquet")), str(tmp_path / "out"))
    source = open_input(settings)
    known = planning.plan_without_sample(settings, source, Capacity(1, 2, 0))
    assert known is not None
    limit = int(known.worker_bytes / limits.FILL)
    assert planning.plan_without_sample(settings, source, Capacity(1, 2, limit + 1)) is not None
    assert planning.plan_without_sample(settings, source, Capacity(1, 2, limit - 1000)) is None
    unknown = replace(source, most_id_bytes=None)
    assert planning.plan_without_sample(settings, unknown, Capacity(1, 2, 0)) is None
    prefixed = make_settings(settings.input.path, "out", input={"bipartite": "prefix"})
    assert planning.plan_without_sample(prefixed, open_input(prefixed), Capacity(1, 2, 0)) is None
    table = pq.read_table(tmp_path / "a.parquet")
    (tmp_path / "a.csv").write_text("\n".join(map(",".join, zip(*table.to_pydict().values(), strict=True))))
    lines = make_settings(str(tmp_path / "a.csv"), "out")
    assert planning.plan_without_sample(lines, open_input(lines), Capacity(1, 2, 0)) is None
    monkeypatch.setattr("edgemill.tasks.inputs.formats.statistics._SIZES", 10**6)  # as earlier writers leave them out
    assert planning.plan_without_sample(settings, open_input(settings), Capacity(1, 2, 0)) is None


@pytest.mark.parametrize(("workers", "threads", "files"), [(1, 1, 3), (1, 2, 3), (1, 3, 6), (2, 2, 3)])
def test_files_written_beside_a_gpu(
    rows: Path, monkeypatch: pytest.MonkeyPatch, workers: int, threads: int, files: int
) -> None:
    """Each thread that writes has equally many files; a worker of several threads keeps one for other tasks."""
    monkeypatch.setattr("edgemill.pipeline.plan.plan.MIN_BUCKET_ROWS", 1000)
    settings = make_settings(str(rows), "out", partitions=workers)
    plan = plan_run(settings, open_input(settings), Capacity(workers, threads, 0, 10**9))
    assert (plan.buckets, plan.files) == (workers, files)


@pytest.mark.parametrize(
    ("device_bytes", "kind", "there"),
    [(10**9, "integer", True), (10**5, "integer", False), (10**9, "string", True), (0, "integer", False)],
)
def test_ingest_on_a_gpu(
    rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, device_bytes: int, kind: str, there: bool
) -> None:
    """Rows that fit are cleaned there, in a bucket a partition, which several files are written from."""
    monkeypatch.setattr("edgemill.pipeline.plan.plan.MIN_BUCKET_ROWS", 1000)
    if kind == "string":
        table = pa.concat_tables([pq.read_table(path) for path in sorted(rows.glob("*.parquet"))])
        pq.write_table(table.cast(pa.schema({"src": pa.string(), "dst": pa.string()})), tmp_path / "a.parquet")
    settings = make_settings(str(tmp_path / "a.parquet" if kind == "string" else rows), "out", partitions=2)
    plan = plan_run(settings, open_input(settings), Capacity(1, 3, 0, device_bytes, in_process=True))
    assert plan.ingest_on_device is there
    assert (plan.buckets, plan.files) == ((2, 3) if there else (4, 1))
    assert (plan.partition_bytes == 0) is there
    assert ("numbered there" in describe(plan)) is there


def test_what_is_wrong_with_the_rows_ends_a_run_whose_workers_have_started(
    rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def looking(*_: Any) -> Estimate:
        raise InputError("bad rows")

    monkeypatch.setattr("edgemill.pipeline.plan.choice.estimate", looking)
    with pytest.raises(InputError, match="bad rows"):
        mine(rows, tmp_path / "out", device="cpu", partitions=2)
    assert not (tmp_path / "out").exists()


def test_names_that_are_too_long_or_too_many_for_the_memory_are_refused(tmp_path: Path) -> None:
    """By their length with exit code 3, by their bytes with exit code 7, before anything runs."""

    def planned(length: int, memory: int) -> None:
        names = [chr(97 + i) * length for i in range(20)]
        pq.write_table(pa.table({"src": names[:10] * 20, "dst": names[10:] * 20}), tmp_path / "names.parquet")
        settings = make_settings(str(tmp_path / "names.parquet"), str(tmp_path / "out"), device="cpu")
        refuse_if_too_large(plan_run(settings, open_input(settings), Capacity(1, 1, memory, in_process=True)))

    planned(2**16, 2**30)
    with pytest.raises(OutOfRoom, match=r"1 of 1 blocks, .* 200 rows, .*lower ingest\.rows_per_block") as refused:
        planned(2**16, WORKER_BYTES + 10 * 2**20)
    assert refused.value.exit_code == 7
    with pytest.raises(InputError, match=r"0.*'src'.*1,000,000") as unusable:
        planned(10**6, 2**30)
    assert unusable.value.exit_code == 3
