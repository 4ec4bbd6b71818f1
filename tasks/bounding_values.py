"""The values of bounding that checkpoints store, beside those of the graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import graph_values
from .bands.filtering import Bands, FilterFigures
from .bands.remainder import HandedOver
from .bands.state import BandState
from .bound.bisection import Halves
from .bound.fixpoint import Bounds
from .bound.peel import Peeled
from .shards.gpu.shard import ShardOnGpu
from .shards.state import Figures, ShardState
from .storage import array_files
from .storage.array_files import StoredFile

TYPES: Mapping[str, type[Any]] = {
    **graph_values.TYPES,
    "BandState": BandState,
    "Bands": Bands,
    "Bounds": Bounds,
    "Figures": Figures,
    "FilterFigures": FilterFigures,
    "Halves": Halves,
    "HandedOver": HandedOver,
    "Peeled": Peeled,
    "ShardOnGpu": ShardOnGpu,
    "ShardState": ShardState,
}
"""As `graph_values.TYPES`."""


def store(value: Any, url: str, options: Mapping[str, Any]) -> StoredFile:
    """Write a value of TYPES to a new file; `options` are fsspec's. Raises UsageError or OutOfRoom."""
    return array_files.store(value, url, options, TYPES)


def restore(stored: StoredFile, options: Mapping[str, Any]) -> Any:
    """The value in a file, with its arrays on the host or the GPU as they were. Raises DamagedFile."""
    return array_files.restore(stored, options, TYPES)
