"""SHA-256 checksums: of a file while it is written, and inside of JSON texts; and the reading of such texts.

JSON comes in two layouts, since results and checkpoints of earlier releases have one each: a last key `sha256`
(manifest.json), and a first line (indexes of checkpoints).
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any, BinaryIO

_KEY = b',\n "sha256": "'
_END = b'"\n}\n'
_MOST_DEPTH = 100
"""Levels of objects and lists in a JSON text. What edgemill writes has about ten."""


class HashedFile:
    """A binary file, written from start to end, that counts its bytes and computes their SHA-256."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._hash = sha256()
        self.bytes = 0

    def write(self, content: bytes | memoryview) -> int:
        """Write all of `content` and return its size in bytes."""
        self._hash.update(content)
        size = memoryview(content).nbytes
        self.bytes += size
        self._file.write(content)
        return size

    def flush(self) -> None:
        """Flush the file, without fsync."""
        self._file.flush()

    @property
    def sha256(self) -> str:
        """Digest of what was written, in hexadecimal."""
        return self._hash.hexdigest()


def with_checksum_key(text: str) -> bytes:
    """A JSON object, indented by one, with a last key `sha256`: the digest of all bytes before this key."""
    body = text.rstrip().removesuffix("}").rstrip().encode()
    return body + _KEY + sha256(body).hexdigest().encode() + _END


def is_intact(content: bytes) -> bool:
    """Whether the key `sha256` matches. True if there is no such key: another program wrote the file."""
    body, key, digest = content.rpartition(_KEY)
    return not key or digest == sha256(body).hexdigest().encode() + _END


def with_checksum_line(text: bytes) -> bytes:
    """The text after a line with its digest."""
    return sha256(text).hexdigest().encode() + b"\n" + text


def after_checksum_line(content: bytes) -> bytes:
    """The text after the first line. Raises ValueError if the digest in this line does not match."""
    digest, _, text = content.partition(b"\n")
    if sha256(text).hexdigest().encode() != digest:
        raise ValueError("it was cut off or changed")
    return text


def json_object(text: bytes | str) -> dict[str, Any]:
    """The JSON object in a text that edgemill wrote, and that anyone may have replaced.

    Raises ValueError for every other text: for another JSON value, for numbers of thousands of digits, and for values
    that are nested so deeply that a function which visits them would reach the limit of recursion.
    """
    try:
        content = json.loads(text)
    except RecursionError:
        raise ValueError("its values are nested too deeply") from None
    if not isinstance(content, dict):
        raise ValueError("it is not a JSON object")
    level: list[Any] = [content]
    for _ in range(_MOST_DEPTH):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return content
    raise ValueError("its values are nested too deeply")
