"""Opening files of the input, of the version that was looked at, and what goes wrong in that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import fsspec
import pyarrow as pa

from ..stores import asked
from ..versions import refuse_changed

__all__ = ["DAMAGE", "open_bytes", "open_version", "reason"]

DAMAGE = (pa.ArrowException, OSError, ValueError, EOFError)
"""What pyarrow raises on a file that is not of its format, or damaged."""


def reason(error: BaseException) -> str:
    """The first line of an error of pyarrow's, without a full stop."""
    return str(error).partition("\n")[0].rstrip(". ") or type(error).__name__


@contextmanager
def open_bytes(path: str, storage_options: Mapping[str, Any]) -> Iterator[Any]:
    """A file on a disk, or at a URL, open for reading bytes."""
    with (
        asked("read", path),
        fsspec.open(path, "rb", **storage_options).open() if "://" in path else pa.OSFile(path) as file,
    ):
        yield file


@contextmanager
def open_version(path: str, version: str | None, storage_options: Mapping[str, Any]) -> Iterator[Any]:
    """As `open_bytes`; raises InputError if the file is another version before or after it was read.

    On a disk that is asked of what is open, so that what is read is of the version that was looked at.
    """
    descriptor = None
    try:
        with open_bytes(path, storage_options) as opened:
            descriptor = None if "://" in path else opened.fileno()
            if descriptor is not None:
                refuse_changed(path, version, storage_options, descriptor)
            yield opened
            refuse_changed(path, version, storage_options, descriptor)
    except DAMAGE:
        refuse_changed(path, version, storage_options)
        raise
