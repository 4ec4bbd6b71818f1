"""Ids are read exactly, or the message names the location."""

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
from edgemill.tasks.ids.id_types import from_internal, to_internal
from edgemill.tasks.ingest.left_out import refuse_nulls
from edgemill.tasks.ingest.reading import IdRows, read_rows
from edgemill.tasks.inputs.open_source import open_source
from edgemill.tasks.inputs.sources import plan_blocks
from examples import examples


def read(path: Path) -> IdRows:
    source = open_source(str(path))
    (block,) = plan_blocks(source, 1_000)
    return read_rows(source, block)


def refusal(path: Path, found: IdRows) -> str:
    with pytest.raises(InputError) as caught:
        refuse_nulls(str(path), ("src", "dst"), found.left_out)
    return str(caught.value)


def write(path: Path, src: list[Any], dst: list[Any], id_type: pa.DataType, **options: Any) -> None:
    columns = [pa.array(values, id_type) for values in (src, dst)]
    pq.write_table(pa.table(columns, names=["src", "dst"]), path, **options)


@pytest.mark.parametrize(
    ("id_type", "values"),
    [
        ("int8", [-128, 127]),
        ("int64", [-(2**63), 2**53 + 1, 2**63 - 1, 0]),
        ("uint32", [2**32 - 1, 0]),
        ("uint64", [2**63 - 1, 2**53 + 1, 2**64 - 1, 0, 2**63]),
        ("string", ["b", "", "a\0b", "é"]),
        ("large_string", ["b", "a"]),
    ],
)
def test_ids_are_read_exactly(tmp_path: Path, id_type: str, values: list[Any]) -> None:
    write(tmp_path / "a.parquet", values, values[::-1], pa.type_for_alias(id_type), row_group_size=1)
    rows, kind = read(tmp_path), pa.type_for_alias(id_type)
    assert from_internal(rows.source, kind).to_pylist() == values
    assert from_internal(rows.target, kind).to_pylist() == values[::-1]
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
    assert (len(rows.source), len(rows.target), rows.left_out.nulls) == (0, 0, 0)


def test_nulls(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", [1, 2, None, None, 5], [1, 2, 3, None, None], pa.int64(), row_group_size=2)
    rows = read(tmp_path)
    assert (rows.source.tolist(), rows.target.tolist(), rows.left_out.nulls) == ([1, 2], [1, 2], 3)
    assert refusal(tmp_path, rows) == (
        f"3 rows of input '{tmp_path}' have null ids: 2 in column 'src' and 2 in column 'dst'; the first is in "
        f"{tmp_path}/a.parquet: row group 1; leave such rows out with --set input.nulls=drop, or mend them"
    )


IDS = st.one_of(st.none(), st.sampled_from([-(2**63), -1, 0, 2**53 + 1, 2**63 - 1]))  # no float64 holds them all


@given(rows=st.lists(st.tuples(IDS, IDS), min_size=1, max_size=12), group=st.integers(1, 12), text=st.booleans())
@settings(max_examples=examples(100))
def test_nulls_anywhere(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int | None, int | None]], group: int, text: bool
) -> None:
    """All nulls are counted and the first row group with nulls is named. The other ids are exact."""
    path = tmp_path_factory.mktemp("nulls") / "a.parquet"
    ends = [[None if v is None else str(v) if text else v for v in end] for end in zip(*rows, strict=True)]
    write(path, ends[0], ends[1], pa.string() if text else pa.int64(), row_group_size=group)
    kept = [row for row in zip(*ends, strict=True) if None not in row]
    found = read(path)
    assert (list(zip(found.source.tolist(), found.target.tolist(), strict=True)), found.left_out.nulls) == (
        kept,
        len(rows) - len(kept),
    )
    assert (found.left_out.source_nulls, found.left_out.target_nulls) == tuple(end.count(None) for end in ends)
    if found.left_out.nulls:
        first = next(at for at, row in enumerate(rows) if None in row) // group
        assert found.left_out.location == f"{path}: row group {first}"
        assert refusal(path, found).startswith(f"{found.left_out.nulls} row")
    else:
        refuse_nulls(str(path), ("src", "dst"), found.left_out)


def test_a_column_of_nulls_only(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", [None], [None], pa.null())
    write(tmp_path / "b.parquet", ["x"], ["y"], pa.string())
    rows = read(tmp_path)
    assert (rows.source.tolist(), rows.left_out.nulls) == (["x"], 1)


def test_ids_above_the_limit_beside_signed_ones(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", [1, 2, 3], [1, 2, 2**63], pa.uint64(), row_group_size=1)
    write(tmp_path / "b.parquet", [-1], [1], pa.int64())
    message = r"a\.parquet: row group 2: column 'dst' has the id 9223372036854775808, .* int64"
    with pytest.raises(InputError, match=message):
        read(tmp_path)


@pytest.mark.parametrize("kind", [pa.uint64(), pa.binary(16), pa.uuid()], ids=str)
def test_internal_ids_have_the_order_of_ids(kind: pa.DataType) -> None:
    """Internal ids ascend as ids do, and convert back, also for slices and several chunks."""
    numbers = [0, 1, 255, 256, 2**63 - 1, 2**63, 2**64 - 1]
    values = numbers if pa.types.is_integer(kind) else [(number << 64).to_bytes(16, "big") for number in numbers]
    storage = pa.array([values[3], *values], pa.uint64() if pa.types.is_integer(kind) else pa.binary(16))
    whole = pa.ExtensionArray.from_storage(kind, storage) if isinstance(kind, pa.BaseExtensionType) else storage
    found = to_internal(pa.chunked_array([whole.slice(1, 3), whole.slice(4)]), kind)
    assert sorted(found.tolist()) == found.tolist()
    assert from_internal(found, kind).equals(whole.slice(1))
    assert from_internal(found[2:5], kind).equals(whole.slice(3, 3))
    assert from_internal(found[:0], kind).equals(whole.slice(0, 0))
    assert len(to_internal(pa.chunked_array([], kind), kind)) == 0


def test_strings_that_are_not_utf8(tmp_path: Path) -> None:
    bad = pa.Array.from_buffers(pa.string(), 2, pa.array([b"a", b"\xff\xfe"]).buffers())
    pq.write_table(pa.table([bad, bad], names=["src", "dst"]), tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"a\.parquet.*0.*UTF-8"):
        read(tmp_path)


def test_a_damaged_page(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    ids = list(range(500))
    write(path, ids, ids[::-1], pa.int64(), row_group_size=250, write_page_checksum=True)
    group = pq.ParquetFile(path).metadata.row_group(1)
    content = bytearray(path.read_bytes())
    content[group.column(0).data_page_offset + group.column(0).total_compressed_size // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match=re.escape(str(path))):
        read(path)


def test_a_file_that_changed(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", [1], [2], pa.int64())
    source = open_source(str(tmp_path))
    write(tmp_path / "a.parquet", [1, 2], [2, 3], pa.int64())
    with pytest.raises(InputError, match="changed during"):
        read_rows(source, plan_blocks(source, 10)[0])
