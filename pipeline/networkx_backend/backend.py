"""The functions of NetworkX that edgemill computes, with NetworkX's names, parameters, results and errors.

NetworkX's documentation defines them. `can_run` leaves to NetworkX what edgemill does not support: parameters that
`_LEFT` lists, weights except for PageRank and Leiden, and directed graphs and multigraphs except for functions that
`_DIRECTED` and `_PARALLEL` list. `should_run` leaves small graphs to NetworkX when it chooses a backend automatically.
`NetworkXGraph` is a graph with its edges as arrays, and its triangles and λ.
"""

from __future__ import annotations

import inspect
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...kernels.graph import InRows
from ...kernels.runtime.threads import kernel_threads, most_threads
from ...tasks.bound.peel import find_lambda, find_triangles
from ...tasks.partition import RangePartitioner
from ...tasks.programs import AnyProgram, Entries, ProgramOutcome, cut_blocks, run_in_one_block
from ...tasks.programs.shipped.betweenness import Betweenness
from ...tasks.programs.shipped.coreness import Coreness
from ...tasks.programs.shipped.distances import Distances
from ...tasks.programs.shipped.hits import Hits
from ...tasks.programs.shipped.pagerank import PageRank
from ..cluster.connecting.guard import guarded_call


class NetworkXGraph:
    """A networkx graph at the time of construction. Its triangles and λ are computed at first use.

    Triangles and λ are defined for undirected graphs without parallel edges; programs run on all graphs. Attributes of
    nodes and edges are read from the graph itself, which must not change meanwhile. `__networkx_backend__` tells
    NetworkX which backend the graph belongs to.
    """

    __networkx_backend__ = "edgemill"

    def __init__(self, graph: Any) -> None:
        self.graph = graph
        self.nodes: list[Any] = list(graph)
        """In NetworkX's order."""
        self.index = {node: index for index, node in enumerate(self.nodes)}
        ends = np.fromiter(_ends(graph, self.index), np.int32).reshape(-1, 2)
        self.source, self.target = (np.ascontiguousarray(ends[:, end]) for end in (0, 1))
        """[edges] indices of the nodes, in the order of `graph.edges`, with loops."""
        loop = self.source == self.target
        self.loops = int(np.count_nonzero(loop))
        """Edges from a node to itself."""
        self.low: NDArray[np.int32] = self.source[~loop]
        self.high: NDArray[np.int32] = self.target[~loop]
        """[edges] indices of the nodes without loops. Arrays of the properties below have the same order."""

    @cached_property
    def degree(self) -> NDArray[np.int64]:
        """[nodes] Edges of each node, without loops."""
        return self._sums(np.ones(len(self.low), np.int64))

    @cached_property
    def support(self) -> NDArray[np.int32]:
        """[edges] Triangles of each edge."""
        return self._by_edge(self._found[1].support)

    @cached_property
    def twice_triangles(self) -> NDArray[np.int64]:
        """[nodes] Twice the triangles of each node: the sum of the supports of its edges."""
        return self._sums(self.support)

    @cached_property
    def lam(self) -> NDArray[np.int32]:
        """[edges] λ."""
        with guarded_call(), kernel_threads(most_threads()):
            return self._by_edge(find_lambda(self._found[1]))

    @cached_property
    def rows(self) -> InRows:
        """[nodes] the neighbours of each node of an undirected graph, without loops, ascending by index."""
        entries, home = Entries(self.low, self.high), RangePartitioner()
        return cut_blocks(entries, len(self.nodes), home, False, "both")[0].rows

    def weights(self, name: Any) -> NDArray[np.float64]:
        """[edges of `source`] The graph's current value of the attribute `name`, 1 for an edge without it."""
        return np.fromiter((value for _, _, value in self.graph.edges(data=name, default=1)), np.float64)

    def run(
        self, program: AnyProgram, weight: NDArray[np.float64] | None = None, *, most_steps: int | None = None
    ) -> ProgramOutcome:
        """Run a vertex program in this process; arrays are in the order of `nodes`. `weight` [edges of `source`]."""
        edges = Entries(self.source, self.target, weight)
        with guarded_call(), kernel_threads(most_threads()):
            return run_in_one_block(program, edges, len(self.nodes), self.is_directed(), most_steps=most_steps)

    def column(self, program: AnyProgram, name: str) -> dict[Any, Any]:
        """Node → its value in a column of a vertex program."""
        return dict(zip(self.nodes, self.run(program).state[name].tolist(), strict=True))

    def is_directed(self) -> bool:
        """Whether the graph is directed."""
        return bool(self.graph.is_directed())

    def is_multigraph(self) -> bool:
        """Whether the graph can have parallel edges."""
        return bool(self.graph.is_multigraph())

    def __contains__(self, node: object) -> bool:
        try:
            return node in self.index
        except TypeError:  # a list of nodes is not a node
            return False

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.nodes)

    @cached_property
    def _found(self) -> Any:
        with guarded_call(), kernel_threads(most_threads()):
            return find_triangles(self.low, self.high, len(self.nodes))

    def _by_edge(self, values: NDArray[np.int32]) -> NDArray[np.int32]:
        ordered = np.empty_like(values)
        ordered[self._found[0].row] = values
        return ordered

    def _sums(self, values: NDArray[Any]) -> NDArray[np.int64]:
        sums = np.zeros(len(self.nodes), np.int64)
        np.add.at(sums, self.low, values)
        np.add.at(sums, self.high, values)
        return sums


