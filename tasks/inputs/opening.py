"""Opening an input file in the version that was inspected, and errors of reading it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import fsspec
import pyarrow as pa

from ..storage.file_versions import refuse_changed
from ..storage.stores import store_errors

READ_ERRORS = (pa.ArrowException, OSError, ValueError, EOFError)
"""What pyarrow raises for a damaged file, or one of another format."""


def error_reason(error: BaseException) -> str:
    """The first line of an error, without a full stop."""
    return str(error).partition("\n")[0].rstrip(". ") or type(error).__name__


@contextmanager
def open_bytes(path: str, storage_options: Mapping[str, Any]) -> Iterator[Any]:
    """Open the file at a path or URL to read bytes. Raises READ_ERRORS, and errors as `store_errors` does."""
    with (
        store_errors("read", path),
        fsspec.open(path, "rb", **storage_options).open() if "://" in path else pa.OSFile(path) as file,
    ):
        yield file


@contextmanager
def open_version(path: str, version: str | None, storage_options: Mapping[str, Any]) -> Iterator[Any]:
    """As `open_bytes`. Raises InputError if the file is not of this `version` before or after it was read.

    On a disk the version of the open file descriptor is compared, so a file renamed to `path` meanwhile is not read.
    """
    descriptor = None
    try:
        with open_bytes(path, storage_options) as opened:
            descriptor = None if "://" in path else opened.fileno()
            if descriptor is not None:
                refuse_changed(path, version, storage_options, descriptor)
            yield opened
            refuse_changed(path, version, storage_options, descriptor)
    except READ_ERRORS:
        refuse_changed(path, version, storage_options)
        raise
