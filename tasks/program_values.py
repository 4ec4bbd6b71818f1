"""The values of vertex programs that checkpoints store, beside those of the graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import graph_values
from .programs.block import PairTable
from .programs.delivery import NamedColumns
from .programs.running import Outcome, Pending
from .storage import array_files
from .storage.array_files import StoredFile

TYPES: Mapping[str, type[Any]] = {
    **graph_values.TYPES,
    "NamedColumns": NamedColumns,
    "Outcome": Outcome,
    "PairTable": PairTable,
    "Pending": Pending,
}
"""As `graph_values.TYPES`."""


def store(value: Any, url: str, options: Mapping[str, Any]) -> StoredFile:
    """Write a value of TYPES to a new file; `options` are fsspec's. Raises UsageError or OutOfRoom."""
    return array_files.store(value, url, options, TYPES)


def restore(stored: StoredFile, options: Mapping[str, Any]) -> Any:
    """The value in a file, with its arrays on the host or the GPU as they were. Raises DamagedFile."""
    return array_files.restore(stored, options, TYPES)
