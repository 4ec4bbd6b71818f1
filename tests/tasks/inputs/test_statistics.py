"""Statistics of ids in footers, parsed without pyarrow."""

from __future__ import annotations

import io
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from edgemill.tasks.inputs.formats import statistics
from edgemill.tasks.inputs.formats.statistics import column_range, mean_text_bytes
from edgemill.tasks.storage.parquet_checksum import read_footer_bytes
from edgemill.tasks.storage.thrift import read_fields


def footer(table: pa.Table, **options: object) -> bytes:
    file = io.BytesIO()
    pq.write_table(table, file, **options)
    return read_footer_bytes(file)[0]


@pytest.mark.parametrize("kind", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
def test_every_type_of_integers(kind: str) -> None:
    own = pa.type_for_alias(kind)
    least, most = (
        (0, 2**own.bit_width - 1) if kind[0] == "u" else (-(2 ** (own.bit_width - 1)), 2 ** (own.bit_width - 1) - 1)
    )
    table = pa.table({"a": pa.array([1, most, 2], own), "b": pa.array([least, 3, 4], own), "c": [{"a": "x"}] * 3})
    for version in ("1.0", "2.6"):
        content = footer(table, row_group_size=2, version=version)
        assert column_range(content, {"a": own, "b": own}) == (least, most)
        assert column_range(content, {"a": own}) == (1, most)


def test_a_footer_is_read_as_pyarrow_reads_it() -> None:
    table = pa.table({"text": ["a", None] * 20, "float": [1.5] * 40, "flag": [True] * 40, "many": [[1, 2]] * 40})
    content = read_fields(footer(table, row_group_size=3))
    assert content[3] == 40
    assert [element[4].decode() for element in content[2]] == [
        "schema",
        "text",
        "float",
        "flag",
        "many",
        "list",
        "element",
    ]
    assert [group[3] for group in content[4]] == [3] * 13 + [1]
    assert [len(group[1]) for group in content[4]] == [4] * 14


def test_another_physical_type_than_the_schema_has() -> None:
    """Pyarrow would abort the process."""
    content = bytearray(footer(pa.table({"src": [1, 2]}), store_schema=False, compression="none"))
    chunk = content.index(b"\x15\x04\x19\x35")  # type INT64, and a list of three encodings
    content[chunk + 1] = 2  # INT32
    with pytest.raises(ValueError, match=r"0.*'src'"):
        column_range(bytes(content), {"src": pa.int64()})


def test_bytes_that_are_not_a_footer() -> None:
    whole, drawn = footer(pa.table({"src": [1, 2], "dst": [3, 4]})), random.Random(3)
    columns = {"src": pa.int64(), "dst": pa.int64()}
    refused = 0
    for number in range(3000):
        content = bytearray(drawn.randbytes(80) if number % 2 else whole)
        for _ in range(number % 7):
            content[drawn.randrange(len(content))] = drawn.randrange(256)
        try:
            column_range(bytes(content[: drawn.randrange(1, len(content))]), columns)
        except ValueError:
            refused += 1
    assert refused > 2000
    with pytest.raises(ValueError, match="in depth"):
        read_fields(b"\x1c" * 100_000)


@pytest.mark.parametrize("dictionary", [True, False])
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_mean_bytes_of_text(kind: pa.DataType, dictionary: bool) -> None:
    """Each text counts as often as it occurs, nulls not at all."""
    texts = {"a": ["é" * 10, None, "xy", "xy"], "b": ["abcd"] * 4, "c": ["z" * 999] * 4}
    table = pa.table({name: pa.array(own, kind) for name, own in texts.items()})
    content = footer(table, row_group_size=2, use_dictionary=dictionary)
    assert mean_text_bytes(content, ("a", "b")) == [(20 + 2 * 4) / 4, (2 * 2 + 2 * 4) / 4]
    assert mean_text_bytes(content, ("c",)) == [999, 999]
    assert mean_text_bytes(footer(table.slice(0, 0)), ("a", "b")) == []


def test_bounds_of_text_without_statistics_of_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """As earlier writers leave them out: plain texts have at most the bytes of their columns; others are not known."""
    monkeypatch.setattr(statistics, "_SIZES", 10**6)
    table = pa.table({"a": ["abcdef"] * 1000, "b": ["x"] * 1000})
    for encoding, known in (("PLAIN", True), ("DELTA_LENGTH_BYTE_ARRAY", True), ("DELTA_BYTE_ARRAY", False)):
        content = footer(table, use_dictionary=False, column_encoding={"a": encoding, "b": "PLAIN"})
        found = mean_text_bytes(content, ("a", "b"))
        assert (found is not None) is known
        assert found is None or 3.5 <= found[0] < 8
    assert mean_text_bytes(footer(table), ("a", "b")) is None


def test_mean_bytes_of_other_ids() -> None:
    """UUIDs are texts of 32 digits; integers are no texts."""
    table = pa.table({"a": pa.array([bytes(16)] * 5, pa.binary(16)), "b": range(5), "c": [["x"]] * 5})
    content = footer(table)
    assert mean_text_bytes(content, ("a",)) == [32]
    assert mean_text_bytes(content, ("a", "b")) is None
