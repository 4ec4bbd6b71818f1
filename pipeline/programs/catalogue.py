"""The programs that the setting `programs.run` can name."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import pyarrow as pa


LAMBDA = "lambda"
"""The name of λ, which is not a vertex program."""


@dataclass(frozen=True)
class Column:
    """A column that a program adds to the table of vertices or edges."""

    name: str
    state: str
    """Name of the array in the program's state, or in its `edges`."""
    kind: str
    """Alias of the Arrow type; `id` for ids of vertices."""
    meaning: str
    missing: float | None = None
    """The value in the state that is null in the table; None if none is."""

    def type(self, id_type: pa.DataType) -> pa.DataType:
        """The Arrow type, in a graph with ids of `id_type`."""
        import pyarrow as pa

        return id_type if self.kind == "id" else pa.type_for_alias(self.kind)


@dataclass(frozen=True)
class Entry:
    """A program in the catalogue."""

    title: str
    columns: tuple[Column, ...]
    section: str | None = None
    """Section of the settings with its parameters; None without parameters."""
    vertices: tuple[str, ...] = ()
    """Parameters that are ids of vertices. The program gets their dense numbers."""
    weights: Literal["unused", "needed", "optional"] = "unused"
    """Whether it uses weights; `optional`: if its parameter `weighted` is true."""
    without_weights: str = ""
    """The message for edges without weights that it needs."""
    edges: tuple[Column, ...] = ()
    """Columns of the table of edges, which a run without λ does not have."""


CATALOGUE: Mapping[str, Entry] = {
    "pagerank": Entry(
        "PageRank: how often a random walk with restarts visits a vertex.",
        (Column("pagerank", "rank", "double", "PageRank; the sum over all vertices is 1."),),
        "pagerank",
        vertices=("personal",),
        weights="optional",
        without_weights="pagerank.weighted is true, and the edges have no weights",
    ),
    "components": Entry(
        "Connected components, ignoring directions.",
        (Column("weak_component", "component", "id", "The smallest id in the component of the vertex."),),
    ),
    "labels": Entry(
        "Communities by label propagation: each vertex repeatedly takes the most frequent label of its neighbours.",
        (Column("label", "label", "id", "The label of the community, a vertex id."),),
        "labels",
    ),
    "coreness": Entry(
        "Core number of a vertex.",
        (Column("coreness", "core", "int32", "The largest k such that the vertex is in the k-core."),),
    ),
    "clustering": Entry(
        "Local clustering coefficient.",
        (Column("clustering", "clustering", "double", "The share of pairs of neighbours that are joined by an edge."),),
    ),
    "bfs": Entry(
        "Breadth-first search: the fewest edges on a path from a source to each vertex.",
        (
            Column("level", "level", "int32", "Edges on a shortest path from the source; null if there is none.", -1),
            Column("parent", "parent", "id", "The smallest id before the vertex on such a path, or null.", -1),
        ),
        "bfs",
        vertices=("source",),
    ),
    "sssp": Entry(
        "Shortest paths: the smallest sum of weights on a path from a source to each vertex.",
        (
            Column("distance", "distance", "double", "The smallest sum of weights; null without a path.", math.inf),
            Column("predecessor", "predecessor", "id", "The vertex before on such a path, or null.", -1),
        ),
        "sssp",
        vertices=("source",),
        weights="needed",
        without_weights="the program sssp needs weights (bfs counts edges)",
    ),
    "betweenness": Entry(
        "Betweenness: the share of shortest paths between other vertices that lead through a vertex.",
        (
            Column("betweenness", "betweenness", "double", "The share of shortest paths through the vertex."),
            Column("betweenness_error", "error", "double", "Half the width of its interval; 0 with all sources."),
        ),
        "betweenness",
    ),
    "distances": Entry(
        "Closeness and eccentricity of vertices; diameter, radius and hop plot of the graph in the manifest.",
        (
            Column("closeness", "closeness", "double", "1 / the mean distance from vertices that reach it, scaled."),
            Column("closeness_error", "error", "double", "Half the width of its interval; 0 with all sources."),
            Column("eccentricity", "eccentricity", "int32", "The largest distance to a vertex, or a lower bound."),
            Column("eccentricity_slack", "slack", "int32", "Upper minus lower bound; -1: no upper bound; 0: exact."),
        ),
        "distances",
    ),
    "hits": Entry(
        "Hubs and authorities: hubs have edges to authorities, and authorities have edges from hubs.",
        (
            Column("hub", "hub", "double", "The share of the vertex in all hubs; the sum over all vertices is 1."),
            Column("authority", "authority", "double", "The same for authorities."),
        ),
        "hits",
    ),
    "strong_components": Entry(
        "Strongly connected components: vertices that reach each other along edges.",
        (Column("strong_component", "component", "id", "The smallest id in the strong component of the vertex.", -1),),
    ),
    "similarity": Entry(
        "Similarity of the ends of each edge, by their neighbours.",
        (),
        edges=(
            Column("jaccard", "jaccard", "double", "Neighbours of both ends over those of either end."),
            Column("cosine", "cosine", "double", "Cosine similarity of the neighbours, each end among its own."),
        ),
    ),
}
"""Name → program, in the order of their columns."""
