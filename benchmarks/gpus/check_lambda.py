"""Checks λ of edges drawn at random on the device, where nothing else has computed λ of so large a graph."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from edgemill.tasks.graph import WholeGraph

_CHUNK = 2**27
"""Edges that are searched at once."""


def check_lambda(graph: WholeGraph, low: Any, edges: int, seed: int = 1) -> None:
    """Check `edges` edges drawn at random. `low` [edges] is λ.

    An edge e with λ = k has at least k triangles whose other edges have λ ≥ k, or e would not be in a subgraph where
    each edge has k triangles. It has at most k triangles whose other edges have a higher λ, or e would be in the
    subgraph of level k + 1. Raises ValueError for an edge that fails.
    """
    if bool((low > graph.support).any()):
        raise ValueError("an edge has a λ above the number of its triangles")
    drawn = np.random.default_rng(seed).choice(len(low), edges, replace=False)
    at = cupy.asarray(drawn)
    ends = cupy.stack([cupy.searchsorted(graph.offsets, at, side="right") - 1, graph.high[at].astype(np.int64)])
    known = _neighbours(graph, low, np.unique(ends.get()))
    for (u, v), k in zip(ends.get().T.tolist(), low[at].get().tolist(), strict=True):
        (rows, others), (more_rows, more_others) = known[u], known[v]
        _, here, there = np.intersect1d(rows, more_rows, assume_unique=True, return_indices=True)
        least = np.minimum(others[here], more_others[there])
        if np.count_nonzero(least >= k) < k or np.count_nonzero(least > k) > k:
            raise ValueError(f"edge ({u}, {v}) does not have λ {k}")


def _neighbours(graph: WholeGraph, low: Any, vertices: Any) -> dict[int, tuple[Any, Any]]:
    """Vertex → its neighbours, and λ of the edges to them."""
    wanted = cupy.zeros(len(graph.offsets) - 1, np.bool_)
    wanted[cupy.asarray(vertices)] = True
    found: dict[int, list[tuple[Any, Any]]] = {int(v): [] for v in vertices}
    spans = cupy.stack([graph.offsets[cupy.asarray(vertices) + k] for k in (0, 1)]).get().T.tolist()
    for v, (begin, end) in zip(vertices.tolist(), spans, strict=True):
        found[v].append((graph.high[begin:end].get(), low[begin:end].get()))
    for first in range(0, len(low), _CHUNK):
        high = graph.high[first : first + _CHUNK]
        here = cupy.flatnonzero(wanted[high])
        ends = high[here].get()
        value = low[first : first + _CHUNK][here].get()
        other = (cupy.searchsorted(graph.offsets, here + first, side="right") - 1).astype(np.int32).get()
        by_end = np.argsort(ends, kind="stable")
        distinct, starts = np.unique(ends[by_end], return_index=True)
        for v, part in zip(distinct.tolist(), np.split(by_end, starts[1:]), strict=True):
            found[v].append((other[part], value[part]))
    return {v: tuple(map(np.concatenate, zip(*parts, strict=True))) for v, parts in found.items()}  # type: ignore[misc]
