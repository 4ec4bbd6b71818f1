"""Whole runs on a GPU, against the CPU and known answers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from edgemill.pipeline import ClusterLost, InputError, OutOfRoom, mine
from edgemill.pipeline.cluster.connecting.start import connect
from edgemill.pipeline.cluster.engine import Engine
from edgemill.pipeline.settings.models import ClusterSettings
from edgemill.tasks.generate import generate
from known_graphs import FACEBOOK

pytestmark = pytest.mark.gpu


WAYS: list[tuple[Any, str]] = [(1, "peel"), (3, "peel"), (8, "peel"), ("auto", "fixpoint")]


@pytest.mark.parametrize(("count", "method"), WAYS)
def test_equal_to_the_cpu(rows: Path, tmp_path: Path, count: Any, method: Any) -> None:
    results = [
        mine(rows, tmp_path / "cpu", device="cpu", partitions=1),
        mine(rows, tmp_path / "gpu", device="gpu", partitions=count, method=method),
    ]
    assert results[0].edges.to_table() == results[1].edges.to_table()
    assert results[0].vertices.to_table() == results[1].vertices.to_table()
    for table in ("hierarchy", "dn_graphs", "dn_graph_members"):
        assert getattr(results[0], table).to_table() == getattr(results[1], table).to_table()
    assert results[0].manifest.device == "cpu"
    manifest = results[1].manifest
    assert "NVIDIA" in manifest.device
    assert manifest.bounding.method == method
    assert (manifest.bounding.shards is not None) is (count in (3, 8))


@pytest.mark.parametrize("partitions", [3, 8])
def test_shards_on_one_gpu(rows: Path, tmp_path: Path, partitions: int) -> None:
    """One shard in each group. Together they store every edge with triangles once for each of its ends."""
    manifest = mine(rows, tmp_path / "out", device="gpu", partitions=partitions).manifest
    shards = manifest.bounding.shards
    assert shards is not None
    assert (manifest.bounding.method, shards.shards, shards.groups) == ("peel", partitions, partitions)
    assert shards.exchanges >= shards.rounds >= manifest.bounding.steps > 0
    assert shards.alarms > 0 and shards.bytes > 0 and shards.busiest >= 1
    assert len(manifest.partitions) == partitions
    (exchange,) = manifest.exchanges
    assert exchange.messages == shards.alarms + shards.reports + shards.grants
    assert (exchange.settled, exchange.unsettled) == (sum(own.owned for own in manifest.partitions), 0)


@pytest.fixture(scope="module")
def named(rows: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    table = pa.concat_tables([pq.read_table(path) for path in sorted(rows.glob("*.parquet"))])
    names = [pc.binary_join_element_wise("v", column.cast(pa.string()), "") for column in table.columns]
    path = tmp_path_factory.mktemp("named") / "named.parquet"
    pq.write_table(pa.table(names, table.column_names), path, row_group_size=10_000)
    return path


@pytest.mark.parametrize("partitions", [1, 2])
@pytest.mark.parametrize("directed", [False, True])
def test_positions_of_strings_are_on_the_gpu(
    named: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, partitions: int, directed: bool
) -> None:
    """Names stay in host memory. Files are written from positions in them, several for each bucket."""
    monkeypatch.setattr("edgemill.pipeline.plan.plan.MIN_BUCKET_ROWS", 20_000)
    results = [
        mine(named, tmp_path / device, device=device, partitions=partitions, directed=directed)
        for device in ("cpu", "gpu")
    ]
    for table in ("edges", "vertices", "hierarchy", "dn_graphs", "dn_graph_members"):
        assert getattr(results[0], table).to_table() == getattr(results[1], table).to_table(), table


def test_columns_of_strings_are_kept_apart_on_the_gpu(named: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="both in column"):
        mine(named, tmp_path / "out", device="gpu", bipartite="refuse")


def test_strings_with_attributes_and_programs_on_the_gpu(named: Path, tmp_path: Path) -> None:
    """Ids in columns of results, and columns of a table of vertices."""
    ids = pc.unique(pa.chunked_array([*pq.read_table(named)["src"].chunks, *pq.read_table(named)["dst"].chunks]))
    vertices = tmp_path / "vertices.parquet"
    pq.write_table(pa.table({"id": ids, "length": pc.utf8_length(ids)}), vertices)
    cpu, gpu = (
        mine(named, tmp_path / device, device=device, vertices=vertices, programs=["lambda", "components", "pagerank"])
        for device in ("cpu", "gpu")
    )
    assert cpu.edges.to_table() == gpu.edges.to_table()
    left, right = (own.vertices.to_table().drop_columns("pagerank") for own in (cpu, gpu))
    assert left == right and "weak_component" in left.column_names
    assert cpu.attributes.to_table() == gpu.attributes.to_table()


def test_a_graph_with_known_answers(tmp_path: Path) -> None:
    manifest = mine(FACEBOOK, tmp_path / "out", device="gpu").manifest
    assert (manifest.counts.edges, manifest.counts.triangles, manifest.lam.max) == (88234, 1612010, 95)


def test_a_limit_ends_with_intervals(rows: Path, tmp_path: Path) -> None:
    exact = mine(rows, tmp_path / "exact", device="gpu").edges.to_table()["lambda"].to_pylist()
    bounding = {"method": "fixpoint", "max_exchanges": 2}
    cut = mine(rows, tmp_path / "cut", device="gpu", bounding=bounding)
    assert not cut.converged
    table = cut.edges.to_table()
    ends = zip(table["lambda_low"].to_pylist(), exact, table["lambda_high"].to_pylist(), strict=True)
    assert all(low <= value <= high for low, value, high in ends)


def test_results_are_spilled_to_the_host(rows: Path, tmp_path: Path) -> None:
    """Without room on the GPU, each result is moved to the host's memory, and back for the tasks that need it."""
    here = mine(rows, tmp_path / "here", device="gpu", partitions=1)
    limit = {"device": "gpu", "device_memory_limit_bytes": 1}
    for name, how in (("peel", {"partitions": 3}), ("fixpoint", {"method": "fixpoint"})):
        spilled = mine(rows, tmp_path / name, cluster=limit, **how)
        assert spilled.edges.to_table() == here.edges.to_table()


