"""Parquet files whose footer bears a checksum, and reading footers by it.

Page checksums guard the pages: with the footer whole, no flipped bit of a page or its header was ever read as other
rows. Nothing in Parquet guards the footer, where a bit is a column's type, an offset or a number of rows. So what is
written here holds the SHA-256 of the footer in front of it, where readers of Parquet do not look, and a mark inside it
that says so: one of the two outlives what destroys the other. It travels with the file, as no list beside it would.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from .errors import InternalError

SEAL = b"edgemill footer sha256 "
MARK = "edgemill.footer"
"""Key of the mark in the footer."""

_SEAL_BYTES = len(SEAL) + 2 * sha256().digest_size
_BUFFER_BYTES = 4 * 1024 * 1024
"""Written at once: each call of Python's takes its lock, which other threads that write want too."""
_TAIL_BYTES = 64 * 1024
"""Read at once from a file's end: most footers are smaller."""
_END_BYTES = 8
"""Length of the footer, and the word PAR1."""
_CHANGED = "its footer is not what edgemill wrote"


class Readable(Protocol):
    """A file open for reading, of Python's, fsspec's or Arrow's."""

    def seek(self, offset: int, whence: int = ..., /) -> int:
        """Python's."""
        ...

    def read(self, size: int = ..., /) -> bytes:
        """Python's."""
        ...


class Writable(Protocol):
    """A file open for writing."""

    def write(self, content: bytes, /) -> int:
        """Python's."""
        ...

    def flush(self) -> None:
        """Python's."""
        ...


@contextmanager
def sealed_writer(file: Writable, schema: pa.Schema, **options: Any) -> Iterator[pq.ParquetWriter]:
    """A writer of page checksums that seals the footer when the block ends; `file` stays open."""
    sink = _HeldBack(file)
    with (
        pa.BufferedOutputStream(pa.PythonFile(sink, "w"), _BUFFER_BYTES) as buffered,
        pq.ParquetWriter(buffered, schema, write_page_checksum=True, **options) as writer,
    ):
        yield writer
        writer.add_key_value_metadata({MARK: "sealed"})
        buffered.flush()
        sink.hold()
    footer = sink.held
    if len(footer) != int.from_bytes(footer[-_END_BYTES:-4], "little") + _END_BYTES:
        raise InternalError("Arrow wrote more than the footer at the end of a Parquet file")
    file.write(_seal(footer))
    file.write(footer)


def read_footer(file: Readable) -> pq.FileMetaData:
    """The footer of an open Parquet file, which is what was written if edgemill wrote it.

    Raises ValueError if it is not, and what pyarrow raises where there is no footer.
    """
    return footer_of(file)[1]


def footer_of(file: Readable) -> tuple[bytes, pq.FileMetaData]:
    """The same, and its bytes without length and magic word. Raises as `read_footer` does."""
    size = file.seek(0, 2)
    tail = _last(file, size, _TAIL_BYTES)
    wanted = _SEAL_BYTES + int.from_bytes(tail[-_END_BYTES:-4], "little") + _END_BYTES
    if len(tail) < wanted <= size:
        tail = _last(file, size, wanted)
    footer = tail[_SEAL_BYTES - wanted :]
    before = tail[-wanted : _SEAL_BYTES - wanted]
    whole = before == _seal(footer)
    if before.startswith(SEAL) and not whole:
        raise ValueError(_CHANGED)
    metadata = pq.read_metadata(pa.BufferReader(footer))
    if MARK.encode() in (metadata.metadata or {}) and not whole:
        raise ValueError(_CHANGED)
    return footer[:-_END_BYTES], metadata


def _seal(footer: bytes) -> bytes:
    return SEAL + sha256(footer).hexdigest().encode()


def _last(file: Readable, size: int, wanted: int) -> bytes:
    file.seek(max(0, size - wanted))
    return file.read(wanted)


class _HeldBack:
    """A file to write to that keeps what comes after `hold()`."""

    def __init__(self, file: Writable) -> None:
        self._file = file
        self._holds = False
        self.held = b""
        self.closed = False

    def hold(self) -> None:
        self._file.flush()
        self._holds = True

    def write(self, content: bytes) -> int:
        if not self._holds:
            return self._file.write(content)
        self.held += content
        return len(content)

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        """Left to the owner of the file."""
