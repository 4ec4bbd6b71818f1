"""All tasks on arrays of another type: no step uses a host array, and results are equal."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bounding
import drive
import foreign
import strategies
from edgemill import kernels
from edgemill.tasks.device import MemorySpace, move_arrays
from edgemill.tasks.ingest import owned_to_device
from edgemill.tasks.inputs.open_source import open_source
from edgemill.tasks.publish.writing import OutputFile
from examples import examples

Method: TypeAlias = Literal["range", "hash"]


def answers(ingested: drive.Ingested) -> list[drive.Answers]:
    """Made-up values for each edge, in the memory of the edge."""
    found = []
    for owned in ingested.owned:
        number = np.arange(len(owned), dtype=np.int32, like=owned.high)
        found.append((2 * number, number, number))
    return found


def tables(
    folder: Path, space: MemorySpace, source: Path, partitions: int, buckets: int, method: Method
) -> list[pa.Table]:
    ingested = drive.ingest(
        open_source(str(source)),
        partitions,
        method,
        buckets=buckets,
        rows_per_block=5,
        space=space,
    )
    published = drive.publish_results(folder, open_source(str(source)), ingested, answers(ingested))

    def read(files: list[OutputFile]) -> pa.Table:
        return pa.concat_tables([pq.read_table(folder / file.name) for file in files])

    return [read(published.edge_files), read(published.vertex_files)]


@given(
    rows=strategies.edge_lists(12),
    spread=st.sampled_from([1, 10**6, 2**40]),
    partitions=st.sampled_from([1, 3]),
    buckets=st.sampled_from([1, 2, 5]),
    method=st.sampled_from(["range", "hash"]),
)
@settings(max_examples=examples(100))
def test_tables_are_equal_for_foreign_arrays(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[int, int]],
    spread: int,
    partitions: int,
    buckets: int,
    method: Method,
) -> None:
    folder = tmp_path_factory.mktemp("foreign")
    for name in ("in", "here", "there"):
        (folder / name).mkdir()
    ids = np.array(rows, np.int64).reshape(-1, 2) * spread
    for i, (start, stop) in enumerate(pairwise([0, len(ids) // 2, len(ids)])):
        part = pa.table({"src": ids[start:stop, 0], "dst": ids[start:stop, 1]})
        pq.write_table(part, folder / "in" / f"{i}.parquet")
    here = tables(folder / "here", MemorySpace.HOST, folder / "in", partitions, buckets, method)
    with foreign.with_kernels():
        there = tables(folder / "there", MemorySpace.DEVICE, folder / "in", partitions, buckets, method)
    assert there == here


@given(
    rows=strategies.edge_lists(12),
    partitions=st.sampled_from([1, 3]),
    ingested_there=st.booleans(),
)
@settings(max_examples=examples(100))
def test_lambda_is_equal_for_foreign_arrays(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, int]], partitions: int, ingested_there: bool
) -> None:
    """For each schedule. Edges ingested on the host move to the other memory for triangles and λ, and results move
    back.
    """
    folder = tmp_path_factory.mktemp("foreign")
    ids = np.array(rows, np.int64).reshape(-1, 2)
    pq.write_table(pa.table({"src": ids[:, 0], "dst": ids[:, 1]}), folder / "0.parquet")
    source = open_source(str(folder))
    here = drive.ingest(source, partitions, buckets=2)
    expected = bounding.band(drive.subgraphs(here.owned))
    with foreign.with_kernels():
        there = drive.ingest(source, partitions, buckets=2, space=MemorySpace.DEVICE) if ingested_there else here
        subgraphs = drive.subgraphs([owned_to_device(owned) for owned in there.owned])
        for subgraph in subgraphs:
            assert not kernels.on_host(subgraph.first_counts())
        for schedule in bounding.schedules(partitions):
            for one, other in zip(schedule(subgraphs), expected, strict=True):
                assert not kernels.on_host(one.low)
                found = move_arrays(one, MemorySpace.HOST)
                assert found.low.tolist() == found.high.tolist() == other.low.tolist()
