"""Structs of Thrift's compact protocol keep their bytes when they are read and written."""

from __future__ import annotations

import struct
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgemill.tasks.storage.parquet_checksum import read_footer_bytes
from edgemill.tasks.storage.thrift import Struct, Value, ValueList, read_struct, struct_bytes

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)


def values(deep: int) -> st.SearchStrategy[tuple[int, Any]]:
    plain = [
        st.tuples(st.just(I16), st.integers(-(2**15), 2**15 - 1)),
        st.tuples(st.just(I32), st.integers(-(2**31), 2**31 - 1)),
        st.tuples(st.just(I64), st.integers(-(2**63), 2**63 - 1)),
        st.tuples(st.just(BYTE), st.binary(min_size=1, max_size=1)),
        st.tuples(st.just(DOUBLE), st.floats(allow_nan=False).map(lambda value: struct.pack("<d", value))),
        st.tuples(st.just(BINARY), st.binary(max_size=300)),
    ]
    if not deep:
        return st.one_of(plain)
    nested = [st.tuples(st.just(STRUCT), structs(deep - 1)), st.tuples(st.sampled_from([LIST, SET]), lists())]
    return st.one_of(plain + nested)


def lists() -> st.SearchStrategy[ValueList]:
    numbers = st.lists(st.integers(-(2**31), 2**31 - 1), max_size=40).map(lambda own: ValueList(I32, own))
    flags = st.lists(st.sampled_from([b"\x01", b"\x02"]), max_size=40).map(lambda own: ValueList(TRUE, own))
    texts = st.lists(st.binary(max_size=5), max_size=20).map(lambda own: ValueList(BINARY, own))
    return st.one_of(numbers, flags, texts)


def structs(deep: int = 2) -> st.SearchStrategy[Struct]:
    flags = st.sampled_from([TRUE, FALSE]).map(lambda kind: Value(kind, None))
    fields = st.one_of(flags, values(deep).map(lambda own: Value(*own)))
    return st.dictionaries(st.integers(-(2**15), 2**15 - 1), fields, max_size=6)


@given(content=structs())
def test_structs_come_back(content: Struct) -> None:
    assert read_struct(struct_bytes(content)) == content


def test_bytes_of_the_specification() -> None:
    """A field of 50399 is 0xbe93 0x06 as a zigzag varint; ids that are not ascending by 1 to 15 follow their types."""
    assert struct_bytes({1: Value(I32, 50399), 40: Value(FALSE, None)}) == b"\x15\xbe\x93\x06\x02\x50\x00"


@pytest.mark.parametrize("rows", [0, 10])
def test_a_footer_of_arrow_keeps_its_bytes(rows: int) -> None:
    table = pa.table({"a": range(rows), "b": [str(i) for i in range(rows)], "c": [i % 2 == 0 for i in range(rows)]})
    file = pa.BufferOutputStream()
    pq.write_table(table, file, row_group_size=3, sorting_columns=[pq.SortingColumn(0)])
    footer, metadata = read_footer_bytes(pa.BufferReader(file.getvalue()))
    content = read_struct(footer)
    assert struct_bytes(content) == footer
    assert content[3].value == metadata.num_rows == rows


@pytest.mark.parametrize(
    "content", [b"", b"\x15", b"\x18\x05ab", b"\x1b\x00", b"\x1d\x00"], ids=["empty", "cut", "short", "map", "unknown"]
)
def test_what_is_no_struct_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"ends within|value of type"):
        read_struct(content)
