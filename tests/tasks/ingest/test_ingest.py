"""The whole chain on drawn and real graphs, against sets and sorting in plain Python."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import drive
import known_graphs
import strategies
from edgemill.tasks import ingest as steps
from edgemill.tasks import messages
from edgemill.tasks.device import MemorySpace
from edgemill.tasks.errors import OutOfRoom
from edgemill.tasks.ids.id_types import to_internal
from edgemill.tasks.ingest import numbering, ownership
from edgemill.tasks.inputs.open_source import open_source
from edgemill.tasks.inputs.sources import Source
from examples import examples

VERTICES = 12
LARGEST_QUICK = 300_000
"""Edges of known graphs that are tried each time."""
Edge = tuple[Any, Any]
INT64 = pa.int64()


def rank(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


@contextmanager
def written(table: pa.Table, files: int, row_group_size: int) -> Iterator[Source]:
    with tempfile.TemporaryDirectory() as folder:
        cuts = np.linspace(0, table.num_rows, files + 1).astype(int)
        for i, (start, stop) in enumerate(pairwise(cuts)):
            pq.write_table(table[start:stop], Path(folder, f"{i}.parquet"), row_group_size=row_group_size)
        yield open_source(folder)


def simple(rows: list[Edge]) -> set[Edge]:
    """The distinct edges without loops, smaller id first."""
    return {(u, v) if rank(u) < rank(v) else (v, u) for u, v in rows if u != v}


def bucket_rows(ingested: drive.Ingested) -> list[list[Edge]]:
    """The edges of each bucket in original ids, row by row."""
    names = [name for ids in ingested.ids for name in ids.ids.tolist()]
    return [
        [
            (names[edges.first + low], names[edges.highs[high]])
            for low, high in zip(edges.low.tolist(), edges.high.tolist(), strict=True)
        ]
        for edges in ingested.edges
    ]


def check(ingested: drive.Ingested, named: list[Edge], id_type: pa.DataType = INT64) -> None:
    """Check all results of ingest against the written rows."""
    ends = [pa.chunked_array([pa.array(end, id_type)]) for end in zip(*named, strict=True)]
    rows = list(zip(*(to_internal(end, id_type).tolist() for end in ends), strict=True))
    edges = simple(rows)
    names = [name for ids in ingested.ids for name in ids.ids.tolist()]
    assert names == sorted({end for row in rows for end in row}, key=rank)
    per_bucket = bucket_rows(ingested)
    assert [edge for bucket in per_bucket for edge in bucket] == sorted(edges, key=lambda e: (rank(e[0]), rank(e[1])))

    assert ingested.rows.rows == len(rows)
    assert ingested.rows.self_loops == sum(u == v for u, v in rows)
    repeated = ingested.rows.duplicates + sum(bucket.duplicates for bucket in ingested.edges)
    assert repeated == sum(u != v for u, v in rows) - len(edges)

    degree = Counter(end for edge in edges for end in edge)
    assert [d for bucket in ingested.degrees for d in bucket.degree.tolist()] == [degree[name] for name in names]
    in_degree_order = sorted(names, key=lambda name: (degree[name], rank(name)))

    owned = ingested.owned
    assert (np.diff(owned.rank) == 1).all()
    local = [in_degree_order[r] for r in owned.rank.tolist()]
    low = np.repeat(np.arange(len(local)), np.diff(owned.offsets))
    assert set(low.tolist()) | set(owned.high.tolist()) == set(range(len(local)))
    pairs = list(zip(low.tolist(), owned.high.tolist(), strict=True))
    assert pairs == sorted(set(pairs))
    assert all(a < b for a, b in pairs)
    came: list[Edge] = []
    for (a, b), bucket, row in zip(pairs, owned.bucket.tolist(), owned.row.tolist(), strict=True):
        assert set(per_bucket[bucket][row]) == {local[a], local[b]}
        came.append(per_bucket[bucket][row])
    assert sorted(came) == sorted(edges)


@given(
    rows=strategies.edge_lists(VERTICES),
    naming=strategies.namings(VERTICES),
    buckets=st.sampled_from([1, 2, 3, 7]),
    files=st.integers(1, 3),
    row_group_size=st.integers(1, 50),
    rows_per_block=st.integers(1, 50),
)
@settings(max_examples=examples(300))
def test_drawn_graphs(
    rows: list[tuple[int, int]],
    naming: strategies.Naming,
    buckets: int,
    files: int,
    row_group_size: int,
    rows_per_block: int,
) -> None:
    with written(naming.table(rows), files, row_group_size) as source:
        ingested = drive.ingest(source, buckets=buckets, rows_per_block=rows_per_block)
        again = drive.ingest(source)
    assert source.id_type == naming.type
    check(ingested, [(naming.names[u], naming.names[v]) for u, v in rows], naming.type)
    one, other = ingested.owned, again.owned  # they do not depend on blocks, buckets or files
    np.testing.assert_array_equal(one.rank, other.rank)
    np.testing.assert_array_equal(one.offsets, other.offsets)
    np.testing.assert_array_equal(one.high, other.high)


EXOTIC: dict[str, list[Any]] = {
    "string": ["", "\0", "a", "a\0", "a\0b", "é", "\uffff", "\U0001f600", "long" * 10_000, "long" * 10_000 + "er"],
    "int64": [-(2**63), -(2**63) + 1, -(2**53) - 1, -1, 0, 1, 2**53, 2**53 + 1, 2**63 - 2, 2**63 - 1],
}


@pytest.mark.parametrize("buckets", [1, 2, 5, 40])
@pytest.mark.parametrize("kind", EXOTIC)
def test_exotic_ids_in_any_number_of_buckets(tmp_path: Path, kind: str, buckets: int) -> None:
    """Includes more buckets than ids: some buckets are empty."""
    ids = EXOTIC[kind]
    rows = [(u, v) for i, u in enumerate(ids) for v in ids[i:]]
    ends = [pa.array(end, pa.type_for_alias(kind)) for end in zip(*rows[::-1], strict=True)]
    with written(pa.table(ends, names=["src", "dst"]), 2, 10) as source:
        ingested = drive.ingest(source, buckets=buckets, rows_per_block=10)
    check(ingested, rows, pa.type_for_alias(kind))
    assert len(ingested.ids) == buckets


def test_nulls_are_dropped_and_counted(tmp_path: Path) -> None:
    pq.write_table(pa.table({"src": [1, None, 2, 7], "dst": [2, 3, None, 7]}), tmp_path / "a.parquet")
    ingested = drive.ingest(open_source(str(tmp_path)))
    rows = ingested.rows
    assert (rows.rows, rows.nulls, rows.self_loops, rows.duplicates, len(ingested.edges[0])) == (4, 2, 1, 0, 1)
    assert ingested.ids[0].ids.tolist() == [1, 2, 7]  # 3 came with a null only; 7 in a loop only, and has degree 0
    assert ingested.degrees[0].degree.tolist() == [1, 1, 0]


@pytest.mark.parametrize(
    ("module", "what"),
    [
        (numbering, "bucket 0 has 3 edges, over the 2 allowed"),
        (ownership, "the graph has 3 edges, over the 2 that one worker can hold"),
    ],
    ids=["bucket", "own"],
)
def test_too_many_edges_are_refused(monkeypatch: pytest.MonkeyPatch, module: Any, what: str) -> None:
    table = pa.table({"src": [1, 2, 3], "dst": [2, 3, 1]})
    with written(table, 1, 3) as source:
        monkeypatch.setattr(module, "MAX_LOCAL_EDGES", 3)
        assert len(drive.ingest(source).owned) == 3
        monkeypatch.setattr(module, "MAX_LOCAL_EDGES", 2)
        with pytest.raises(OutOfRoom, match=rf"{what}.*partitioning.count"):
            drive.ingest(source)


def test_received_arrays_are_not_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    table = pa.table({"src": rng.integers(0, 50, 400), "dst": rng.integers(0, 50, 400)})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=100)

    def frozen(receiver: int, bundles: Any) -> Any:
        mail = messages.collect(receiver, bundles)
        for payload in mail.values():
            for array in [payload] if isinstance(payload, np.ndarray) else vars(payload).values():
                if isinstance(array, np.ndarray):
                    array.flags.writeable = False
        return mail

    monkeypatch.setattr(drive, "collect", frozen)
    for buckets in (1, 3):
        check(
            drive.ingest(open_source(str(tmp_path)), buckets=buckets, rows_per_block=100),
            list(zip(*(table[name].to_pylist() for name in ("src", "dst")), strict=True)),
        )


@pytest.mark.skipif(known_graphs.SKIP_REASON is not None, reason=str(known_graphs.SKIP_REASON))
@pytest.mark.parametrize(
    "graph",
    [
        pytest.param(graph, id=graph.name, marks=[] if graph.edges <= LARGEST_QUICK else [pytest.mark.slow])
        for graph in known_graphs.known_graphs(max_edges=3_000_000)
    ],
)
def test_real_graphs(graph: known_graphs.KnownGraph) -> None:
    ingested = drive.ingest(open_source(str(graph.path)), buckets=7, rows_per_block=300_000)
    assert sum(map(len, ingested.ids)) == graph.vertices
    assert sum(map(len, ingested.edges)) == len(ingested.owned) == graph.edges
    assert ingested.rows.self_loops == graph.self_loops
    assert max(map(len, ingested.edges)) <= 2 * graph.edges / 7


def test_the_largest_bucket_number() -> None:
    """An int16 can store it. The next number raises OverflowError."""
    edge = np.array([0], np.int32)
    parts = {b: steps.EdgeParts(edge + i, edge + 2, edge) for i, b in enumerate((0, 2**15 - 2))}
    owned = steps.collect_owned(MemorySpace.HOST, parts)
    assert owned.bucket.tolist() == [0, 2**15 - 2]
    assert owned.rank.tolist() == [0, 1, 2]
    with pytest.raises(OverflowError):
        steps.collect_owned(MemorySpace.HOST, {2**15: parts[0]})
