"""Parquet files with a checksum of the footer.

Page checksums guard the pages: with an intact footer, no flipped bit in a page or its header was ever read as other
rows. Parquet has no checksum of the footer, in which one bit may change a type, an offset or a number of rows. So files
written here have the SHA-256 of the footer before it, where other readers ignore it, and a mark in the footer that says
so. Damage to one of the two leaves the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import InternalError

SEAL = b"edgemill footer sha256 "
MARK = "edgemill.footer"
"""Key of the mark in the footer."""

_SEAL_BYTES = len(SEAL) + 2 * sha256().digest_size
_BUFFER_BYTES = 4 * 1024 * 1024
"""Bytes per write: each Python call takes the interpreter lock, for which other writing threads wait."""
_TAIL_BYTES = 64 * 1024
"""Bytes of the first read at a file's end: most footers are smaller."""
MAGIC = b"PAR1"
"""The word at both ends of a Parquet file."""
_END_BYTES = 4 + len(MAGIC)
"""Bytes of the footer's length and the magic word."""
_CHANGED = "its footer is not what edgemill wrote"


class Readable(Protocol):
    """A file open for reading, of Python, fsspec or Arrow."""

    def seek(self, offset: int, whence: int = ..., /) -> int: ...

    def read(self, size: int = ..., /) -> bytes: ...


class Writable(Protocol):
    """A file open for writing."""

    def write(self, content: bytes, /) -> int: ...

    def flush(self) -> None: ...


@contextmanager
def checksummed_writer(file: Writable, schema: pa.Schema, **options: Any) -> Iterator[pq.ParquetWriter]:
    """Yield a Parquet writer with page checksums, and add the footer's checksum at the end. `file` stays open."""
    sink = _FooterSink(file)
    with (
        pa.BufferedOutputStream(pa.PythonFile(sink, "w"), _BUFFER_BYTES) as buffered,
        pq.ParquetWriter(buffered, schema, write_page_checksum=True, **options) as writer,
    ):
        yield writer
        writer.add_key_value_metadata({MARK: "sealed"})
        buffered.flush()
        sink.keep_rest()
    footer = sink.kept
    if len(footer) != int.from_bytes(footer[-_END_BYTES:-4], "little") + _END_BYTES:
        raise InternalError("Arrow wrote more than the footer at the end of a Parquet file")
    file.write(_seal(footer))
    file.write(footer)


def write_footer(file: Writable, content: bytes) -> None:
    """End a file with a footer and its checksum. `content` is the footer without length and magic word."""
    footer = content + len(content).to_bytes(4, "little") + MAGIC
    file.write(_seal(footer))
    file.write(footer)


def read_footer(file: Readable) -> pq.FileMetaData:
    """The footer of an open Parquet file. If edgemill wrote the file, its checksum is verified.

    Raises ValueError if the checksum does not match, and what pyarrow raises for other files.
    """
    return read_footer_bytes(file)[1]


def read_footer_bytes(file: Readable) -> tuple[bytes, pq.FileMetaData]:
    """The bytes of the footer, without length and magic word, and the footer. Raises as `read_footer` does."""
    size = file.seek(0, 2)
    tail = _last(file, size, _TAIL_BYTES)
    needed = _SEAL_BYTES + int.from_bytes(tail[-_END_BYTES:-4], "little") + _END_BYTES
    if len(tail) < needed <= size:
        tail = _last(file, size, needed)
    footer = tail[_SEAL_BYTES - needed :]
    before = tail[-needed : _SEAL_BYTES - needed]
    intact = before == _seal(footer)
    if before.startswith(SEAL) and not intact:
        raise ValueError(_CHANGED)
    metadata = pq.read_metadata(pa.BufferReader(footer))
    if MARK.encode() in (metadata.metadata or {}) and not intact:
        raise ValueError(_CHANGED)
    return footer[:-_END_BYTES], metadata


def _seal(footer: bytes) -> bytes:
    return SEAL + sha256(footer).hexdigest().encode()


def _last(file: Readable, size: int, count: int) -> bytes:
    file.seek(max(0, size - count))
    return file.read(count)


class _FooterSink:
    """A writable file that keeps in memory what is written after `keep_rest()`."""

    def __init__(self, file: Writable) -> None:
        self._file = file
        self._keeps = False
        self.kept = b""
        self.closed = False

    def keep_rest(self) -> None:
        self._file.flush()
        self._keeps = True

    def write(self, content: bytes) -> int:
        if not self._keeps:
            return self._file.write(content)
        self.kept += content
        return len(content)

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        """The owner of the file closes it."""
