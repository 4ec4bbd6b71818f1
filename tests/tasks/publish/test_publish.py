"""What partitions found comes out in original ids, sorted, typed, checksummed, and adds up."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import drive
import known_graphs
import strategies
from edge_values import edge_values
from edgemill.pipeline.stages import publishing
from edgemill.pipeline.stages.task_engine import SequentialEngine
from edgemill.tasks.bound.intervals import Intervals
from edgemill.tasks.errors import InternalError, OutOfRoom, UsageError
from edgemill.tasks.ingest import rows_to_publish
from edgemill.tasks.inputs.open_source import open_source
from edgemill.tasks.inputs.sources import Source
from edgemill.tasks.publish import lambda_columns as publish
from edgemill.tasks.publish.columns import EdgeValues, merge_histograms
from edgemill.tasks.publish.result_columns import edge_columns
from edgemill.tasks.publish.tables import write_edges, write_vertices
from edgemill.tasks.publish.writing import OutputFile, TableOptions

LARGEST_QUICK = 100_000
"""Edges of known graphs that are tried each time."""
K4_AND_A_TAIL = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3), (3, 4), (5, 5)]


def edge_source(folder: Path, rows: list[tuple[int, int]], naming: strategies.Naming | None = None) -> Source:
    naming = naming or strategies.Naming(pa.int64(), tuple(range(12)))
    folder.mkdir(exist_ok=True)
    pq.write_table(naming.table(rows), folder / "a.parquet")
    return open_source(str(folder))


def row_numbers(ingested: drive.Ingested) -> list[drive.Answers]:
    """As answers, the position of each edge among all output rows, and intervals that differ from it."""
    first = np.cumsum([0, *map(len, ingested.edges)])
    numbers = [(first[owned.bucket] + owned.row).astype(np.int32) for owned in ingested.groups]
    return [(2 * number, number, number + np.int32(3)) for number in numbers]


def read(folder: Path, files: list[OutputFile]) -> pa.Table:
    return pa.concat_tables([pq.read_table(folder / file.name) for file in files])


@given(
    rows=strategies.edge_lists(12),
    naming=strategies.namings(12),
    partitions=st.sampled_from([1, 2, 7]),
    buckets=st.sampled_from([None, 1, 3]),
    files=st.sampled_from([1, 3]),
)
def test_every_row_comes_back(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[int, int]],
    naming: strategies.Naming,
    partitions: int,
    buckets: int | None,
    files: int,
) -> None:
    folder = tmp_path_factory.mktemp("published")
    source = edge_source(folder / "in", rows, naming)
    ingested = drive.ingest(source, partitions, buckets=buckets)
    published = drive.publish_results(folder, source, ingested, row_numbers(ingested), converged=False, files=files)
    assert len(published.edge_files) == len(published.vertex_files) == files * len(ingested.edges)

    edges = read(folder, published.edge_files)
    names = {name: i for i, name in enumerate(naming.names)}
    ends = [(names[u], names[v]) for u, v in zip(*(edges[c].to_pylist() for c in ("src", "dst")), strict=True)]
    assert {frozenset(end) for end in ends} == {frozenset(row) for row in rows if row[0] != row[1]}
    assert len(ends) == len(set(ends))
    number = list(range(len(ends)))
    assert edges.schema == pa.schema(
        {"src": naming.type, "dst": naming.type, **{own.name: own.type for own in edge_columns(False)}}
    )
    assert edges["support"].to_pylist() == [2 * n for n in number]
    assert edges["lambda_low"].to_pylist() == number
    assert edges["lambda_high"].to_pylist() == [n + 3 for n in number]

    vertices = read(folder, published.vertex_files)
    assert vertices.schema == pa.schema(
        {"id": naming.type, "degree": "i8", "triangles": "i8", "lambda_low": "i4", "lambda_high": "i4"}
    )
    incident = [[n for n in number if names[name] in ends[n]] for name in vertices["id"].to_pylist()]
    assert {names[name] for name in vertices["id"].to_pylist()} == {end for row in rows for end in row}
    assert vertices["degree"].to_pylist() == [len(own) for own in incident]
    assert vertices["triangles"].to_pylist() == [sum(own) for own in incident]
    assert vertices["lambda_low"].to_pylist() == [max(own, default=0) for own in incident]
    assert vertices["lambda_high"].to_pylist() == [max(own) + 3 if own else 0 for own in incident]


@given(
    rows=strategies.edge_lists(12),
    naming=strategies.namings(12),
    partitions=st.sampled_from([1, 2, 7]),
    buckets=st.sampled_from([None, 1, 3]),
    files=st.sampled_from([1, 3]),
    row_group_rows=st.sampled_from([1, 3, 1000]),
    converged=st.booleans(),
)
def test_columns_encoded_early_make_the_same_files(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[int, int]],
    naming: strategies.Naming,
    partitions: int,
    buckets: int | None,
    files: int,
    row_group_rows: int,
    converged: bool,
) -> None:
    folder = tmp_path_factory.mktemp("published")
    source = edge_source(folder / "in", rows, naming)
    ingested = drive.ingest(source, partitions, buckets=buckets)
    late, early = (
        drive.publish_results(
            folder / name,
            source,
            ingested,
            row_numbers(ingested),
            converged,
            files,
            early=name == "early",
            row_group_rows=row_group_rows,
        )
        for name in made(folder, "late", "early")
    )
    assert early.edge_files == late.edge_files
    assert early.vertex_files == late.vertex_files
    for file in early.edge_files:
        content = (folder / "early" / file.name).read_bytes()
        assert (len(content), hashlib.sha256(content).hexdigest()) == (file.bytes, file.sha256)
        assert (
            pq.ParquetFile(folder / "early" / file.name, page_checksum_verification=True).read().num_rows == file.rows
        )


def made(folder: Path, *names: str) -> Iterator[str]:
    """Each of these names, once a folder of this name lies in `folder`."""
    for name in names:
        (folder / name).mkdir()
        yield name


def test_what_lies_on_the_disk(tmp_path: Path) -> None:
    source = edge_source(tmp_path / "in", K4_AND_A_TAIL)
    ingested = drive.ingest(source, 2)
    answers = []
    for owned in ingested.groups:
        rows = zip(owned.bucket.tolist(), owned.row.tolist(), strict=True)
        last = np.array([ingested.edges[b].highs[ingested.edges[b].high[row]] for b, row in rows])
        support = np.where(last == 4, 0, 2).astype(np.int32)
        answers.append((support, support, support))
    published = drive.publish_results(tmp_path, source, ingested, answers)

    assert read(tmp_path, published.edge_files).to_pydict() == {
        "src": [0, 0, 0, 1, 1, 2, 3],
        "dst": [1, 2, 3, 2, 3, 3, 4],
        **{name: values for name, (_, values) in edge_values([2] * 6 + [0], [2] * 6 + [0]).items()},
    }
    assert read(tmp_path, published.vertex_files).to_pydict() == {
        "id": [0, 1, 2, 3, 4, 5],
        "degree": [3, 3, 3, 4, 1, 0],
        "triangles": [3, 3, 3, 3, 0, 0],
        "lambda": [2, 2, 2, 2, 0, 0],
    }
    assert [file.name for file in published.edge_files] == ["edges/part-00000.parquet", "edges/part-00001.parquet"]
    for file in published.edge_files + published.vertex_files:
        content = (tmp_path / file.name).read_bytes()
        assert (file.bytes, file.sha256) == (len(content), hashlib.sha256(content).hexdigest())
        assert pq.ParquetFile(tmp_path / file.name).metadata.num_rows == file.rows
    summaries = published.summaries
    assert sum(summary.edges for summary in summaries) == 7
    assert sum(summary.vertices for summary in summaries) == 6
    assert sum(summary.support for summary in summaries) == 3 * 4
    assert merge_histograms([summary.low for summary in summaries]) == [(0, 1), (2, 6)]


def test_row_groups_and_damage(tmp_path: Path) -> None:
    source = edge_source(tmp_path / "in", K4_AND_A_TAIL)
    ingested = drive.ingest(source)
    zeros: NDArray[np.int32] = np.zeros(7, np.int32)
    results = publish.BucketResults(0, zeros, zeros, zeros)
    names = np.arange(1, 5)
    how = TableOptions(tmp_path, source, row_group_rows=3, compression="none")
    columns = publish.edge_values(results, converged=True)
    file = write_edges(how, ingested.edges[0], ingested.ids[0].ids, names, columns)
    path = tmp_path / file.name
    metadata = pq.ParquetFile(path).metadata
    assert [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)] == [3, 3, 1]
    content = bytearray(path.read_bytes())
    column = metadata.row_group(1).column(1)
    content[column.data_page_offset + column.total_compressed_size - 1] ^= 1
    path.write_bytes(content)
    with pytest.raises(OSError, match="CRC"):
        pq.ParquetFile(path, page_checksum_verification=True).read()


def test_rows_that_are_missing_or_come_twice(tmp_path: Path) -> None:
    ingested = drive.ingest(edge_source(tmp_path / "in", K4_AND_A_TAIL))
    (edges,) = ingested.edges
    zeros: NDArray[np.int32] = np.zeros(7, np.int32)
    part = publish.send_results(rows_to_publish(ingested.owned), zeros, zeros, zeros).parts[0]
    broken: list[dict[int, Any]] = [
        {},
        {0: part, 1: part},
        {0: replace(part, row=zeros)},
        {0: EdgeValues(part.row[1:], {name: zeros[1:] for name in part.columns})},
    ]
    for parts in broken:
        with pytest.raises(InternalError, match=r"bucket 0.*7"):
            publish.collect_results(edges, parts)


def test_where_nothing_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = edge_source(tmp_path / "in", K4_AND_A_TAIL)
    ingested = drive.ingest(source)
    vertices = publish.BucketVertices(0, np.zeros(6, np.int64), np.zeros(6, np.int64), *[np.zeros(6, np.int32)] * 2)
    columns = publish.vertex_columns(vertices, None, converged=True)

    def write(folder: Path) -> None:
        write_vertices(TableOptions(folder, source), 0, ingested.ids[0].ids, columns)

    gone = tmp_path / "of a run that failed"
    with pytest.raises(UsageError, match="cannot write"):
        write(gone)
    assert not gone.exists()
    (tmp_path / "vertices").touch()
    with pytest.raises(UsageError, match=r"write.*part-00000"):
        write(tmp_path)
    (tmp_path / "vertices").unlink()

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutOfRoom, match="room left"):
        write(tmp_path)


@pytest.mark.skipif(known_graphs.SKIP_REASON is not None, reason=str(known_graphs.SKIP_REASON))
@pytest.mark.parametrize("partitions", [1, 7])
@pytest.mark.parametrize(
    "graph",
    [
        pytest.param(graph, id=graph.name, marks=[] if graph.edges <= LARGEST_QUICK else [pytest.mark.slow])
        for graph in known_graphs.known_graphs(max_edges=600_000, with_lambda=True)
    ],
)
def test_known_answers_come_back(tmp_path: Path, graph: known_graphs.KnownGraph, partitions: int) -> None:
    source = open_source(str(graph.path))
    ingested = drive.ingest(source, partitions, rows_per_block=100_000)
    low, high, lam = graph.lambda_table()
    first = np.cumsum([0, *map(len, ingested.edges)])
    answers = []
    for owned in ingested.groups:
        found = lam[first[owned.bucket] + owned.row]
        answers.append((2 * found, found, found))
    published = drive.publish_results(tmp_path, source, ingested, answers)
    edges = read(tmp_path, published.edge_files)
    for column, expected in (("src", low), ("dst", high), ("lambda", lam), ("support", 2 * lam)):
        np.testing.assert_array_equal(edges[column].to_numpy(), expected)
    vertices = read(tmp_path, published.vertex_files)
    assert vertices.num_rows == graph.vertices
    assert int(vertices["degree"].to_numpy().sum()) == 2 * graph.edges
    assert int(vertices["triangles"].to_numpy().sum()) == 2 * graph.lambda_sum
    assert max(vertices["lambda"].to_pylist()) == graph.lambda_max
    histogram = merge_histograms([summary.high for summary in published.summaries])
    assert sum(value * count for value, count in histogram) == graph.lambda_sum
    assert histogram[-1][0] == graph.lambda_max


@given(rows=strategies.edge_lists(12), buckets=st.integers(1, 4), known=st.booleans())
def test_results_that_buckets_take_from_the_only_partition(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, int]], buckets: int, known: bool
) -> None:
    """One bucket after the other, as where a GPU has no room for a bundle: equal to an exchange."""
    ingested = drive.ingest(edge_source(tmp_path_factory.mktemp("rows") / "in", rows), 1, buckets=buckets)
    owned = ingested.owned
    numbers = np.arange(len(owned), dtype=np.int32)
    subgraph = SimpleNamespace(support=2 * numbers)
    ends = Intervals(numbers, numbers if known else numbers + np.int32(3))
    partitions = publishing.Partitions([rows_to_publish(owned)], ingested.degrees)
    found, expected = (
        publishing.collect_results(SequentialEngine(), ingested.buckets, partitions, [subgraph], [ends], in_parts)
        for in_parts in (True, False)
    )
    assert len(found) == len(ingested.edges)
    for own, other in zip(found, expected, strict=True):
        assert (own.high is own.low) is (other.high is other.low)
        for name, values in other.columns.items():
            assert (own.columns[name].dtype, own.columns[name].tolist()) == (values.dtype, values.tolist())
