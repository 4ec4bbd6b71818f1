"""Deliberately slow answers by definition, for small graphs. They share no code with the product, nor with each other.

An edge list may hold loops, duplicates and both directions; answers are keyed by (u, v) with u < v.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import networkx as nx

Edge = tuple[Any, Any]


def simple_edges(rows: Iterable[Edge]) -> set[Edge]:
    """The simple undirected graph: no loops, each pair once, smaller id first."""
    return {(min(u, v), max(u, v)) for u, v in rows if u != v}


def brute_force_triangles(rows: Iterable[Edge]) -> set[tuple[Any, Any, Any]]:
    """SLOW. Every triangle (u, v, w), u < v < w, by trying all triples of vertices."""
    edges = simple_edges(rows)
    vertices = sorted({vertex for edge in edges for vertex in edge})
    return {
        (u, v, w) for u, v, w in combinations(vertices, 3) if (u, v) in edges and (u, w) in edges and (v, w) in edges
    }


def brute_force_support(rows: Iterable[Edge]) -> dict[Edge, int]:
    """SLOW. Triangles through each edge."""
    rows = list(rows)
    support = dict.fromkeys(simple_edges(rows), 0)
    for triangle in brute_force_triangles(rows):
        for edge in combinations(triangle, 2):
            support[edge] += 1
    return support


def brute_force_lambda(rows: Iterable[Edge]) -> dict[Edge, int]:
    """SLOW. λ as the greatest fixpoint: while some bound is not valid, lower it by one."""
    rows = list(rows)
    others: dict[Edge, list[tuple[Edge, Edge]]] = {edge: [] for edge in simple_edges(rows)}
    for u, v, w in brute_force_triangles(rows):
        others[u, v].append(((u, w), (v, w)))
        others[u, w].append(((u, v), (v, w)))
        others[v, w].append(((u, v), (u, w)))
    bound = {edge: len(pairs) for edge, pairs in others.items()}
    changed = True
    while changed:
        changed = False
        for edge, pairs in others.items():
            while sum(bound[f] >= bound[edge] and bound[g] >= bound[edge] for f, g in pairs) < bound[edge]:
                bound[edge] -= 1
                changed = True
    return bound


def networkx_lambda(rows: Iterable[Edge]) -> dict[Edge, int]:
    """SLOW. λ from NetworkX: the largest k for which the (k + 2)-truss keeps the edge."""
    edges = simple_edges(rows)
    answer = dict.fromkeys(edges, 0)
    truss = nx.Graph(edges)
    k = 0
    while truss.number_of_edges():
        for u, v in truss.edges:
            answer[min(u, v), max(u, v)] = k
        k += 1
        truss = nx.k_truss(truss, k + 2)
    return answer


def vertex_lambda(edge_lambda: dict[Edge, int], vertices: Iterable[Any] = ()) -> dict[Any, int]:
    """SLOW. λ of each vertex: the maximum over its edges, 0 without edges."""
    answer = dict.fromkeys(vertices, 0)
    for edge, value in edge_lambda.items():
        for vertex in edge:
            answer[vertex] = max(answer.get(vertex, 0), value)
    return answer


@dataclass(frozen=True)
class Component:
    """A component of {λ ≥ k}, for the highest such k."""

    k: int
    edges: frozenset[Edge]
    parent: frozenset[Edge] | None

    @property
    def vertices(self) -> set[Any]:
        return {vertex for edge in self.edges for vertex in edge}


def networkx_hierarchy(edge_lambda: dict[Edge, int]) -> dict[frozenset[Edge], Component]:
    """SLOW. The connected components of {λ ≥ k} for all k, each set of edges once, by those edges."""
    found: dict[frozenset[Edge], Component] = {}
    outer: list[frozenset[Edge]] = []
    for k in range(max(edge_lambda.values(), default=-1) + 1):
        graph = nx.Graph(edge for edge, value in edge_lambda.items() if value >= k)
        level = []
        for vertices in nx.connected_components(graph):
            edges = frozenset((min(u, v), max(u, v)) for u, v in graph.subgraph(vertices).edges)
            around = next((own for own in outer if edges <= own), None)
            parent = found[around].parent if around == edges else around
            found[edges] = Component(k, edges, parent)
            level.append(edges)
        outer = level
    return found


def maximal_dn_graphs(edge_lambda: dict[Edge, int]) -> set[tuple[int, frozenset[Edge]]]:
    """SLOW. The connected components of the edges of each λ = k > 0 that no edge of higher λ touches, by definition."""
    found = set()
    for k in set(edge_lambda.values()) - {0}:
        graph = nx.Graph(edge for edge, value in edge_lambda.items() if value == k)
        higher = {vertex for edge, value in edge_lambda.items() if value > k for vertex in edge}
        for vertices in nx.connected_components(graph):
            if not vertices & higher:
                found.add((k, frozenset((min(u, v), max(u, v)) for u, v in graph.subgraph(vertices).edges)))
    return found