def test_out_of_device_memory(tmp_path: Path) -> None:
    import cupy

    generate("rmat", str(tmp_path / "rows"), files=3, seed=4, scale=16, edge_factor=16)
    pool = cupy.get_default_memory_pool()
    pool.free_all_blocks()
    pool.set_limit(size=pool.total_bytes() + 2**24)
    try:
        with pytest.raises(OutOfRoom, match="task ran"):
            mine(tmp_path / "rows", tmp_path / "out", device="gpu", partitions=1)
    finally:
        pool.set_limit(size=0)
    assert not (tmp_path / "out").exists()


def test_a_gpu_too_small(rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edgemill.pipeline.plan.plan.GPU_EDGE_BYTES", 10**9)
    monkeypatch.setattr("edgemill.pipeline.stages.gpu_memory.COMPACT_EDGE_BYTES", 10**9)
    with pytest.raises(
        OutOfRoom,
        match=r"largest of 1 partitions .* GPU of .*: start more workers, .*device=.cpu.",
    ):
        mine(rows, tmp_path / "out", device="gpu", partitions=1)


def test_an_illegal_address(rows: Path, tmp_path: Path) -> None:
    """A kernel with an illegal write ends its worker. The next worker repeats the task, and can run whole runs."""

    def stray(file: str) -> int:  # defined here, as workers cannot import this module
        import cupy
        import numpy as np

        if not file or not os.path.exists(file):
            if file:
                with open(file, "w") as made:
                    made.write(str(os.getpid()))
            kernel = cupy.RawKernel('extern "C" __global__ void stray(int* place) { *place = 1; }', "stray")
            kernel((1,), (1,), (np.uint64(64),))  # an unmapped address; the error is raised at the next synchronization
        return os.getpid()

    with connect(ClusterSettings(device="gpu", workers=1)) as client:
        engine = Engine.connect(client, "stray", "gpu")
        assert "NVIDIA" in engine.execution.device
        holding = engine.for_partitions()
        (pid,) = holding.gather([holding.submit("stray", stray, str(tmp_path / "pid"))])
        left = int((tmp_path / "pid").read_text())
        assert pid != left
        assert not os.path.exists(f"/proc/{left}")
        result = mine(rows, tmp_path / "gpu", client=client, device="gpu")
        with pytest.raises(ClusterLost, match=r"broke.*cudaErrorIllegalAddress"):
            holding.gather([holding.submit("stray", stray, "")])
    assert result.edges.to_table() == mine(rows, tmp_path / "cpu", device="cpu").edges.to_table()
