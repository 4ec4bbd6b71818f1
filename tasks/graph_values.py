"""The values of a graph that checkpoints store, and functions that store and restore them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..kernels.cpu.shards import Cut
from ..kernels.graph import Topology
from .graph.subgraph import PartitionCounts, Subgraph
from .graph.whole_graph import WholeGraph
from .ingest import OwnedEdges, OwnedRows
from .ingest.degrees import BucketDegrees
from .ingest.numbering import BucketEdges, BucketIds
from .shards.edges import ShardEdges
from .shards.supports import BucketSupports
from .storage import array_files
from .storage.array_files import StoredFile

TYPES: Mapping[str, type[Any]] = {
    "BucketDegrees": BucketDegrees,
    "BucketEdges": BucketEdges,
    "BucketIds": BucketIds,
    "BucketSupports": BucketSupports,
    "Cut": Cut,
    "OwnedEdges": OwnedEdges,
    "OwnedRows": OwnedRows,
    "PartitionCounts": PartitionCounts,
    "ShardEdges": ShardEdges,
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
