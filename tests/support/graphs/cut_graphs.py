"""Graphs in partitions: from integer rows to subgraphs, with a name for each local edge."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

import drive
from edgemill.tasks.bound.intervals import Intervals
from edgemill.tasks.graph.subgraph import Subgraph
from edgemill.tasks.ingest import OwnedEdges
from edgemill.tasks.inputs.open_source import open_source
from edgemill.tasks.partition import Partitioner
from strategies import EdgeList

Edge = tuple[int, int]


@dataclass(frozen=True)
class Assigned:
    """A partitioner by a table."""

    partitions: int
    part: NDArray[np.int16]
    """[vertices] partition, by dense number."""

    def __call__(self, vertices: NDArray[np.int64] | NDArray[np.int32]) -> NDArray[np.int16]:
        return self.part[vertices]


@dataclass(frozen=True)
class CutGraph:
    """A graph in partitions. Edges are named by the ids of their ends, smaller one first."""

    ids: list[int]
    """[vertices] id of each dense number."""

    part: dict[int, int]
    """Id → partition."""

    owned: list[OwnedEdges]
    edges: list[list[Edge]]
    """[partitions] names of the owned edges, as OwnedEdges numbers them."""

    owner: dict[Edge, int]
    subgraphs: list[Subgraph]

    def local_names(self, p: int) -> list[Edge]:
        """[local edges] name of each edge of a subgraph."""
        subgraph = self.subgraphs[p]
        names: list[Edge | None] = [None] * subgraph.topology.edges
        for local, number in zip(subgraph.owned.tolist(), subgraph.number.tolist(), strict=True):
            names[local] = self.edges[p][number]
        for q in range(subgraph.partitions if len(subgraph.ghost) else 0):
            here = slice(subgraph.ghost_offsets[q], subgraph.ghost_offsets[q + 1])
            for local, number in zip(subgraph.ghost[here].tolist(), subgraph.ghost_number[here].tolist(), strict=True):
                names[local] = self.edges[q][number]
        assert None not in names
        return [name for name in names if name is not None]

    def values(self, per_partition: Sequence[NDArray[np.int32]]) -> dict[Edge, int]:
        """Values of owned edges, by name."""
        return {
            edge: value
            for edges, values in zip(self.edges, per_partition, strict=True)
            for edge, value in zip(edges, values.tolist(), strict=True)
        }

    def bounds(
        self, schedule: Callable[[Sequence[Subgraph]], list[Intervals]]
    ) -> tuple[dict[Edge, int], dict[Edge, int]]:
        """Lower and upper ends of λ by a schedule of `bounding`."""
        found = schedule(self.subgraphs)
        return self.values([ends.low for ends in found]), self.values([ends.high for ends in found])


def cut_graph(rows: EdgeList, partitions: int, method: Literal["range", "hash"] | NDArray[np.int16]) -> CutGraph:
    """Partition a graph. `method` can also be an array with the partition of each dense number."""
    partitioner: Literal["range", "hash"] | Partitioner = (
        method if isinstance(method, str) else Assigned(partitions, method)
    )
    with tempfile.TemporaryDirectory() as folder:
        ends = np.array(rows, np.int64).reshape(-1, 2).T
        pq.write_table(pa.table([pa.array(end) for end in ends], names=["src", "dst"]), Path(folder, "a.parquet"))
        ingested = drive.ingest(open_source(folder), partitions, partitioner)
    ids = [vertex for bucket in ingested.ids for vertex in bucket.ids.tolist()]
    degree = np.concatenate([bucket.degree for bucket in ingested.degrees])
    by_rank = sorted(range(len(ids)), key=lambda vertex: (degree[vertex], vertex))
    edges = []
    for owned in ingested.owned:
        low = np.repeat(np.arange(len(owned.rank)), np.diff(owned.offsets))
        pairs = zip(owned.rank[low].tolist(), owned.rank[owned.high].tolist(), strict=True)
        found = [(ids[by_rank[a]], ids[by_rank[b]]) for a, b in pairs]
        edges.append([(min(edge), max(edge)) for edge in found])
    part = ingested.partitioner(np.arange(len(ids))).tolist() if ids else []
    return CutGraph(
        ids,
        dict(zip(ids, part, strict=True)),
        ingested.owned,
        edges,
        {edge: p for p, owned_edges in enumerate(edges) for edge in owned_edges},
        drive.subgraphs(ingested.owned),
    )
