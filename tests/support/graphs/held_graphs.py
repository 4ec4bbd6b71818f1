"""Graphs on one worker: from integer rows to the subgraph, with a name for each edge."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

import drive
from edgemill.tasks.bound.intervals import Intervals
from edgemill.tasks.graph import Subgraph
from edgemill.tasks.ingest import OwnedEdges
from edgemill.tasks.inputs.open_source import open_source
from strategies import EdgeList

Edge = tuple[int, int]


@dataclass(frozen=True)
class HeldGraph:
    """A graph that one worker holds. Edges are named by the ids of their ends, smaller one first."""

    owned: OwnedEdges
    edges: list[Edge]
    """Names of all edges, as OwnedEdges numbers them."""
    subgraph: Subgraph

    def values(self, values: NDArray[np.int32]) -> dict[Edge, int]:
        """Values of all edges, by name."""
        return dict(zip(self.edges, values.tolist(), strict=True))

    def bounds(self, method: Callable[[Subgraph], Intervals]) -> tuple[dict[Edge, int], dict[Edge, int]]:
        """Lower and upper ends of λ by a method of `bounding`."""
        found = method(self.subgraph)
        return self.values(found.low), self.values(found.high)


def held_graph(rows: EdgeList, buckets: int = 2) -> HeldGraph:
    """The graph of some rows."""
    with tempfile.TemporaryDirectory() as folder:
        ends = np.array(rows, np.int64).reshape(-1, 2).T
        pq.write_table(pa.table([pa.array(end) for end in ends], names=["src", "dst"]), Path(folder, "a.parquet"))
        ingested = drive.ingest(open_source(folder), buckets=buckets)
    ids = [vertex for bucket in ingested.ids for vertex in bucket.ids.tolist()]
    degree = np.concatenate([bucket.degree for bucket in ingested.degrees])
    by_rank = sorted(range(len(ids)), key=lambda vertex: (degree[vertex], vertex))
    owned = ingested.owned
    low = np.repeat(np.arange(len(owned.rank)), np.diff(owned.offsets))
    pairs = zip(owned.rank[low].tolist(), owned.rank[owned.high].tolist(), strict=True)
    found = [(ids[by_rank[a]], ids[by_rank[b]]) for a, b in pairs]
    return HeldGraph(owned, [(min(edge), max(edge)) for edge in found], drive.subgraph(owned))