def _ends(graph: Any, index: dict[Any, int]) -> Iterator[int]:
    for source, target in graph.edges():
        yield index[source]
        yield index[target]


LEAST_EDGES = 2000
"""Below this number of edges, NetworkX itself is as fast, and loads no compiled code."""


LEAST_PAIRS = 50_000
"""Below this number of pairs of nodes, NetworkX has them before edgemill has converted a graph."""
PAIRS_AT_ONCE = 1 << 16
"""Pairs of nodes whose common neighbours are found together."""


MOST_STEPS = 1000
"""Supersteps that `core_number` and `hits` run at most. Graphs that need more, such as long paths, are faster in
NetworkX.
"""


def convert_from_nx(graph: Any, **needed: Any) -> NetworkXGraph:
    """Convert a NetworkX graph. `needed` names attributes to convert; all of them are available."""
    return NetworkXGraph(graph)


def convert_to_nx(result: Any, *, name: str | None = None) -> Any:
    """Convert a result to NetworkX's type."""
    return result.graph if isinstance(result, NetworkXGraph) else result


_LEFT: Mapping[str, Mapping[str, Any]] = {
    "betweenness_centrality": {"k": None, "weight": None, "endpoints": False},
    "closeness_centrality": {"u": None, "distance": None},
    "eccentricity": {"v": None, "sp": None, "weight": None},
    "clustering": {"weight": None},
    "average_clustering": {"weight": None},
    "hits": {"nstart": None, "normalized": True},
    "pagerank": {"personalization": None, "nstart": None, "dangling": None},
}
"""Function → parameter → the only value of it that edgemill supports."""
_DIRECTED = "betweenness_centrality", "closeness_centrality", "eccentricity", "hits", "pagerank"
_LEIDEN = "leiden_communities", "leiden_partitions"
_PAIRS = "adamic_adar_index", "jaccard_coefficient"
_PARALLEL = "closeness_centrality", "eccentricity", "hits", "pagerank", *_LEIDEN
"""Functions for directed graphs, and for multigraphs."""


