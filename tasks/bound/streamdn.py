"""λ estimated from min-wise samples, for study: the semi-streaming method of DN-graphs.

The iterative bounding of Wang, Zhang, Tan and Tung (PVLDB 2010) with the supporting vertices of an edge estimated by
min-wise permutations instead of counted. Memory is a constant for each vertex, and edges are read in passes. Estimates
are no bounds: they are below and above λ.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels.cpu import minwise
from ...kernels.runtime.sizes import SizedArrays
from ..graph import Subgraph
from .intervals import Intervals

CLOSE = 0.1
"""An estimate within this share of λ is close."""


@dataclass(frozen=True)
class StreamError:
    """How far the estimates are from λ, over the edges with triangles. Errors are shares of λ, or of 1 if λ is 0."""

    median: float
    mean: float
    top_tenth: float
    """Median over the tenth of these edges with the highest λ."""
    exact: float
    """Share of edges whose estimate is λ."""
    close: float
    """Share of edges whose estimate is within a tenth of λ."""
    below: float
    """Share of edges whose estimate is below λ."""
    support: float
    """Median error of the estimated supports, as shares of the supports."""


@dataclass(frozen=True)
class StreamEstimate(SizedArrays):
    """Estimates of all edges. `len()` counts edges."""

    estimate: NDArray[np.int32]
    """[edges] estimated λ; 0 for edges without triangles."""
    passes: int
    """How often bounds were lowered, until none changed."""
    seconds: float
    error: StreamError | None
    """None if λ is not known."""

    def __len__(self) -> int:
        return len(self.estimate)


def estimate_stream(subgraph: Subgraph, known: Intervals, permutations: int) -> StreamEstimate:
    """Estimate λ of all edges of a graph, and compare it with λ. Edges without triangles are left out
    before samples are drawn. Takes 8 bytes of memory for each vertex and permutation.
    """
    started = time.perf_counter()
    low, high = kernels.to_host(subgraph.topology.low), kernels.to_host(subgraph.topology.high)
    vertex, edge = minwise.minwise_samples(low, high, subgraph.topology.vertices, permutations)
    matches = minwise.minwise_matches(low, high, vertex)
    degree = np.bincount(np.concatenate([low, high]), minlength=subgraph.topology.vertices)
    share = matches / permutations
    supports = share / (1 + share) * (degree[low] + degree[high])
    scale = supports / np.maximum(matches, 1)
    bound, passes = np.rint(supports).astype(np.int32), 0
    while True:
        lowered = minwise.lower_by_samples(low, high, vertex, edge, scale, bound)
        passes += 1
        if np.array_equal(lowered, bound):
            break
        bound = lowered
    number = kernels.to_host(subgraph.number)
    full = np.zeros(len(subgraph.support), np.int32)
    full[number] = bound
    seconds = time.perf_counter() - started
    error = None
    if known.low is known.high:
        exact = kernels.to_host(known.low)[number]
        error = error_of(bound, exact, supports, kernels.to_host(subgraph.support)[number])
    return StreamEstimate(full, passes, seconds, error)


def error_of(
    estimate: NDArray[np.int32], exact: NDArray[np.int32], supports: NDArray[np.float64], counted: NDArray[np.int32]
) -> StreamError:
    """The error of estimated λ and supports; arrays [edges], of edges with triangles."""
    if not len(exact):
        return StreamError(0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0)
    off = np.abs(estimate - exact) / np.maximum(exact, 1)
    top = np.argsort(-exact, kind="stable")[: -(-len(exact) // 10)]
    return StreamError(
        median=float(np.median(off)),
        mean=float(off.mean()),
        top_tenth=float(np.median(off[top])),
        exact=float((estimate == exact).mean()),
        close=float((off <= CLOSE).mean()),
        below=float((estimate < exact).mean()),
        support=float(np.median(np.abs(supports - counted) / np.maximum(counted, 1))),
    )
