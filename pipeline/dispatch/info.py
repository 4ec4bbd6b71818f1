"""What NetworkX tells its users of this backend. It is read at each import of NetworkX, so nothing is imported here."""

from __future__ import annotations

from typing import Any

__all__ = ["get_info"]

_EXACT = "Exact, by the kernels of edgemill on all cores of this machine."


def get_info() -> dict[str, Any]:
    """Names and descriptions, as https://networkx.org/documentation/stable/reference/backends.html has them."""
    clustering = {"additional_docs": f"Undirected graphs without weights. {_EXACT}"}
    return {
        "backend_name": "edgemill",
        "project": "edgemill",
        "package": "edgemill",
        "short_summary": "Triangles, trusses, cores and PageRank, by compiled parallel kernels.",
        "functions": {
            "average_clustering": clustering,
            "clustering": clustering,
            "core_number": {
                "additional_docs": f"Undirected graphs. {_EXACT} Where that takes more than 1,000 supersteps, as on"
                " long paths, NetworkX finds the cores."
            },
            "generalized_degree": {"additional_docs": _EXACT},
            "k_truss": {"additional_docs": f"{_EXACT} λ of all edges is kept, so another k takes no time."},
            "pagerank": {
                "additional_docs": "NetworkX's iteration, on all cores of this machine; without personalization, nstart"
                " and dangling. The same bits each time."
            },
            "transitivity": {"additional_docs": _EXACT},
            "triangles": {"additional_docs": _EXACT},
        },
    }