def can_run(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool | str:
    """Whether edgemill supports the function `name` with these arguments, or the reason why it does not."""
    call = inspect.signature(globals()[name]).bind(*args, **kwargs)
    call.apply_defaults()
    graph = call.arguments["G"]
    for parameter, value in _LEFT.get(name, {}).items():
        if call.arguments[parameter] is not value:
            return f"edgemill computes {name} without {parameter}"
    if graph.is_directed() and name not in _DIRECTED:
        return f"edgemill computes {name} only of undirected graphs"
    if graph.is_multigraph() and name not in _PARALLEL:
        return f"edgemill computes {name} only of graphs without parallel edges"
    if name == "hits":
        return _has_no_weights(graph)
    return _has_usual_weights(graph, call.arguments["weight"]) if name in ("pagerank", *_LEIDEN) else True


def _has_no_weights(graph: Any) -> bool | str:
    """Whether all edges have the weight 1, or none. NetworkX takes the attribute "weight" as the weight."""
    graph = graph.graph if isinstance(graph, NetworkXGraph) else graph
    weights = (value for _, _, value in graph.edges(data="weight", default=1))
    return all(value == 1 for value in weights) or "edgemill computes hits without weights, and edges have some"


def _has_usual_weights(graph: Any, weight: Any) -> bool | str:
    if weight is None:
        return True
    graph = graph.graph if isinstance(graph, NetworkXGraph) else graph
    weights = (value for _, _, value in graph.edges(data=weight, default=1))
    if all(isinstance(value, Real) and 0 <= float(value) < math.inf for value in weights):
        return True
    return f"edgemill needs weights that are finite and not negative; {weight!r} of an edge is not"


def should_run(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool | str:
    """Whether the graph is large enough for edgemill, or the reason why it is not. NetworkX has no own Leiden."""
    graph = args[0] if args else kwargs["G"]
    if name in _PAIRS:
        pairs = args[1] if len(args) > 1 else kwargs.get("ebunch")
        if pairs is not None and not (hasattr(pairs, "__len__") and len(pairs) >= LEAST_PAIRS):
            return f"there are fewer than {LEAST_PAIRS:,} pairs, or their number is not known"
    if name in _LEIDEN or isinstance(graph, NetworkXGraph) or graph.number_of_edges() >= LEAST_EDGES:
        return True
    return f"the graph has fewer than {LEAST_EDGES:,} edges"


def triangles(G: NetworkXGraph, nodes: Any = None) -> Any:
    """networkx.triangles"""
    return _by_node(G, nodes, (G.twice_triangles // 2).tolist())


def clustering(G: NetworkXGraph, nodes: Any = None, weight: None = None) -> Any:
    """networkx.clustering"""
    return _by_node(G, nodes, _clustering(G))


def average_clustering(G: NetworkXGraph, nodes: Any = None, weight: None = None, count_zeros: bool = True) -> float:
    """networkx.average_clustering"""
    values = clustering(G, nodes).values()
    counted = values if count_zeros else [value for value in values if value > 0]
    return float(sum(counted) / len(counted))


def transitivity(G: NetworkXGraph) -> float:
    """networkx.transitivity"""
    closed = int(G.twice_triangles.sum())
    return closed / int((G.degree * (G.degree - 1)).sum()) if closed else 0


def generalized_degree(G: NetworkXGraph, nodes: Any = None) -> Any:
    """networkx.generalized_degree"""
    found: list[Counter[int]] = [Counter() for _ in G.nodes]
    for low, high, count in zip(G.low.tolist(), G.high.tolist(), G.support.tolist(), strict=True):
        found[low][count] += 1
        found[high][count] += 1
    return _by_node(G, nodes, found)


def k_truss(G: NetworkXGraph, k: float) -> Any:
    """networkx.k_truss"""
    _refuse_loops(G)
    graph, names = G.graph, G.nodes
    stays = G.lam >= k - 2
    edges = [(names[u], names[v]) for u, v in zip(G.low[stays].tolist(), G.high[stays].tolist(), strict=True)]
    inside = {node for edge in edges for node in edge}
    truss = graph.__class__()
    truss.graph.update(graph.graph)
    truss.add_nodes_from((node, graph.nodes[node].copy()) for node in names if node in inside)
    truss.add_edges_from((u, v, graph.edges[u, v].copy()) for u, v in edges)
    return truss


def core_number(G: NetworkXGraph) -> dict[Any, int]:
    """networkx.core_number"""
    import networkx as nx

    _refuse_loops(G)
    found = G.run(Coreness(), most_steps=MOST_STEPS)
    if not found.converged:
        return dict(nx.core_number(G.graph, backend="networkx"))
    return dict(zip(G.nodes, found.state["core"].tolist(), strict=True))


def k_core(G: NetworkXGraph, k: float | None = None, core_number: Mapping[Any, int] | None = None) -> Any:
    """networkx.k_core"""
    core = globals()["core_number"](G) if core_number is None else core_number
    least = max(core.values()) if k is None else k
    return G.graph.subgraph(node for node, own in core.items() if own >= least).copy()


def hits(
    G: NetworkXGraph, max_iter: int = 100, tol: float = 1.0e-8, nstart: None = None, normalized: bool = True
) -> tuple[dict[Any, float], dict[Any, float]]:
    """networkx.hits. NetworkX computes graphs that converge slowly, and those without edges."""
    import networkx as nx

    if not len(G):
        return {}, {}
    if max_iter <= 0:
        raise nx.PowerIterationFailedConvergence(max_iter)
    found = G.run(Hits(tolerance=min(max(tol, 1e-14), 1e-10)), most_steps=MOST_STEPS) if len(G.source) else None
    if found is None or not found.converged:
        hubs, authorities = nx.hits(G.graph, max_iter, tol, backend="networkx")
        return hubs, authorities
    first, second = (dict(zip(G.nodes, found.state[name].tolist(), strict=True)) for name in ("hub", "authority"))
    return first, second


def jaccard_coefficient(G: NetworkXGraph, ebunch: Any = None) -> Iterator[tuple[Any, Any, float]]:
    """networkx.jaccard_coefficient"""
    degree = G.degree

    def similarity(common: NDArray[np.float64], one: NDArray[np.int32], other: NDArray[np.int32]) -> list[float]:
        either = (degree[one] + degree[other] - common).tolist()
        return [
            own / all_of_both if all_of_both else 0 for own, all_of_both in zip(common.tolist(), either, strict=True)
        ]

    return _of_pairs(G, "jaccard_coefficient", ebunch, np.ones(len(G)), similarity)


def adamic_adar_index(G: NetworkXGraph, ebunch: Any = None) -> Iterator[tuple[Any, Any, float]]:
    """networkx.adamic_adar_index"""
    share = 1 / np.log(np.maximum(G.degree, 2))

    def similarity(common: NDArray[np.float64], one: NDArray[np.int32], other: NDArray[np.int32]) -> list[float]:
        found: list[float] = common.tolist()
        return [value or 0 for value in found]

    return _of_pairs(G, "adamic_adar_index", ebunch, share, similarity)


def _of_pairs(
    G: NetworkXGraph, name: str, ebunch: Any, share: NDArray[np.float64], similarity: Callable[..., list[float]]
) -> Iterator[tuple[Any, Any, float]]:
    """The similarity of the nodes of each pair, by the sum of the `share` [nodes] of common neighbours. NetworkX
    computes those of graphs with loops, and of a node and itself.
    """
    import networkx as nx

    pairs = None if ebunch is None else [(u, v) for u, v in ebunch]
    for node in itertools.chain.from_iterable(pairs or ()):
        if node not in G:
            raise nx.NodeNotFound(f"Node {node} not in G.")
    if G.loops or any(u == v for u, v in pairs or ()):
        found: Iterator[tuple[Any, Any, float]] = getattr(nx, name)(G.graph, pairs, backend="networkx")
        return found
    return _in_parts(G, nx.non_edges(G.graph) if pairs is None else iter(pairs), share, similarity)


def _in_parts(
    G: NetworkXGraph, pairs: Iterator[Any], share: NDArray[np.float64], similarity: Callable[..., list[float]]
) -> Iterator[tuple[Any, Any, float]]:
    from ...kernels.cpu.similar_pairs import common_neighbours  # loads Numba

    while part := list(itertools.islice(pairs, PAIRS_AT_ONCE)):
        one, other = (np.array([G.index[pair[end]] for pair in part], np.int32) for end in (0, 1))
        with guarded_call(), kernel_threads(most_threads()):
            common = common_neighbours(G.rows, share, one, other)
        for (u, v), value in zip(part, similarity(common, one, other), strict=True):
            yield u, v, value


def betweenness_centrality(
    G: NetworkXGraph,
    k: None = None,
    normalized: bool = True,
    weight: None = None,
    endpoints: bool = False,
    seed: Any = None,
) -> dict[Any, float]:
    """networkx.betweenness_centrality"""
    if len(G) < 3:
        return dict.fromkeys(G.nodes, 0.0)
    return G.column(Betweenness(normalized=bool(normalized)), "betweenness")


def closeness_centrality(
    G: NetworkXGraph, u: None = None, distance: None = None, wf_improved: bool = True
) -> dict[Any, float]:
    """networkx.closeness_centrality"""
    return G.column(Distances(wasserman_faust=bool(wf_improved)), "closeness") if len(G) else {}


def eccentricity(G: NetworkXGraph, v: None = None, sp: None = None, weight: None = None) -> dict[Any, int]:
    """networkx.eccentricity"""
    import networkx as nx

    if not len(G):
        return {}
    if G.is_directed() and not nx.is_strongly_connected(G.graph):
        raise nx.NetworkXError("Found infinite path length because the digraph is not strongly connected")
    if not G.is_directed() and not nx.is_connected(G.graph):
        raise nx.NetworkXError("Found infinite path length because the graph is not connected")
    return G.column(Distances(), "eccentricity")


def pagerank(
    G: NetworkXGraph,
    alpha: float = 0.85,
    personalization: None = None,
    max_iter: int = 100,
    tol: float = 1.0e-6,
    nstart: None = None,
    weight: Any = "weight",
    dangling: None = None,
) -> dict[Any, float]:
    """networkx.pagerank: the same power iteration. It ends when ranks change by less than nodes × `tol` in total."""
    import networkx as nx

    if not len(G):
        return {}
    weights = None if weight is None else G.weights(weight)
    weighted = weights is not None and bool((weights != 1).any())
    program = PageRank(damping=alpha, tolerance=len(G) * tol, weighted=weighted)
    steps = len(range(max_iter))  # raises as NetworkX does; 0 for a negative number
    found = G.run(program, weights if weighted else None, most_steps=steps)
    if not found.converged:
        raise nx.PowerIterationFailedConvergence(max_iter)
    return dict(zip(G.nodes, found.state["rank"].tolist(), strict=True))


def leiden_communities(
    G: NetworkXGraph, weight: Any = "weight", resolution: float = 1, max_level: int | None = None, seed: Any = None
) -> list[set[Any]]:
    """networkx.community.leiden_communities. The communities are the same for any seed.

    A level moves all nodes once. Raises ValueError for a `max_level` below 1.
    """
    found: list[set[Any]] = [{node} for node in G.nodes]
    for best in _partitions(G, weight, resolution, max_level):
        found = best
    return found


def leiden_partitions(
    G: NetworkXGraph, weight: Any = "weight", resolution: float = 1, seed: Any = None
) -> Iterator[list[set[Any]]]:
    """networkx.community.leiden_partitions: the communities after each level that finds better ones."""
    return _partitions(G, weight, resolution, None)


def _partitions(G: NetworkXGraph, weight: Any, resolution: float, max_level: int | None) -> Iterator[list[set[Any]]]:
    from ...kernels.leiden import graph_for_modularity, leiden

    if max_level is not None and max_level <= 0:
        raise ValueError("max_level argument must be a positive integer or None")
    weights = None if weight is None else G.weights(weight)
    graph, unit = graph_for_modularity(G.source, G.target, weights, len(G))
    found = leiden(graph, unit * resolution, each=True)
    for _ in itertools.count() if max_level is None else range(max_level):
        with guarded_call(), kernel_threads(most_threads()):
            group = next(found, None)
        if group is None:
            return
        communities: list[set[Any]] = [set() for _ in range(int(group.max()) + 1)]
        for node, number in zip(G.nodes, group.tolist(), strict=True):
            communities[number].add(node)
        yield communities


def _refuse_loops(G: NetworkXGraph) -> None:
    import networkx as nx

    if G.loops:
        raise nx.NetworkXNotImplemented(
            "Input graph has self loops which is not permitted; "
            "Consider using G.remove_edges_from(nx.selfloop_edges(G))."
        )


def _clustering(G: NetworkXGraph) -> list[float]:
    pairs = (G.degree * (G.degree - 1)).tolist()
    return [twice / pair if twice else 0 for twice, pair in zip(G.twice_triangles.tolist(), pairs, strict=True)]


def _by_node(G: NetworkXGraph, nodes: Any, values: list[Any]) -> Any:
    """The value of a node, or of each of several, by node."""
    if nodes is None:
        return dict(zip(G.nodes, values, strict=True))
    if nodes in G:
        return values[G.index[nodes]]
    chosen: Iterable[Any] = G.graph.nbunch_iter(nodes)
    return {node: values[G.index[node]] for node in chosen}
