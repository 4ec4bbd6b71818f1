"""Value types of kernels, and their dtypes and limits: subgraphs, their rows, their components, rows of in-edges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .runtime.sizes import SizedArrays

vertex_t = np.int32
"""A vertex of one partition's subgraph."""
edge_t = np.int32
"""An edge of one partition's subgraph."""
offset_t = np.int64
"""An index into an adjacency array, which has two entries an edge."""
bound_t = np.int32
"""Support, bounds and λ."""

MAX_LOCAL_EDGES = 2**31 - 2
"""Most edges of one subgraph; a larger graph needs more partitions."""

MAX_LOCAL_VERTICES = 2**31 - 1
"""Most vertices of one subgraph: they are numbered by int32."""

GONE = -(2**30)
"""`count` of an edge that was removed in an earlier round."""
UNCOUNTED = 2**31 - 1
"""Count of an edge that a filter must not remove, however many triangles it loses."""
MAX_TRIANGLES = 2**28 - 1
"""Most triangles of one edge: half counts of live edges in shards on CPUs are > -2^28 (cpu/shards/half_counts.py)."""
MAX_TRIANGLES_ON_GPU = 2**27 - 1
"""The same on a GPU: each range of counts of removed edges has 2^27 values (cuda/cascade.cuh), and the count of a half
is in [-2^27, 2^27) (cuda/shards/count.cuh).
"""
KEY_BITS = 32
"""The key of an edge in an order of peeling is (level << KEY_BITS) + time. The time is its place within the level."""

IntArray = NDArray[np.int32]
LongArray = NDArray[np.int64]
AnyArray = NDArray[Any]


@dataclass(frozen=True)
class Adjacency(SizedArrays):
    """Both directions of a subgraph's edges, as a row for each vertex, ascending by neighbour.

    The row of vertex v is [begin[v], begin[v] + length[v]). There may be gaps between rows.
    """

    begin: LongArray
    """[vertices] where each row starts."""
    length: IntArray
    """[vertices] number of entries in each row."""
    neighbour: IntArray
    """[2 x edges] the vertex at the other end."""
    edge: IntArray
    """[2 x edges] the edge to that vertex."""

    @property
    def widest(self) -> int:
        """Number of entries in the longest row."""
        return int(self.length.max(initial=0))


@dataclass(frozen=True)
class Topology(SizedArrays):
    """A subgraph: local vertices in degree order, edges sorted by (low, high), low < high."""

    low: IntArray
    """[edges] the endpoint of lower degree order."""
    high: IntArray
    """[edges] the other endpoint."""
    vertices: int
    """Number of local vertices."""

    @property
    def edges(self) -> int:
        """Number of edges."""
        return len(self.low)


@dataclass(frozen=True)
class Nested(SizedArrays):
    """The connected components of {edges of level ≥ k} for all k, and how they are nested.

    Components with the same edges are one, whose level is the highest such k. Components are numbered by descending
    level, then by least vertex, so each has a lower number than the component that contains it.
    """

    vertex: IntArray
    """[vertices] the innermost component that contains the vertex; -1 for a vertex without edges."""
    edge: IntArray
    """[edges] the innermost component that contains the edge; it has the edge's level."""
    level: IntArray
    """[components] the level."""
    least: IntArray
    """[components] the least vertex."""
    parent: IntArray
    """[components] the next larger component that contains it; -1 if there is none."""

    def __len__(self) -> int:
        return len(self.level)


class PeelingStart(NamedTuple):
    """Where a peeling starts: at a level with all edges, or where an earlier peeling has ended."""

    low: IntArray | None = None
    """[edges] λ of the edges that the earlier peeling has removed; None if there is no earlier peeling."""
    level: int = 0
    """The first level to peel."""
    levels: int = 0
    """The number of earlier levels that had edges."""


FROM_THE_START = PeelingStart()


ALONG = {"": 0, "add": 1, "multiply": 2}
"""How an edge changes a value: not at all, by adding its weight, by multiplying with its weight."""


