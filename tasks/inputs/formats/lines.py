"""Whole lines of a text file as a stream of bytes. One task reads one byte range of a large file.

A range from `start` to `stop` has the lines whose first byte is in it, so that adjacent ranges share no line. A line
ends at a line feed, or in some files at a carriage return, even within quotes. A compressed file is one range.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

CHUNK_BYTES = 2**20
"""Bytes per read."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_WORDS = re.compile(rb'(?:"(?:[^"]|"")*"|[^ \t\r])+')
"""What blanks divide, except for blanks in quotes."""


def decompressed(file: Any, compression: str | None) -> Any:
    """The file, or a decompressed stream of it. Arrow closes the stream at its end, which leaves the file open."""
    return file if compression is None else pa.CompressedInputStream(pa.PythonFile(_LeftOpen(file), "r"), compression)


class _LeftOpen:
    """A file object whose `close` leaves the underlying file open."""

    closed = False

    def __init__(self, file: Any) -> None:
        self._file = file

    def read(self, size: int = -1) -> Any:
        return self._file.read(size)

    def close(self) -> None:
        self.closed = True


def line_end_of(head: bytes) -> str:
    """What ends the lines of a file that begins with `head`: a line feed, or a carriage return if it has only these."""
    return "\r" if b"\r" in head and b"\n" not in head else "\n"


def chunks_of_lines(
    file: Any, compression: str | None, start: int, stop: int | None, line_end: str = "\n"
) -> Iterator[bytes]:
    """The lines whose first byte is in `start` to `stop`, in chunks of whole lines. They end at line feeds then."""
    for chunk in _chunks(file, compression, start, stop, line_end.encode()):
        yield chunk if line_end == "\n" else chunk.replace(b"\r", b"\n")


def _chunks(file: Any, compression: str | None, start: int, stop: int | None, line_end: bytes) -> Iterator[bytes]:
    at = 0
    if compression is None:
        at = max(0, start - 1)
        file.seek(at)
    stream = decompressed(file, compression)
    rest, skipping = b"", start > 0
    while True:
        read = stream.read(CHUNK_BYTES)
        if not read:
            break
        if skipping:
            end = read.find(line_end)
            if end < 0:
                at += len(read)
                continue
            at, read, skipping = at + end + 1, read[end + 1 :], False
            if stop is not None and at >= stop:
                return
        elif not start and not at and not rest and read.startswith(BYTE_ORDER_MARK):
            at, read = len(BYTE_ORDER_MARK), read[len(BYTE_ORDER_MARK) :]
        chunk = rest + read  # starts at byte `at`, at the start of a line
        if stop is not None and at + len(chunk) >= stop:
            end = chunk.find(line_end, max(0, stop - 1 - at))  # end of the last line that begins before `stop`
            if end >= 0:
                yield chunk[: end + 1]
                return
        end = chunk.rfind(line_end) + 1
        if end:
            yield chunk[:end]
        at, rest = at + end, chunk[end:]
    if rest:
        yield rest


def comments_in(chunk: bytes, comment: bytes) -> list[bytes]:
    """The lines of a chunk of whole lines that begin with `comment`."""
    if not comment or comment[:1] not in chunk or not (chunk.startswith(comment) or b"\n" + comment in chunk):
        return []
    return re.findall(rb"(?m)^" + re.escape(comment) + rb"[^\r\n]*", chunk)


def without_comments(chunk: bytes, comment: bytes) -> bytes:
    """Whole lines. Lines that begin with `comment` become empty, so that line numbers stay the same."""
    return re.sub(rb"(?m)^" + re.escape(comment) + rb"[^\n]*", b"", chunk)


def with_single_blanks(chunk: bytes) -> bytes:
    """Whole lines with one space between fields that runs of spaces and tabs divide, and none around a line."""
    is_blank = np.frombuffer(chunk, np.uint8) <= ord(" ")
    if not (b"\t" in chunk or chunk[:1] == b" " or chunk[-1:] == b" " or np.any(is_blank[1:] & is_blank[:-1])):
        return chunk
    return b"\n".join(b" ".join(_WORDS.findall(line) if b'"' in line else line.split()) for line in chunk.split(b"\n"))


def without_outer_blanks(chunk: bytes, delimiter: str) -> bytes:
    """Whole lines without blanks around their fields, also within the quotes around a field."""
    outside = re.compile(rf'{re.escape(delimiter)}(?=(?:[^"]*"[^"]*")*[^"]*$)')
    lines = chunk.decode(errors="surrogateescape").split("\n")
    stripped = (
        delimiter.join(_stripped(field) for field in (outside.split(line) if '"' in line else line.split(delimiter)))
        for line in lines
    )
    return "\n".join(stripped).encode(errors="surrogateescape")


def _stripped(field: str) -> str:
    field = field.strip()
    return f'"{field[1:-1].strip()}"' if len(field) > 1 and field[0] == field[-1] == '"' else field


def without_header(chunk: bytes) -> tuple[bytes, bool]:
    """Whole lines after the first one that is not empty, and whether all are empty."""
    body = chunk.lstrip(b"\r\n")
    return body[(body.find(b"\n") + 1) or len(body) :], not body


class LineStream(io.RawIOBase):
    """Chunks of bytes as a readable file object."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer from the chunks; returns the number of bytes, less than its size only at the end."""
        target, filled = memoryview(buffer).cast("B"), 0
        while filled < len(target):
            if not self._rest:
                self._rest = memoryview(next(self._chunks, b""))
                if not self._rest:
                    break
            taken = min(len(self._rest), len(target) - filled)
            target[filled : filled + taken] = self._rest[:taken]
            self._rest = self._rest[taken:]
            filled += taken
        return filled
