"""The functions of NetworkX that edgemill answers, with NetworkX's own names, parameters, results and errors.

What they mean is in NetworkX's documentation. A graph that is directed or a multigraph, and a weight, are left to
NetworkX (`can_run`), and so are small graphs where NetworkX chooses a backend by itself (`should_run`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from .graph import CountedGraph

__all__ = [
    "average_clustering",
    "can_run",
    "clustering",
    "convert_from_nx",
    "convert_to_nx",
    "generalized_degree",
    "k_truss",
    "should_run",
    "transitivity",
    "triangles",
]

LEAST_EDGES = 2000
"""Of a graph that is worth the way here. Below, NetworkX itself is as quick, and loads no compiled code."""


def convert_from_nx(graph: Any, **kept: Any) -> CountedGraph:
    """The graph as edgemill takes it. `kept` says which attributes are needed: all are there."""
    return CountedGraph(graph)


def convert_to_nx(result: Any, *, name: str | None = None) -> Any:
    """A result as NetworkX has it."""
    return result.graph if isinstance(result, CountedGraph) else result


def can_run(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool | str:
    """Whether edgemill answers the function of that name for these arguments; why not, if it does not."""
    graph = args[0] if args else kwargs["G"]
    if graph.is_directed() or graph.is_multigraph():
        return "edgemill has undirected graphs without parallel edges alone"
    place = {"clustering": 2, "average_clustering": 2}.get(name)
    weight = kwargs.get("weight", args[place] if place is not None and len(args) > place else None)
    return True if weight is None else "edgemill has no weights"


def should_run(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool | str:
    """Whether it is worth it; why not, if it is not."""
    graph = args[0] if args else kwargs["G"]
    if isinstance(graph, CountedGraph) or graph.number_of_edges() >= LEAST_EDGES:
        return True
    return f"the graph has fewer than {LEAST_EDGES:,} edges"


def triangles(G: CountedGraph, nodes: Any = None) -> Any:
    """networkx.triangles"""
    return _by_node(G, nodes, (G.twice_triangles // 2).tolist())


def clustering(G: CountedGraph, nodes: Any = None, weight: None = None) -> Any:
    """networkx.clustering"""
    return _by_node(G, nodes, _clustering(G))


def average_clustering(G: CountedGraph, nodes: Any = None, weight: None = None, count_zeros: bool = True) -> float:
    """networkx.average_clustering"""
    values = clustering(G, nodes).values()
    counted = values if count_zeros else [value for value in values if value > 0]
    return float(sum(counted) / len(counted))


def transitivity(G: CountedGraph) -> float:
    """networkx.transitivity"""
    closed = int(G.twice_triangles.sum())
    return closed / int((G.degree * (G.degree - 1)).sum()) if closed else 0


def generalized_degree(G: CountedGraph, nodes: Any = None) -> Any:
    """networkx.generalized_degree"""
    found: list[Counter[int]] = [Counter() for _ in G.nodes]
    for low, high, count in zip(G.low.tolist(), G.high.tolist(), G.support.tolist(), strict=True):
        found[low][count] += 1
        found[high][count] += 1
    return _by_node(G, nodes, found)


def k_truss(G: CountedGraph, k: float) -> Any:
    """networkx.k_truss"""
    import networkx as nx

    if G.loops:
        raise nx.NetworkXNotImplemented(
            "Input graph has self loops which is not permitted; "
            "Consider using G.remove_edges_from(nx.selfloop_edges(G))."
        )
    graph, names = G.graph, G.nodes
    stays = G.lam >= k - 2
    edges = [(names[u], names[v]) for u, v in zip(G.low[stays].tolist(), G.high[stays].tolist(), strict=True)]
    inside = {node for edge in edges for node in edge}
    truss = graph.__class__()
    truss.graph.update(graph.graph)
    truss.add_nodes_from((node, graph.nodes[node].copy()) for node in names if node in inside)
    truss.add_edges_from((u, v, graph.edges[u, v].copy()) for u, v in edges)
    return truss


def _clustering(G: CountedGraph) -> list[float]:
    pairs = (G.degree * (G.degree - 1)).tolist()
    return [twice / pair if twice else 0 for twice, pair in zip(G.twice_triangles.tolist(), pairs, strict=True)]


def _by_node(G: CountedGraph, nodes: Any, values: list[Any]) -> Any:
    """The value of a node, or of each of several, by node."""
    if nodes is None:
        return dict(zip(G.nodes, values, strict=True))
    if nodes in G:
        return values[G.place[nodes]]
    chosen: Iterable[Any] = G.graph.nbunch_iter(nodes)
    return {node: values[G.place[node]] for node in chosen}
