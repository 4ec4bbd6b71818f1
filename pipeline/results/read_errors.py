"""Errors of reading a result's tables, as edgemill's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from ...tasks.errors import InputError
from ...tasks.inputs.opening import error_reason
from ...tasks.storage.folders import Folder


@contextmanager
def read_errors(folder: Folder) -> Iterator[None]:
    """Turn errors of reading tables, raised within, into InputError; into UsageError if a store denies access."""
    try:
        with folder.store_errors("read"):
            yield
    except MemoryError:
        raise
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"the result is damaged: {folder}: {error_reason(error)}") from error
