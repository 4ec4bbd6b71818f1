"""Columns of a table that are encoded apart make the file that Arrow writes for all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import duckdb
import numpy as np
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from delta_pages import pages_of
from edgemill.kernels.gpu.delta import Pages
from edgemill.tasks.errors import InternalError
from edgemill.tasks.publish import encoded as encoded_columns
from edgemill.tasks.publish.encoded import EncodedColumns, encode_columns, encode_on_device, write_joined
from edgemill.tasks.publish.writing import write_table
from edgemill.tasks.storage.parquet_checksum import read_footer

ROWS = 5_000
COMPRESSIONS = ["zstd", "snappy", "none"]


def table(id_type: pa.DataType) -> pa.Table:
    drawn = np.random.default_rng(7)
    low, high = np.sort(drawn.integers(0, 900, ROWS)), drawn.integers(0, 10**6, ROWS)
    return pa.table(
        {
            "src": pa.array(low).cast(id_type),
            "dst": pa.array(high).cast(id_type),
            "support": pa.array(drawn.integers(0, 50, ROWS), pa.int32()),
            "lambda": pa.array(drawn.integers(0, 40, ROWS), pa.int32(), mask=drawn.random(ROWS) < 0.2),
            "score": pa.array(drawn.random(ROWS)),
        }
    )


def batches(part: pa.Table, rows: int) -> Iterator[list[pa.Array]]:
    for start in range(0, part.num_rows, rows):
        yield [column.combine_chunks() for column in part.slice(start, rows).columns]


def encoded(part: pa.Table, rows: int, keys: int = 0, compression: str = "zstd") -> EncodedColumns:
    return encode_columns(part.schema, keys, batches(part, rows), compression)


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("id_type", [pa.int64(), pa.uint32(), pa.string(), pa.large_string()], ids=str)
@pytest.mark.parametrize("cuts", [(3,), (2, 3, 4), ()], ids=str)
@pytest.mark.parametrize("rows", [ROWS, 1_999])
def test_a_joined_file(
    tmp_path: Path, rows: int, cuts: tuple[int, ...], id_type: pa.DataType, compression: str
) -> None:
    whole = table(id_type)
    expected = write_table(tmp_path, "t/a.parquet", whole.schema, 2, batches(whole, rows), compression)
    ends = [0, *cuts, whole.num_columns]
    parts = [
        encoded(whole.select(range(start, stop)), rows, 0 if start else 2, compression)
        for start, stop in pairwise(ends)
    ]
    found = write_joined(tmp_path, "t/b.parquet", whole.schema, 2, parts, compression)

    joined = tmp_path / "t/b.parquet"
    assert joined.read_bytes() == (tmp_path / "t/a.parquet").read_bytes()
    assert (found.rows, found.bytes, found.sha256) == (expected.rows, expected.bytes, expected.sha256)
    assert pq.ParquetFile(joined, page_checksum_verification=True).read().equals(whole)
    with joined.open("rb") as file:
        assert read_footer(file).num_rows == ROWS


@pytest.mark.parametrize("compression", [*COMPRESSIONS, "gzip", "lz4"])
@pytest.mark.parametrize("rows", [ROWS, 1_999, 100])
def test_a_joined_file_with_columns_of_a_gpu(
    tmp_path: Path, rows: int, compression: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages of a GPU, here made by the reference. Those of few values are compressed, and random ones are not."""
    monkeypatch.setattr(encoded_columns, "PAGE_ROWS", 700)
    monkeypatch.setattr(encoded_columns, "_pages", host_pages)
    whole = (
        table(pa.int64()).select(["src", "dst"]).append_column("few", pa.array(np.arange(ROWS) % 16 * 1000, pa.int32()))
    )
    whole = whole.append_column("any", pa.array(np.random.default_rng(3).integers(-(2**63), 2**63, ROWS)))
    first = encoded(whole.select([0, 1]), rows, 2, compression)
    values = {name: whole[name].to_numpy() for name in ("few", "any")}
    second = encode_on_device(values, [first.row_groups], compression).of_file(0)
    found = write_joined(tmp_path, "t/a.parquet", whole.schema, 2, [first, second], compression)
    path = tmp_path / "t/a.parquet"
    assert (found.rows, found.bytes) == (ROWS, path.stat().st_size)
    for reader in (pq.ParquetFile(path, page_checksum_verification=True).read(), duckdb_rows(path), polars_rows(path)):
        assert reader.equals(whole)
    with path.open("rb") as file:
        footer = read_footer(file)
    groups = [footer.row_group(group) for group in range(footer.num_row_groups)]
    assert all(group.total_byte_size == sum(unpacked(group)) for group in groups)
    start = 0
    for group in groups:
        for index, name in ((2, "few"), (3, "any")):
            column, own = group.column(index), whole[name].slice(start, group.num_rows).to_numpy()
            ends = column.statistics.min, column.statistics.max, column.statistics.null_count
            assert ends == (own.min(), own.max(), 0)
            packed = compression != "none" and name == "few"
            if rows > 100:  # the last block of a page is filled with zeros
                assert column.compression == (compression.upper() if packed else "UNCOMPRESSED"), name
        start += group.num_rows


