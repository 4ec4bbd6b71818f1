"""The values that checkpoints store, and functions that store and restore them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..kernels.cpu.shards import Cut
from ..kernels.graph import Topology
from .bands.filtering import Bands, FilterFigures
from .bands.peeling import BandState
from .bands.remainder import HandedOver
from .bound.bisection import Halves
from .bound.fixpoint import Bounds
from .bound.peel import Peeled
from .dense.merge import HierarchyRows
from .graph import PartitionCounts, Subgraph, WholeGraph
from .ingest import OwnedEdges, OwnedRows
from .ingest.degrees import BucketDegrees
from .ingest.numbering import BucketEdges, BucketIds
from .programs.block import PairTable
from .programs.delivery import NamedColumns
from .programs.running import Pending, ProgramOutcome
from .shards.gpu.shard import ShardOnGpu
from .shards.group_edges import ShardEdges
from .shards.peeling import Figures, ShardState
from .shards.supports import BucketSupports
from .storage import array_files
from .storage.array_files import StoredFile

TYPES: Mapping[str, type[Any]] = {
    "BandState": BandState,
    "Bands": Bands,
    "Bounds": Bounds,
    "BucketDegrees": BucketDegrees,
    "BucketEdges": BucketEdges,
    "BucketIds": BucketIds,
    "BucketSupports": BucketSupports,
    "Cut": Cut,
    "Figures": Figures,
    "FilterFigures": FilterFigures,
    "Halves": Halves,
    "HandedOver": HandedOver,
    "HierarchyRows": HierarchyRows,
    "NamedColumns": NamedColumns,
    "Outcome": ProgramOutcome,
    "OwnedEdges": OwnedEdges,
    "OwnedRows": OwnedRows,
    "PairTable": PairTable,
    "PartitionCounts": PartitionCounts,
    "Peeled": Peeled,
    "Pending": Pending,
    "ShardEdges": ShardEdges,
    "ShardOnGpu": ShardOnGpu,
    "ShardState": ShardState,
    "Subgraph": Subgraph,
    "Topology": Topology,
    "WholeGraph": WholeGraph,
}
"""Name in files → dataclass. A renamed class keeps its name here: older checkpoints have it."""


def store(value: Any, url: str, options: Mapping[str, Any]) -> StoredFile:
    """Write a value of TYPES to a new file; `options` are fsspec's. Raises UsageError or OutOfRoom."""
    return array_files.store(value, url, options, TYPES)


def restore(stored: StoredFile, options: Mapping[str, Any]) -> Any:
    """The value in a file, with its arrays on the host or the GPU as they were. Raises DamagedFile."""
    return array_files.restore(stored, options, TYPES)
