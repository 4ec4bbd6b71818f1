"""All tasks on arrays of another type: no step uses a host array, and results are equal."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

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


def answers(ingested: drive.Ingested) -> list[drive.Answers]:
    """Made-up values for each edge, in the memory of the edge."""
    found = []
    for owned in ingested.groups:
        number = np.arange(len(owned), dtype=np.int32, like=owned.row)
        found.append((2 * number, number, number))
    return found


def tables(folder: Path, space: MemorySpace, source: Path, groups: int, buckets: int) -> list[pa.Table]:
    ingested = drive.ingest(
        open_source(str(source)),
        groups,
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
    groups=st.sampled_from([1, 3]),
    buckets=st.sampled_from([1, 2, 5]),
)
@settings(max_examples=examples(100))
def test_tables_are_equal_for_foreign_arrays(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[int, int]],
    spread: int,
    groups: int,
    buckets: int,
) -> None:
    folder = tmp_path_factory.mktemp("foreign")
    for name in ("in", "here", "there"):
        (folder / name).mkdir()
    ids = np.array(rows, np.int64).reshape(-1, 2) * spread
    for i, (start, stop) in enumerate(pairwise([0, len(ids) // 2, len(ids)])):
        part = pa.table({"src": ids[start:stop, 0], "dst": ids[start:stop, 1]})
        pq.write_table(part, folder / "in" / f"{i}.parquet")
    here = tables(folder / "here", MemorySpace.HOST, folder / "in", groups, buckets)
    with foreign.with_kernels():
        there = tables(folder / "there", MemorySpace.DEVICE, folder / "in", groups, buckets)
    assert there == here


@given(rows=strategies.edge_lists(12), ingested_there=st.booleans())
@settings(max_examples=examples(100))
def test_lambda_is_equal_for_foreign_arrays(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, int]], ingested_there: bool
) -> None:
    """For each method. Edges ingested on the host move to the other memory for triangles and λ, and results move
    back.
    """
    folder = tmp_path_factory.mktemp("foreign")
    ids = np.array(rows, np.int64).reshape(-1, 2)
    pq.write_table(pa.table({"src": ids[:, 0], "dst": ids[:, 1]}), folder / "0.parquet")
    source = open_source(str(folder))
    here = drive.ingest(source, buckets=2)
    expected = bounding.band(drive.subgraph(here.owned))
    with foreign.with_kernels():
        there = drive.ingest(source, buckets=2, space=MemorySpace.DEVICE) if ingested_there else here
        subgraph = drive.subgraph(owned_to_device(there.owned))
        assert not kernels.on_host(subgraph.first_counts())
        for method in bounding.ANYWHERE.values():
            one = method(subgraph)
            assert not kernels.on_host(one.low)
            found = move_arrays(one, MemorySpace.HOST)
            assert found.low.tolist() == found.high.tolist() == expected.low.tolist()
