"""A function for each vertex program, made by docs/making/keywords.py: do not edit.

A function runs its program alone, without λ. `edges` is what `edgemill.mine` takes: a path, a list of paths, a table or
a graph. Further keywords are those of `mine`, such as `directed`, `where`, `workers`, `client` and `output`. Errors are
those of `mine`. The result is the table of vertices, a pyarrow dataset (`to_pandas`, `to_polars`, `to_arrow`, …).
"""

from __future__ import annotations

from typing import Any, Unpack

from ..cluster.client import Client
from ..results.frames.table import ResultTable
from .keywords import RunKeywords
from .running import columns_of


def pagerank(
    edges: Any,
    /,
    *,
    damping: float = 0.85,
    tolerance: float = 1e-09,
    iterations: int | None = None,
    weighted: bool = False,
    personal: tuple[int | str, ...] | list[int | str] | str = (),
    client: Client | None = None,
    progress: bool | None = None,
    **settings: Unpack[RunKeywords],
) -> ResultTable:
    """PageRank: how often a random walk with restarts visits a vertex.

    Columns: `id`, `degree`, `pagerank`. `pagerank`: PageRank; the sum over all vertices is 1.

    `damping`: Probability that a random walk follows an edge and does not restart.

    `tolerance`: Stop when the sum of all rank changes in a superstep is below this.

    `iterations`: Stop after this many supersteps; null stops by `tolerance`.

    `weighted`: Walks follow edges in proportion to their weights, `input.weight_column`, which must be at least 0.

    `personal`: Ids at which walks restart: `a,b`, `@FILE` (an id a line) or `@FILE:COLUMN` (Parquet); none: all
    vertices.
    """
    return columns_of(
        "pagerank",
        edges,
        {
            "damping": damping,
            "tolerance": tolerance,
            "iterations": iterations,
            "weighted": weighted,
            "personal": personal,
        },
        client,
        progress,
        settings,
    )


def components(
    edges: Any, /, *, client: Client | None = None, progress: bool | None = None, **settings: Unpack[RunKeywords]
) -> ResultTable:
    """Connected components, ignoring directions.

    Columns: `id`, `degree`, `weak_component`. `weak_component`: The smallest id in the component of the vertex.
    """
    return columns_of("components", edges, {}, client, progress, settings)


def labels(
    edges: Any,
    /,
    *,
    iterations: int = 10,
    client: Client | None = None,
    progress: bool | None = None,
    **settings: Unpack[RunKeywords],
) -> ResultTable:
    """Communities by label propagation: each vertex repeatedly takes the most frequent label of its neighbours.

    Columns: `id`, `degree`, `label`. `label`: The label of the community, a vertex id.

    `iterations`: Most supersteps; it stops earlier once no label changes.
    """
    return columns_of("labels", edges, {"iterations": iterations}, client, progress, settings)


def coreness(
    edges: Any, /, *, client: Client | None = None, progress: bool | None = None, **settings: Unpack[RunKeywords]
) -> ResultTable:
    """Core number of a vertex.

    Columns: `id`, `degree`, `coreness`. `coreness`: The largest k such that the vertex is in the k-core.
    """
    return columns_of("coreness", edges, {}, client, progress, settings)


def clustering(
    edges: Any, /, *, client: Client | None = None, progress: bool | None = None, **settings: Unpack[RunKeywords]
) -> ResultTable:
    """Local clustering coefficient.

    Columns: `id`, `degree`, `clustering`. `clustering`: The share of pairs of neighbours that are joined by an edge.
    """
    return columns_of("clustering", edges, {}, client, progress, settings)


def bfs(
    edges: Any,
    /,
    *,
    source: int | str | None = None,
    client: Client | None = None,
    progress: bool | None = None,
    **settings: Unpack[RunKeywords],
) -> ResultTable:
    """Breadth-first search: the fewest edges on a path from a source to each vertex.

    Columns: `id`, `degree`, `level`, `parent`. `level`: Edges on a shortest path from the source; null if there is
    none. `parent`: The smallest id before the vertex on such a path, or null.

    `source`: Id of the vertex at which the search starts; required.
    """
    return columns_of("bfs", edges, {"source": source}, client, progress, settings)


def sssp(
    edges: Any,
    /,
    *,
    source: int | str | None = None,
    delta: float | None = None,
    client: Client | None = None,
    progress: bool | None = None,
    **settings: Unpack[RunKeywords],
) -> ResultTable:
    """Shortest paths: the smallest sum of weights on a path from a source to each vertex.

    Columns: `id`, `degree`, `distance`, `predecessor`. `distance`: The smallest sum of weights; null without a path.
    `predecessor`: The vertex before on such a path, or null.

    `source`: Id of the vertex at which all paths start; required.

    `delta`: Width of the windows of distances of delta-stepping, for speed only; null: by mean weight and degree.
    """
    return columns_of("sssp", edges, {"source": source, "delta": delta}, client, progress, settings)


