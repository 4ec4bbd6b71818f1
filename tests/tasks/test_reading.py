"""Ids as they were written, or a message that names the place."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgemill.tasks.errors import InputError
from edgemill.tasks.reading import IdRows, Nulls, read_rows
from edgemill.tasks.sources import open_source, plan_blocks
from examples import examples


def read(path: Path, nulls: Nulls = "refuse") -> IdRows:
    source = open_source(str(path))
    (block,) = plan_blocks(source, 1_000)
    return read_rows(source, block, nulls)


def write(path: Path, src: list[Any], dst: list[Any], id_type: pa.DataType, **options: Any) -> None:
    columns = [pa.array(values, id_type) for values in (src, dst)]
    pq.write_table(pa.table(columns, names=["src", "dst"]), path, **options)


@pytest.mark.parametrize(
    ("id_type", "values"),
    [
        ("int8", [-128, 127]),
        ("int64", [-(2**63), 2**53 + 1, 2**63 - 1, 0]),
        ("uint32", [2**32 - 1, 0]),
        ("uint64", [2**63 - 1, 2**53 + 1]),
        ("string", ["b", "", "a\0b", "é"]),
        ("large_string", ["b", "a"]),
    ],
)
def test_ids_come_exactly(tmp_path: Path, id_type: str, values: list[Any]) -> None:
    write(tmp_path / "a.parquet", values, values[::-1], pa.type_for_alias(id_type), row_group_size=1)
    rows = read(tmp_path)
    assert rows.source.tolist() == values
    assert rows.target.tolist() == values[::-1]
    if isinstance(values[0], int):
        assert rows.source.dtype == np.int64


def test_dictionaries_are_read_as_their_values(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", ["b", "a"], ["a", "c"], pa.dictionary(pa.int8(), pa.string()))
    assert read(tmp_path).source.tolist() == ["b", "a"]


def test_mixed_types_over_files(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", [1], [-2], pa.int32())
    write(tmp_path / "b.parquet", [2**40], [3], pa.uint64())
    rows = read(tmp_path)
    assert (rows.source.tolist(), rows.target.tolist()) == ([1, 2**40], [-2, 3])


def test_columns_are_found_by_name_in_every_file(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", [1], [2], pa.int64())
    pq.write_table(pa.table({"weight": [0.5], "dst": [4], "x": [9], "src": [3]}), tmp_path / "b.parquet")
    rows = read(tmp_path)
    assert (rows.source.tolist(), rows.target.tolist()) == ([1, 3], [2, 4])


@pytest.mark.parametrize("id_type", ["int64", "string"])
def test_no_rows(tmp_path: Path, id_type: str) -> None:
    write(tmp_path / "a.parquet", [], [], pa.type_for_alias(id_type))
    rows = read(tmp_path)
    assert (len(rows.source), len(rows.target), rows.nulls) == (0, 0, 0)


def test_nulls(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", [1, 2, None, None, 5], [1, 2, 3, None, None], pa.int64(), row_group_size=2)
    message = r"a\.parquet: row group 1 has null ids: 2 in column 'src' and 1 in column 'dst'; set input.nulls"
    with pytest.raises(InputError, match=message):
        read(tmp_path)
    rows = read(tmp_path, "drop")
    assert (rows.source.tolist(), rows.target.tolist(), rows.nulls) == ([1, 2], [1, 2], 3)


IDS = st.one_of(st.none(), st.sampled_from([-(2**63), -1, 0, 2**53 + 1, 2**63 - 1]))  # no float64 holds them all


@given(rows=st.lists(st.tuples(IDS, IDS), min_size=1, max_size=12), group=st.integers(1, 12), text=st.booleans())
@settings(max_examples=examples(100))
def test_nulls_anywhere(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int | None, int | None]], group: int, text: bool
) -> None:
    """The first row group that has some is named, with their number; without them ids are exact."""
    path = tmp_path_factory.mktemp("nulls") / "a.parquet"
    ends = [[None if v is None else str(v) if text else v for v in end] for end in zip(*rows, strict=True)]
    write(path, ends[0], ends[1], pa.string() if text else pa.int64(), row_group_size=group)
    kept = [row for row in zip(*ends, strict=True) if None not in row]
    found = read(path, "drop")
    assert (list(zip(found.source.tolist(), found.target.tolist(), strict=True)), found.nulls) == (
        kept,
        len(rows) - len(kept),
    )
    if found.nulls:
        first = next(at for at, row in enumerate(rows) if None in row) // group
        counts = [end[first * group : (first + 1) * group].count(None) for end in ends]
        told = " and ".join(f"{n} in column '{name}'" for n, name in zip(counts, ("src", "dst"), strict=True) if n)
        with pytest.raises(InputError, match=re.escape(f"{path}: row group {first} has null ids: {told}; set")):
            read(path)


def test_a_column_of_nulls_only(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", [None], [None], pa.null())
    write(tmp_path / "b.parquet", ["x"], ["y"], pa.string())
    rows = read(tmp_path, "drop")
    assert (rows.source.tolist(), rows.nulls) == (["x"], 1)


def test_ids_above_the_limit(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", [1, 2, 3], [1, 2, 2**63], pa.uint64(), row_group_size=1)
    message = r"a\.parquet: row group 2: column 'dst' has the id 9223372036854775808, above 2\^63-1"
    with pytest.raises(InputError, match=message):
        read(tmp_path)


def test_strings_that_are_no_text(tmp_path: Path) -> None:
    bad = pa.Array.from_buffers(pa.string(), 2, pa.array([b"a", b"\xff\xfe"]).buffers())
    pq.write_table(pa.table([bad, bad], names=["src", "dst"]), tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"a\.parquet: row groups 0: ids are not UTF-8 text"):
        read(tmp_path)


def test_a_damaged_page(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    ids = list(range(500))
    write(path, ids, ids[::-1], pa.int64(), row_group_size=250, write_page_checksum=True)
    group = pq.ParquetFile(path).metadata.row_group(1)
    content = bytearray(path.read_bytes())
    content[group.column(0).data_page_offset + group.column(0).total_compressed_size // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match=re.escape(f"{path}: row group 1 cannot be read")):
        read(path)


def test_a_file_that_changed(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", [1], [2], pa.int64())
    source = open_source(str(tmp_path))
    write(tmp_path / "a.parquet", [1, 2], [2, 3], pa.int64())
    with pytest.raises(InputError, match="changed during the run"):
        read_rows(source, plan_blocks(source, 10)[0])
