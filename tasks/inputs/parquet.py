"""Footers of Parquet files, and these files open for reading."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import InputError
from ..sealed import footer_of, read_footer
from ..versions import look_at
from .opening import DAMAGE, open_bytes, open_version, reason

__all__ = ["Footer", "no_parquet", "open_parquet", "read_parquet_footer"]

STREAM_BYTES = 2**20
"""Fetched of a column at a time when it is not read at once."""


@dataclass(frozen=True)
class Footer:
    """What a Parquet file says of itself."""

    path: str
    size: int
    version: str | None

    row_groups: tuple[int, ...]
    """Rows of each."""

    schema: pa.Schema

    content: bytes
    """As it is in the file, without its length."""

    group_bytes: tuple[int, ...]
    """[row groups] uncompressed bytes of all columns."""


def read_parquet_footer(path: str, options: Mapping[str, Any]) -> Footer:
    """The footer of a file. Raises InputError if it is no Parquet file, or a damaged one."""
    try:
        size, version = look_at(path, options)  # before the footer is read: what changes meanwhile is noticed later
        if not size:
            raise InputError(f"{path} is empty (0 bytes), not a Parquet file; write it again or take it away")
        with open_bytes(path, options) as file:
            content, metadata = footer_of(file)
            groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
            row_groups = tuple(group.num_rows for group in groups)
            if min(row_groups, default=0) < 0 or sum(row_groups) != metadata.num_rows:
                raise ValueError(f"its footer has {metadata.num_rows} rows, and other numbers in its row groups")
            schema = pq.ParquetFile(file, metadata=metadata, arrow_extensions_enabled=True).schema_arrow
            group_bytes = tuple(group.total_byte_size for group in groups)
            return Footer(path, size, version, row_groups, schema, content, group_bytes)
    except DAMAGE as error:
        raise no_parquet(path, error) from error


def no_parquet(path: str, error: BaseException) -> InputError:
    """What to raise of a file that cannot be read as Parquet."""
    return InputError(
        f"{path} cannot be read as Parquet: {reason(error)}; "
        "it is another kind of file, was cut short or is damaged: write it again"
    )


@contextmanager
def open_parquet(
    path: str, version: str | None, storage_options: Mapping[str, Any], pre_buffer: bool = True
) -> Iterator[pq.ParquetFile]:
    """A file open for reading; raises what is in DAMAGE, and what `asked` does. `pre_buffer` fetches the columns of
    whole row groups ahead; without, they are read by and by.

    Raises InputError if it is another version before or after it was read.

    Checks page checksums where there are any, and the footer of what edgemill wrote. That is always on: it takes a few
    in a hundred of the time in which R-MAT 20 is read and decoded (docs/reliability.md), and none where there are none.
    """
    with open_version(path, version, storage_options) as opened:
        yield pq.ParquetFile(
            opened,
            metadata=read_footer(opened),
            pre_buffer=pre_buffer,
            buffer_size=0 if pre_buffer else STREAM_BYTES,
            page_checksum_verification=True,
        )
