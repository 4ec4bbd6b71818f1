"""The positions of the vertices of a drawing. They depend on the edges only, and take a fixed amount of work."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_WORK = 60_000_000
"""Pairs of vertices over all iterations, which take half a second."""
_ITERATIONS = 30, 150
_ROWS = 128
"""Vertices whose distances to all others are computed at once, so that they fit the CPU's cache."""
_RING = 100
"""Vertices on one ring, at most."""


def forces(vertices: int, source: NDArray[np.int64], target: NDArray[np.int64]) -> NDArray[np.float64]:
    """Positions in the unit disc, shape (vertices, 2). Ends of an edge attract each other, all vertices repel.

    The method of Fruchterman and Reingold (1991). It starts from the leading eigenvectors of the graph and so needs few
    iterations. Time and memory grow with vertices², which the caller must bound.
    """
    if vertices < 2:
        return np.zeros((vertices, 2))
    positions = _spectral(vertices, source, target)
    ends, others = np.concatenate([source, target]), np.concatenate([target, source])
    pull = 1 / np.sqrt(np.maximum(1, np.bincount(ends, minlength=vertices)))
    strength = pull[ends] * pull[others]  # without this factor hubs pull all vertices into one point
    distance = np.sqrt(1 / vertices)
    least, most = _ITERATIONS
    iterations = int(np.clip(_WORK // vertices**2, least, most))
    for step in range(iterations):
        push = _repulsion(positions) * distance**2
        along = positions[others] - positions[ends]
        weight = np.hypot(*along.T) / distance * strength * 4
        for axis in (0, 1):
            push[:, axis] += np.bincount(ends, weights=along[:, axis] * weight, minlength=vertices)
        push -= positions * 0.5  # keeps parts that no edge connects close to the centre
        length = np.maximum(np.hypot(*push.T), 1e-12)
        limit = 0.15 * (1 - step / iterations) ** 1.5 + 1e-3
        positions += push * (np.minimum(length, limit) / length)[:, None]
    positions -= positions.mean(axis=0)
    scaled: NDArray[np.float64] = positions / max(np.hypot(*positions.T).max(), 1e-12)
    return scaled


def ring(anchors: NDArray[np.float64], inner: float = 1.2, gap: float = 0.2) -> NDArray[np.float64]:
    """Positions on rings around the unit disc, shape (n, 2): evenly spaced, in the order of the angles of `anchors`."""
    count = len(anchors)
    order = np.argsort(np.arctan2(anchors[:, 1], anchors[:, 0]), kind="stable")
    rings = -(-count // _RING) or 1
    rank = np.empty(count, np.int64)
    rank[order] = np.arange(count)
    angle = 2 * np.pi * rank / max(count, 1) - np.pi
    radius = inner + gap * (rank % rings)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


def _spectral(vertices: int, source: NDArray[np.int64], target: NDArray[np.int64]) -> NDArray[np.float64]:
    """Ranks by two leading eigenvectors of the lazy random walk, by subspace iteration, with noise that breaks ties."""
    noise = np.random.default_rng(0)
    vectors = noise.standard_normal((vertices, 2))
    degree = np.maximum(1, np.bincount(np.concatenate([source, target]), minlength=vertices)).astype(float)
    for _ in range(60):
        vectors -= (vectors * degree[:, None]).sum(axis=0) / degree.sum()  # remove the first eigenvector, a constant
        vectors = np.linalg.qr(vectors * np.sqrt(degree)[:, None])[0] / np.sqrt(degree)[:, None]
        walked = np.empty_like(vectors)
        for axis in (0, 1):
            sums = np.bincount(source, weights=vectors[target, axis], minlength=vertices)
            sums += np.bincount(target, weights=vectors[source, axis], minlength=vertices)
            walked[:, axis] = sums
        vectors = (vectors + walked / degree[:, None]) / 2
    ranks = np.argsort(np.argsort(vectors, axis=0, kind="stable"), axis=0, kind="stable")
    positions: NDArray[np.float64] = 1.4 * (ranks + 0.5) / vertices - 0.7 + 0.02 * noise.standard_normal(ranks.shape)
    return positions


def _repulsion(positions: NDArray[np.float64]) -> NDArray[np.float64]:
    """For each vertex the sum over all others of the vector from the other vertex, divided by its length squared."""
    x, y = positions.T.astype(np.float32)
    push = np.empty_like(positions)
    for start in range(0, len(positions), _ROWS):
        rows = slice(start, start + _ROWS)
        across, up = x[rows, None] - x, y[rows, None] - y
        inverse = across * across
        inverse += up * up
        inverse += np.float32(1e-6)
        np.reciprocal(inverse, out=inverse)
        # einsum and not a matrix product: BLAS would start threads, which are slower on a busy machine.
        push[rows, 0] = np.einsum("ij,ij->i", across, inverse)
        push[rows, 1] = np.einsum("ij,ij->i", up, inverse)
    return push
