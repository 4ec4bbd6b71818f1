"""The description of this backend in NetworkX. NetworkX loads it at each import, so this module imports nothing."""

from __future__ import annotations

from typing import Any

_EXACT = "Exact, by the kernels of edgemill on all cores of this machine."


def get_info() -> dict[str, Any]:
    """Names and descriptions, as https://networkx.org/documentation/stable/reference/backends.html defines them."""
    clustering = {"additional_docs": f"Undirected graphs without weights. {_EXACT}"}
    leiden = {
        "additional_docs": "By modularity, on all cores of this machine; the same for any seed and number of cores."
        " Every community is connected."
    }
    pairs = {"additional_docs": f"Undirected graphs, for many pairs of nodes. {_EXACT}"}
    return {
        "backend_name": "edgemill",
        "project": "edgemill",
        "package": "edgemill",
        "short_summary": "Triangles, trusses, communities, PageRank and centralities, by compiled parallel kernels.",
        "functions": {
            "adamic_adar_index": pairs,
            "average_clustering": clustering,
            "betweenness_centrality": {"additional_docs": f"From all nodes, without weights or endpoints. {_EXACT}"},
            "closeness_centrality": {"additional_docs": f"Of all nodes, without weights. {_EXACT}"},
            "clustering": clustering,
            "core_number": {
                "additional_docs": f"Undirected graphs. {_EXACT} NetworkX computes graphs that take more than 1,000"
                " supersteps, such as long paths."
            },
            "eccentricity": {"additional_docs": f"Of all nodes, without weights. {_EXACT}"},
            "generalized_degree": {"additional_docs": _EXACT},
            "hits": {
                "additional_docs": "Without weights and nstart, normalized, on all cores of this machine. NetworkX"
                " computes graphs that converge slowly."
            },
            "jaccard_coefficient": pairs,
            "k_core": {"additional_docs": f"Undirected graphs. {_EXACT} See core_number."},
            "k_truss": {"additional_docs": f"{_EXACT} λ of all edges is cached, so another k takes no time."},
            "leiden_communities": leiden,
            "leiden_partitions": leiden,
            "pagerank": {
                "additional_docs": "NetworkX's iteration, on all cores of this machine; without personalization, nstart"
                " and dangling. The result is the same to the bit each time."
            },
            "transitivity": {"additional_docs": _EXACT},
            "triangles": {"additional_docs": _EXACT},
        },
    }
