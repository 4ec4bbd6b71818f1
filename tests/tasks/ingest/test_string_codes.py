"""Strings coded in parts equal strings coded at once, in bounded memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgemill.tasks.errors import InputError
from edgemill.tasks.ingest import blocks, reading
from edgemill.tasks.ingest.blocks import StringCodes, clean, read_block
from edgemill.tasks.ingest.left_out import LeftOut
from edgemill.tasks.ingest.reading import IdRows, read_batches, read_rows
from edgemill.tasks.inputs.open_source import open_source
from edgemill.tasks.inputs.sources import plan_blocks
from edgemill.tasks.publish import tables
from examples import examples

ROWS = st.lists(st.tuples(st.text(max_size=3), st.text(max_size=3)), max_size=20)


def as_rows(rows: list[tuple[str, str]], nulls: int = 0) -> IdRows:
    first, second = (pa.array([row[end] for row in rows], pa.large_string()) for end in range(2))
    return IdRows(first, second, LeftOut(nulls))


@settings(max_examples=examples(40))
@given(parts=st.lists(ROWS, max_size=6), size=st.sampled_from([1, 40, 10**6]))
def test_coding_in_parts_equals_coding_at_once(parts: list[list[tuple[str, str]]], size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "PART_BYTES", size)
        found = StringCodes()
        for part in parts:
            found.add(as_rows(part, nulls=1))
        ids, first, second = found.end()
    rows = [row for part in parts for row in part]
    assert ids.to_pylist() == sorted({end for row in rows for end in row}, key=str.encode)
    assert [(ids[one].as_py(), ids[other].as_py()) for one, other in zip(first, second, strict=True)] == rows
    assert found.left_out.nulls == len(parts)


def write(path: Path, src: Sequence[str | None], dst: Sequence[str | None], rows: int = 4) -> Path:
    table = pa.table({"from": pa.array(src, pa.string()), "to": pa.array(dst, pa.string())})
    pq.write_table(table, path, row_group_size=rows)
    return path


def test_a_block_read_in_parts_equals_the_block_read_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"vertex {i * 7 % 11}" for i in range(40)]
    source = open_source(str(write(tmp_path / "a.parquet", [*names[1:], None], names, 25)))
    (block,) = plan_blocks(source, 100)
    whole = clean(0, read_rows(source, block))
    monkeypatch.setattr(reading, "BATCH_ROWS", 3)
    monkeypatch.setattr(reading, "TEXT_AHEAD_BYTES", 0)
    monkeypatch.setattr(blocks, "PART_BYTES", 30)
    found = read_block(source, block)
    assert found.ids.to_pylist() == whole.ids.to_pylist()
    assert (found.low.tolist(), found.high.tolist()) == (whole.low.tolist(), whole.high.tolist())
    counted = found.rows, found.self_loops, found.duplicates, found.left_out.nulls
    assert counted == (whole.rows, whole.self_loops, whole.duplicates, whole.left_out.nulls) == (40, 0, counted[2], 1)


@pytest.mark.parametrize("column", ["from", "to"])
def test_an_id_that_is_too_long_is_refused(tmp_path: Path, column: str) -> None:
    """The message has file, row group, column, length and row. Lengths: one byte too many, and a megabyte."""
    for length in (reading.MAX_ID_BYTES + 1, 10**6):
        ends = {"from": ["a", "b", "c", "d", "e", "f"], "to": ["b", "c", "d", "e", "f", "g"]}
        ends[column][5] = "é" + "x" * (length - 2)
        source = open_source(str(write(tmp_path / "a.parquet", ends["from"], ends["to"])))
        what = f"a.parquet: row group 1: column '{column}' has an id of {length:,} bytes, over the 65,536"
        for block in plan_blocks(source, 2):
            if block.number:
                with pytest.raises(InputError, match=what):
                    read_block(source, block)
                with pytest.raises(InputError, match=what):
                    list(read_batches(source, block.pieces[0], 2))


def test_an_id_of_the_maximum_length_is_read(tmp_path: Path) -> None:
    name = "x" * reading.MAX_ID_BYTES
    source = open_source(str(write(tmp_path / "a.parquet", ["a"], [name])))
    assert read_block(source, plan_blocks(source, 1)[0]).ids.to_pylist() == ["a", name]


def test_batches_of_strings_have_as_many_rows_as_their_lengths_allow(tmp_path: Path) -> None:
    """By the footers, which count repeated strings; few rows at once where these do not tell."""
    names = ["x" * 1000, "y" * 1000] * 20_000
    source = open_source(str(write(tmp_path / "a.parquet", names, names, len(names))))
    (block,) = plan_blocks(source, len(names))
    most = reading.TEXT_BATCH_BYTES // 2000
    assert source.most_id_bytes == 1000
    assert [len(part) for part in reading.read_parts(source, block)][:-1] == [most] * (len(names) // most)
    unknown = replace(source, most_id_bytes=None)
    assert {len(part) for part in reading.read_parts(unknown, block)} == {8192, len(names) % 8192}


def test_blocks_of_strings_are_cut_by_bytes(tmp_path: Path) -> None:
    names = [f"{i:01000d}" for i in range(16)]
    source = open_source(str(write(tmp_path / "a.parquet", names, names[::-1])))
    each = source.files[0].id_bytes
    assert len(each) == 4 and all(8000 < size < 16_000 for size in each)
    assert [block.rows for block in plan_blocks(source, 100)] == [16]
    assert [block.rows for block in plan_blocks(source, 100, 2 * max(each))] == [8, 8]
    assert [block.rows for block in plan_blocks(source, 100, 1)] == [4, 4, 4, 4]


def test_rows_of_long_names_are_written_in_smaller_row_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Row groups are cut by the bytes of the strings in their rows, also if few are distinct. Integers are not cut."""
    monkeypatch.setattr(tables, "TEXT_PER_GROUP", 10)
    names, positions = pa.array(["abcdef", "x"], pa.large_string()), np.array([1, 0, 0, 1, 1, 1])
    cut = [(rows.start, rows.stop) for rows in tables.slices_by_text(slice(1, 6), (names, positions))]
    assert cut == [(1, 2), (2, 6)]
    both = tables.slices_by_text(slice(0, 2), (names, positions), (names, positions))
    assert [(rows.start, rows.stop) for rows in both] == [(0, 1), (1, 2)]
    assert list(tables.slices_by_text(slice(0, 6), (np.arange(2), positions))) == [slice(0, 6)]
