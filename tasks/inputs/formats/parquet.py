"""Footers of Parquet files, and these files open for reading."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ...errors import InputError
from ...storage.parquet_checksum import read_footer, read_footer_bytes
from ..opening import READ_ERRORS, error_reason, open_bytes, open_version, size_and_version

STREAM_BYTES = 2**20
"""Bytes of a column per read, without pre-buffering."""


@dataclass(frozen=True)
class Footer:
    """The footer of a Parquet file."""

    path: str
    size: int
    version: str | None

    row_groups: tuple[int, ...]
    """Rows of each row group."""

    schema: pa.Schema

    content: bytes
    """Its bytes, without length and magic word."""

    group_bytes: tuple[int, ...]
    """[row groups] uncompressed bytes of all columns."""


def read_parquet_footer(path: str, options: Mapping[str, Any]) -> Footer:
    """The footer of a file. Raises InputError if it is not a Parquet file, or damaged."""
    try:
        size, version = size_and_version(path, options)  # first: a later change is then noticed
        if not size:
            raise InputError(f"{path} is empty (0 bytes), not a Parquet file; write it again or remove it")
        with open_bytes(path, options) as file:
            content, metadata = read_footer_bytes(file)
            groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
            row_groups = tuple(group.num_rows for group in groups)
            if min(row_groups, default=0) < 0 or sum(row_groups) != metadata.num_rows:
                raise ValueError(f"its footer has {metadata.num_rows} rows, and other numbers in its row groups")
            schema = pq.ParquetFile(file, metadata=metadata, arrow_extensions_enabled=True).schema_arrow
            group_bytes = tuple(group.total_byte_size for group in groups)
            return Footer(path, size, version, row_groups, schema, content, group_bytes)
    except READ_ERRORS as error:
        raise no_parquet(path, error) from error


def no_parquet(path: str, error: BaseException) -> InputError:
    """The error for a file that cannot be read as Parquet."""
    return encrypted(path, error) or InputError(
        f"{path} cannot be read as Parquet: {error_reason(error)}; "
        "it is another kind of file, was cut short or is damaged: write it again"
    )


def encrypted(path: str, error: BaseException) -> InputError | None:
    """The error for a file that cannot be read since it, or a column that is read, is encrypted; None for others."""
    if "decrypt" not in str(error):
        return None
    return InputError(
        f"{path} is encrypted, or a column of it that is read: {error_reason(error)}; edgemill has no keys: write it "
        "without encryption, with a program that has them"
    )


@contextmanager
def open_parquet(
    path: str, version: str | None, storage_options: Mapping[str, Any], pre_buffer: bool = True
) -> Iterator[pq.ParquetFile]:
    """Open a file. With `pre_buffer` the columns of whole row groups are fetched ahead, else in small reads.

    Raises InputError if the file is not of this `version` before or after it was read, READ_ERRORS, and errors of
    stores as `store_errors` does.

    Page checksums are verified where a file has them, and the checksum of the footer in files that edgemill wrote. This
    takes a few percent of the time to read and decode R-MAT 20 (docs/reliability.md).
    """
    with open_version(path, version, storage_options) as opened:
        yield pq.ParquetFile(
            opened,
            metadata=read_footer(opened),
            pre_buffer=pre_buffer,
            buffer_size=0 if pre_buffer else STREAM_BYTES,
            page_checksum_verification=True,
        )