def betweenness(
    edges: Any,
    /,
    *,
    sources: int | None = None,
    seed: int = 0,
    batch: int = 64,
    normalized: bool = True,
    client: Client | None = None,
    progress: bool | None = None,
    **settings: Unpack[RunKeywords],
) -> ResultTable:
    """Betweenness: the share of shortest paths between other vertices that lead through a vertex.

    Columns: `id`, `degree`, `betweenness`, `betweenness_error`. `betweenness`: The share of shortest paths through the
    vertex. `betweenness_error`: Half the width of its interval; 0 with all sources.

    `sources`: Estimate from this many random vertices, with intervals; null: from all vertices, exactly.

    `seed`: Selects the random vertices.

    `batch`: Sources searched from at once; each takes 8 bytes a vertex.

    `normalized`: Divide by the number of pairs of other vertices; false: sums over pairs.
    """
    return columns_of(
        "betweenness",
        edges,
        {"sources": sources, "seed": seed, "batch": batch, "normalized": normalized},
        client,
        progress,
        settings,
    )


def distances(
    edges: Any,
    /,
    *,
    sources: int | None = None,
    seed: int = 0,
    batch: int = 512,
    wasserman_faust: bool = True,
    table: bool = False,
    client: Client | None = None,
    progress: bool | None = None,
    **settings: Unpack[RunKeywords],
) -> ResultTable:
    """Closeness and eccentricity of vertices; diameter, radius and hop plot of the graph in the manifest.

    Columns: `id`, `degree`, `closeness`, `closeness_error`, `eccentricity`, `eccentricity_slack`. `closeness`: 1 / the
    mean distance from vertices that reach it, scaled. `closeness_error`: Half the width of its interval; 0 with all
    sources. `eccentricity`: The largest distance to a vertex, or a lower bound. `eccentricity_slack`: Upper minus
    lower bound; -1: no upper bound; 0: exact.

    `sources`: Estimate from this many random vertices, with intervals and bounds; null: from all vertices, exactly.

    `seed`: Selects the random vertices.

    `batch`: Sources searched from at once, a multiple of 64; each takes 3 bits a vertex.

    `wasserman_faust`: Multiply closeness by the share of vertices that reach the vertex; false: within those alone.

    `table`: Publish the table `distances` of all pairs too, of a graph of at most 50,000 vertices.
    """
    return columns_of(
        "distances",
        edges,
        {"sources": sources, "seed": seed, "batch": batch, "wasserman_faust": wasserman_faust, "table": table},
        client,
        progress,
        settings,
    )


def hits(
    edges: Any,
    /,
    *,
    tolerance: float = 1e-08,
    iterations: int | None = None,
    client: Client | None = None,
    progress: bool | None = None,
    **settings: Unpack[RunKeywords],
) -> ResultTable:
    """Hubs and authorities: hubs have edges to authorities, and authorities have edges from hubs.

    Columns: `id`, `degree`, `hub`, `authority`. `hub`: The share of the vertex in all hubs; the sum over all vertices
    is 1. `authority`: The same for authorities.

    `tolerance`: Stop when the sum of all changes in a superstep is below this.

    `iterations`: Stop after computing authorities and hubs this many times, two supersteps each; null stops by
    `tolerance`.
    """
    return columns_of("hits", edges, {"tolerance": tolerance, "iterations": iterations}, client, progress, settings)


def strong_components(
    edges: Any, /, *, client: Client | None = None, progress: bool | None = None, **settings: Unpack[RunKeywords]
) -> ResultTable:
    """Strongly connected components: vertices that reach each other along edges.

    Columns: `id`, `degree`, `strong_component`. `strong_component`: The smallest id in the strong component of the
    vertex.
    """
    return columns_of("strong_components", edges, {}, client, progress, settings)


def similarity(
    edges: Any, /, *, client: Client | None = None, progress: bool | None = None, **settings: Unpack[RunKeywords]
) -> ResultTable:
    """Similarity of the ends of each edge, by their neighbours.

    The result is the table of edges, of a run with λ. Columns: both ids, `support`, `lambda`, `jaccard`, `cosine`.
    `jaccard`: Neighbours of both ends over those of either end. `cosine`: Cosine similarity of the neighbours, each
    end among its own.
    """
    return columns_of("similarity", edges, {}, client, progress, settings)
