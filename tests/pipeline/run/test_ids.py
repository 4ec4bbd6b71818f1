"""Ids of every type come out as they went in, under the input's names and in its types."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations, product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import runs
from edgemill.pipeline import Result
from edgemill.tasks.publish.result_columns import edge_columns

Mine = Callable[..., Result]

CORNERS: list[tuple[str, list[Any]]] = [
    ("int8", [-128, -1, 0, 127]),
    ("int16", [-(2**15), 0, 2**15 - 1]),
    ("int32", [-(2**31), -7, 2**31 - 1]),
    ("int64", [-(2**63), -(2**53) - 1, 0, 2**53 + 1, 2**63 - 1]),
    ("uint8", [0, 1, 255]),
    ("uint16", [0, 2**15, 2**16 - 1]),
    ("uint32", [0, 2**31, 2**32 - 1]),
    ("uint64", [0, 2**53, 2**53 + 1, 2**63 - 1]),
    ("string", ["", "10", "9", "Zoë", "a b"]),
    ("large_string", ["\0", "λ", "\U0001f600", "\ufffd"]),
]


def cases() -> Iterator[object]:
    """Every type in one partition, and some in several, are quick."""
    for (name, ids), partitions in product(CORNERS, (1, 3)):
        marks = [] if partitions == 1 or name in ("int64", "uint64", "string") else [pytest.mark.slow]
        yield pytest.param(name, ids, partitions, id=f"{name}-{partitions}", marks=marks)


@pytest.mark.parametrize(("name", "ids", "partitions"), list(cases()))
def test_a_clique_on_the_corners_of_a_type(
    tmp_path: Path, mined: Mine, name: str, ids: list[Any], partitions: int
) -> None:
    id_type = pa.type_for_alias(name)
    rows = [(v, u) for u, v in combinations(ids, 2)] + [(ids[0], ids[0])]
    ends = [pa.array(end, id_type) for end in zip(*rows, strict=True)]
    pq.write_table(pa.table(ends, names=["from", "to"]), tmp_path / "rows.parquet")
    result = mined(tmp_path / "rows.parquet", partitions=partitions)
    edges, vertices = result.edges.to_table(), result.vertices.to_table()
    assert [(field.name, field.type) for field in edges.schema] == [
        ("from", id_type),
        ("to", id_type),
        *((own.name, own.type) for own in edge_columns(True)),
    ]
    assert [(field.name, field.type) for field in vertices.schema] == [
        ("id", id_type),
        ("degree", pa.int64()),
        ("triangles", pa.int64()),
        ("lambda", pa.int32()),
        ("component", pa.int64()),
    ]
    in_order = sorted(ids, key=lambda value: value.encode() if isinstance(value, str) else value)
    pairs = list(combinations(in_order, 2))
    assert list(zip(edges["from"].to_pylist(), edges["to"].to_pylist(), strict=True)) == pairs
    assert set(edges["lambda"].to_pylist()) == {len(ids) - 2}
    assert vertices["id"].to_pylist() == in_order
    assert set(vertices["degree"].to_pylist()) == {len(ids) - 1}
    members = result.dn_graph_members.to_table()
    assert (members["vertex"].type, members["vertex"].to_pylist()) == (id_type, in_order)
    assert result.manifest.input.id_type == name


@pytest.mark.parametrize(
    ("first", "second", "common"),
    [
        ("int32", "int64", "int64"),
        ("uint64", "int8", "int64"),
        ("uint8", "uint32", "uint32"),
        ("int8", "uint8", "int16"),
    ],
)
def test_files_of_different_widths(tmp_path: Path, mined: Mine, first: str, second: str, common: str) -> None:
    folder = tmp_path / "rows"
    folder.mkdir()
    runs.write_rows(folder / "a.parquet", [(1, 2), (100, 2)], pa.type_for_alias(first))
    runs.write_rows(folder / "b.parquet", [(100, 1), (2, 1)], pa.type_for_alias(second))
    result = mined(folder, partitions=2)
    assert runs.column(result, "lambda") == {(1, 2): 1, (1, 100): 1, (2, 100): 1}
    assert result.edges.schema.field("src").type == pa.type_for_alias(common)
    assert [file.rows for file in result.manifest.input.files] == [2, 2]
    assert result.manifest.counts.duplicates == 1


def test_columns_that_are_named_and_others_beside_them(tmp_path: Path, mined: Mine) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"weight": [0.5, 0.1, 0.2], "b": [1, 2, 3], "a": [2, 3, 1]}), path)
    result = mined(path, source_column="a", target_column="b")
    assert result.edges.schema.names == ["a", "b", *runs.EDGE_COLUMNS]
    assert runs.column(result, "lambda") == {(1, 2): 1, (1, 3): 1, (2, 3): 1}