@pytest.mark.parametrize("cuts", [(0, 2, 3), (0, 1, 1, 3), (0, 3)], ids=str)
def test_columns_of_a_gpu_in_several_files(
    tmp_path: Path, cuts: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each file takes its row groups of columns that are encoded once."""
    monkeypatch.setattr(encoded_columns, "PAGE_ROWS", 700)
    monkeypatch.setattr(encoded_columns, "_pages", host_pages)
    whole = table(pa.int64()).select(["src", "dst", "support"])
    values = {"support": whole["support"].to_numpy()}
    groups = [1_999, 1_999, ROWS - 3_998]
    once = encode_on_device(values, [groups[start:stop] for start, stop in pairwise(cuts)], "none")
    rows = np.cumsum([0, *groups])
    for file, (start, stop) in enumerate(pairwise(cuts)):
        own = whole.slice(rows[start], rows[stop] - rows[start])
        ends = encoded(own.select([0, 1]), 1_999, 2, "none")
        write_joined(tmp_path, f"t/{file}.parquet", whole.schema, 2, [ends, once.of_file(file)], "none")
        assert pq.ParquetFile(tmp_path / f"t/{file}.parquet", page_checksum_verification=True).read().equals(own)


def host_pages(values: NDArray[np.int64], row_groups: Sequence[int]) -> Pages:
    ends = np.cumsum([0, *row_groups]).tolist()
    starts = [at for begin, end in pairwise(ends) for at in range(begin, end, encoded_columns.PAGE_ROWS)]
    return pages_of(values, np.array([*starts, ends[-1]]))


def unpacked(group: pq.RowGroupMetaData) -> list[int]:
    return [group.column(index).total_uncompressed_size for index in range(group.num_columns)]


def duckdb_rows(path: Path) -> pa.Table:
    with duckdb.connect() as database:
        return database.execute(f"SELECT * FROM '{path}'").to_arrow_table()


def polars_rows(path: Path) -> pa.Table:
    return polars.read_parquet(path).to_arrow()


def test_a_joined_file_without_rows(tmp_path: Path) -> None:
    whole = table(pa.int64()).slice(0, 0)
    write_table(tmp_path, "t/a.parquet", whole.schema, 2, iter([]), "zstd")
    parts = [encoded(whole.select([0, 1]), ROWS, 2), encoded(whole.select([2, 3, 4]), ROWS)]
    assert write_joined(tmp_path, "t/b.parquet", whole.schema, 2, parts, "zstd").rows == 0
    assert (tmp_path / "t/b.parquet").read_bytes() == (tmp_path / "t/a.parquet").read_bytes()


def test_parts_with_other_row_groups_are_refused(tmp_path: Path) -> None:
    whole = table(pa.int64())
    parts = [encoded(whole.select([0, 1]), 1_000, 2), encoded(whole.select([2, 3, 4]), 999)]
    with pytest.raises(InternalError, match="different row"):
        write_joined(tmp_path, "t/a.parquet", whole.schema, 2, parts, "zstd")
    assert not (tmp_path / "t").exists()
