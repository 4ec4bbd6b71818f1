"""The drawing of a group and its neighbours: what is drawn, the positions, and what is left out.

The positions depend on the edges only, and take a fixed amount of work.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...tasks.ids.display import display_id
from ..queries.attributes import labels_of
from ..results.lookup import Group, SearchResult
from .queries import Queries

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


MOST_VERTICES = 2_000
"""Vertices of a group that are drawn. Of a larger group, the vertices around one vertex are drawn."""
MOST_EDGES = 20_000
"""Edges of a group that are drawn."""
MOST_NEIGHBOURS = 200
"""Neighbours outside the group that are drawn."""
MOST_TIES = 20
"""Edges that are drawn to one neighbour."""
MOST_BETWEEN = 2_000
"""Edges of smaller λ that are drawn between two vertices of the DN-graph."""

MOST_ROWS = 50_000_000
"""Rows of edges that one search reads, which takes seconds."""
MOST_FOUND = 2_000_000
"""Edges that one search returns."""
MOST_MEMBERS = 500_000
"""Vertices of a group among which the drawn ones are chosen."""

Ends = NDArray[np.int64]


def draw(queries: Queries, group: Group) -> dict[str, Any]:
    """The drawing of a DN-graph, or of a group of a program, as JSON values; ids are strings.

    - `vertices`: columns id, label (null without one), x, y, lambda (the largest of the edges that were found), edges
      (all that were found, drawn or not). The group's vertices come first, then its neighbours.
    - `members`: the number of the group's vertices among them.
    - `edges`: columns source, target (indices into `vertices`), lambda. The group's edges come first.
    - `own_edges`: the number of the group's edges among them.
    - `notices`: sentences that say what is left out.
    """
    notices: list[str] = []
    vertices = _chosen(queries, group, notices)
    own = queries.edges_among(vertices, group, MOST_ROWS, MOST_FOUND)
    source, target = (_indices(column, vertices) for column in own.table.columns[:2])
    lam: Ends = own.table["lambda"].to_numpy().astype(np.int64)
    strongest = np.full(len(vertices), group.k if queries.of_lambda else 0, np.int64)
    for ends in (source, target):
        np.maximum.at(strongest, ends, lam)
    if own.more_rows or own.full:
        total = queries.result.manifest.counts.edges
        notices.append(f"Only {len(source):,} of its edges were read, from {own.rows:,} of {total:,} rows.")
    degree = np.bincount(np.concatenate([source, target]), minlength=len(vertices))
    source, target, lam = _sample(source, target, lam, notices)
    positions = forces(len(vertices), source, target)

    around = queries.edges_around(vertices, group, MOST_ROWS, MOST_FOUND)
    others = _Surroundings(around, vertices)
    neighbours = others.neighbours(MOST_NEIGHBOURS)
    other_source, other_target, other_lambda = others.drawn(neighbours)
    _add_notices(queries, around, others, neighbours, len(other_source), notices)
    outwards = other_target >= len(vertices)
    anchors = np.zeros((len(neighbours), 2))
    np.add.at(anchors, other_target[outwards] - len(vertices), positions[other_source[outwards]])
    positions = np.concatenate([positions, ring(anchors)]).round(4)
    ids = [*vertices.to_pylist(), *others.ids(neighbours)]
    return {
        "members": len(vertices),
        "own_edges": len(source),
        "vertices": {
            "id": [str(display_id(id)) for id in ids],
            "label": labels_of(queries.result, ids),
            "x": positions[:, 0].tolist(),
            "y": positions[:, 1].tolist(),
            "lambda": strongest.tolist() + others.strongest[neighbours].tolist(),
            "edges": degree.tolist() + others.counts[neighbours].tolist(),
        },
        "edges": {
            "source": source.tolist() + other_source.tolist(),
            "target": target.tolist() + other_target.tolist(),
            "lambda": lam.tolist() + other_lambda.tolist(),
        },
        "notices": notices,
    }


def _add_notices(
    queries: Queries, around: SearchResult, others: _Surroundings, neighbours: Ends, drawn: int, notices: list[str]
) -> None:
    """Add notices about neighbours and their edges that are not drawn."""
    if around.more_rows or around.full:
        total = queries.result.manifest.counts.edges
        notices.append(f"Only {around.rows:,} of {total:,} edges were searched for neighbours. There may be more.")
    if len(neighbours) < len(others.counts):
        notices.append(
            f"{len(neighbours):,} of {len(others.counts):,} neighbours are drawn: those with the most edges to it."
        )
    drawable = len(others) - int(others.counts.sum()) + int(others.counts[neighbours].sum())
    if drawn < drawable:
        notices.append(f"{drawn:,} of {drawable:,} edges outside the group are drawn: those of the largest λ.")


def _chosen(queries: Queries, group: Group, notices: list[str]) -> pa.Array:
    """The vertices to draw, ascending: all, or those nearest to the vertex with the most edges."""
    if group.vertices <= MOST_VERTICES:
        return queries.members(group, MOST_VERTICES)
    members = queries.members(group, MOST_MEMBERS)
    found = queries.edges_among(members, group, MOST_ROWS, MOST_FOUND)
    source, target = (_indices(column, members) for column in found.table.columns[:2])
    nearest = _ball(len(members), source, target, MOST_VERTICES)
    centre = display_id(members[int(nearest[0])].as_py())
    notices.append(
        f"{group.vertices:,} vertices are too many for one drawing. It shows {len(nearest):,} of them, around vertex "
        f"{centre}."
    )
    return members.take(pa.array(np.sort(nearest)))


def _ball(vertices: int, source: Ends, target: Ends, most: int) -> Ends:
    """The first `most` vertices of a breadth-first search from the vertex with the most edges.

    Within a layer, vertices with more edges come first.
    """
    ends, others = np.concatenate([source, target]), np.concatenate([target, source])
    degree = np.bincount(ends, minlength=vertices)
    others = others[np.argsort(ends, kind="stable")]
    start = np.concatenate([[0], np.cumsum(degree)])
    seen = np.zeros(vertices, bool)
    layer = np.array([np.argmax(degree)])
    seen[layer] = True
    chosen = layer
    while len(layer) and len(chosen) < most:
        found = np.unique(np.concatenate([others[start[v] : start[v + 1]] for v in layer.tolist()]))
        found = found[~seen[found]]
        layer = found[np.argsort(-degree[found], kind="stable")]
        seen[layer] = True
        chosen = np.concatenate([chosen, layer])
    return chosen[:most]


def _sample(source: Ends, target: Ends, lam: Ends, notices: list[str]) -> tuple[Ends, Ends, Ends]:
    """The edges to draw, with their λ: all, or a random sample with a fixed seed."""
    if len(source) <= MOST_EDGES:
        return source, target, lam
    notices.append(f"{MOST_EDGES:,} of its {len(source):,} edges are drawn, chosen at random.")
    chosen = np.sort(np.random.default_rng(0).choice(len(source), MOST_EDGES, replace=False))
    return source[chosen], target[chosen], lam[chosen]


def _indices(ids: pa.ChunkedArray, vertices: pa.Array) -> Ends:
    """The index of each id in `vertices`, or -1."""
    indices: Ends = pc.fill_null(pc.index_in(ids, vertices), -1).to_numpy().astype(np.int64)
    return indices


class _Surroundings:
    """The edges of the drawn vertices that are not the group's own, and the neighbours at their other ends."""

    def __init__(self, around: SearchResult, vertices: pa.Array) -> None:
        low, high = around.table.columns[:2]
        source, target = _indices(low, vertices), _indices(high, vertices)
        lam: Ends = around.table["lambda"].to_numpy().astype(np.int64)
        between = (source >= 0) & (target >= 0)
        self._own = len(vertices)
        self._between = source[between], target[between], lam[between]
        self._member, self._lambda = np.maximum(source, target)[~between], lam[~between]
        outside = pc.if_else(pa.array(source >= 0), high, low).filter(pa.array(~between))
        coded = pa.chunked_array(outside).combine_chunks().dictionary_encode()
        self._ids = coded.dictionary
        self._neighbour: Ends = coded.indices.to_numpy().astype(np.int64)
        self.counts: Ends = np.bincount(self._neighbour, minlength=len(self._ids))
        """Edges to each neighbour."""
        self.strongest: Ends = np.zeros(len(self._ids), np.int64)
        """The largest λ of the edges to each neighbour."""
        np.maximum.at(self.strongest, self._neighbour, self._lambda)

    def __len__(self) -> int:
        return len(self._between[0]) + len(self._member)

    def neighbours(self, most: int) -> Ends:
        """The `most` neighbours with the most edges; ties go to the larger λ, then to the smaller id."""
        by_id = pc.array_sort_indices(self._ids).to_numpy().astype(np.int64)
        order: Ends = by_id[np.lexsort((-self.strongest[by_id], -self.counts[by_id]))]
        return order[:most]

    def ids(self, neighbours: Ends) -> list[int | str]:
        """The ids of the neighbours with these indices."""
        return list(self._ids.take(pa.array(neighbours)).to_pylist())

    def drawn(self, neighbours: Ends) -> tuple[Ends, Ends, Ends]:
        """The edges of the largest λ between drawn vertices and to each of `neighbours`: source, target, λ.

        Ends are indices into the vertices of the drawing.
        """
        position = np.full(len(self._ids), -1, np.int64)
        position[neighbours] = np.arange(len(neighbours))
        to = position[self._neighbour]
        order = np.lexsort((self._member, -self._lambda, to))
        order = order[to[order] >= 0]
        rank = np.arange(len(order)) - np.searchsorted(to[order], to[order])
        order = order[rank < MOST_TIES]
        first = np.argsort(-self._between[2], kind="stable")[:MOST_BETWEEN]
        source, target, lam = (column[first] for column in self._between)
        return (
            np.concatenate([source, self._member[order]]),
            np.concatenate([target, self._own + to[order]]),
            np.concatenate([lam, self._lambda[order]]),
        )