class Extreme(NamedTuple):
    """Which value of a row is the best, after edges have changed the values: the smallest or the largest."""

    largest: bool = False
    along: str = ""
    """"", "add" or "multiply": how the weight of an edge changes its value; see ALONG."""

    def worst(self, kind: np.dtype[Any]) -> Any:
        """The worst value of the type `kind`, which stands for no value."""
        if kind.kind == "f":
            return kind.type(-np.inf if self.largest else np.inf)
        return kind.type(np.iinfo(kind).min if self.largest else np.iinfo(kind).max)


class Received(NamedTuple):
    """The best value that each row has received, and its source. A push replaces them by better ones, in place."""

    value: NDArray[Any]
    """[rows] the worst value of the type for a row that has received none."""
    source: IntArray | None
    """[rows] -1 for a row that has received none; None if sources are not wanted."""
    bound: NDArray[Any] | None = None
    """[rows] a row receives only better values than this, which has the type of the values; None for no bound."""


class RankState(NamedTuple):
    """PageRank's state between supersteps. All arrays are float64 [vertices]."""

    rank: NDArray[np.float64]
    degree: NDArray[np.float64]
    """Numbers of out-edges, at least 1."""
    moved: NDArray[np.float64]
    """How much the last superstep changed each rank."""
    shares: NDArray[np.float64]
    """The ranks divided by the degrees: what a vertex sends along each of its edges."""


@dataclass(frozen=True)
class InRows(SizedArrays):
    """A CSR: row i has the sources of the edges into vertex i. `len()` is the number of entries."""

    offsets: LongArray
    """[rows + 1]"""

    source: IntArray
    """[entries] positions in a table of sources, ascending within a row; may repeat."""

    weight: NDArray[np.float64] | None = None
    """[entries] weights of the edges; None for edges without weights."""

    lasting: object | None = None
    """The key under which gathers cache what depends on row lengths alone: an object that outlives these rows and has
    the same row lengths, such as their chunk. None for the rows themselves.
    """

    def __len__(self) -> int:
        return len(self.source)

    @property
    def weights(self) -> NDArray[np.float64]:
        """The weights, or an empty array for edges without weights, as compiled code expects."""
        return np.zeros(0) if self.weight is None else self.weight

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.offsets) - 1


LEIDEN_CLASSES = 8
"""Classes of vertices that `leiden` moves one after the other."""


@dataclass(frozen=True)
class Weighted:
    """A graph for `leiden`, with weights and sizes of vertices. Each edge is in the rows of both ends; none is a loop.

    Edges of a directed graph in both directions are one, whose weight is the sum.
    """

    offsets: LongArray
    """[vertices + 1] The row of a vertex is the entries offsets[v] … offsets[v + 1] - 1."""
    neighbour: IntArray
    """[entries]"""
    weight: LongArray
    """[entries] positive"""
    size: LongArray
    """[vertices], or of a directed graph [2 * vertices]: the sizes for out-edges, then those for in-edges."""

    def __post_init__(self) -> None:
        """Arrays of workers may be read-only, and Numba would compile kernels for both kinds."""
        for name in ("offsets", "neighbour", "weight", "size"):
            own = getattr(self, name)
            if isinstance(own, np.ndarray):
                frozen = own.view()
                frozen.flags.writeable = False
                object.__setattr__(self, name, frozen)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def directed(self) -> bool:
        """Whether vertices have two sizes."""
        return len(self.size) > len(self)

    @property
    def total(self) -> int:
        """The weight of all edges."""
        return int(self.weight.sum()) // 2


@dataclass(frozen=True)
class Parts:
    """Parts of groups for `leiden`, while vertices are merged to them. A part has the number of one of its vertices."""

    part: IntArray
    """[vertices] the part of each vertex."""
    is_joined: NDArray[np.bool_]
    """[vertices] whether other vertices were merged to the part with this number."""
    size: LongArray
    """[vertices], or of a directed graph [2 * vertices]: the size of each part."""
    outside: LongArray
    """[vertices] the weight of the edges of each part to the rest of its group."""
    wanted: IntArray
    """[vertices] the part that each vertex is to be merged to; its own number between rounds."""
