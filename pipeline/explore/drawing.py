"""The drawing of a DN-graph with its surroundings: what is drawn of it, where, and what is left out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...tasks.spelling import spelled
from ..groups.attributes import labels_of
from ..lookup import Found
from ..rows import DNGraph
from .layout import forces, ring
from .queries import Queries

__all__ = ["MOST_EDGES", "MOST_NEIGHBOURS", "MOST_VERTICES", "draw"]

MOST_VERTICES = 2_000
"""Vertices of a DN-graph that are drawn; of a larger one, those around one of its vertices."""
MOST_EDGES = 20_000
"""Edges of a DN-graph that are drawn."""
MOST_NEIGHBOURS = 200
"""Vertices outside that are drawn."""
MOST_TIES = 20
"""Edges that are drawn to one vertex outside."""
MOST_BETWEEN = 2_000
"""Edges that are drawn between two vertices of a DN-graph that are not its own, their λ being smaller."""

MOST_ROWS = 50_000_000
"""Rows of edges that one search looks at: some seconds."""
MOST_FOUND = 2_000_000
"""Edges that one search holds."""
MOST_MEMBERS = 500_000
"""Vertices of a DN-graph that are looked at to choose those that are drawn."""

Ends = NDArray[np.int64]


def draw(queries: Queries, group: DNGraph) -> dict[str, Any]:
    """The drawing of a DN-graph, ready for JSON; ids are strings.

    `vertices`: columns id, label (null without one), x, y, lambda, edges (drawn or not, as far as found), the
    DN-graph's own first, then its neighbours; `members`: how many are its own; `edges`: columns source, target (places
    in `vertices`), lambda, the DN-graph's own first; `own_edges`: how many are its own; `notices`: what is left out, in
    sentences.
    """
    notices: list[str] = []
    vertices = _chosen(queries, group, notices)
    own = queries.edges_among(vertices, group.lam, MOST_ROWS, MOST_FOUND)
    source, target = (_places(column, vertices) for column in own.table.columns[:2])
    if own.more_rows or own.full:
        total = queries.result.manifest.counts.edges
        notices.append(f"Only {len(source):,} of its edges were looked at, in {own.rows:,} of {total:,} rows.")
    degree = np.bincount(np.concatenate([source, target]), minlength=len(vertices))
    source, target = _some(source, target, notices)
    places = forces(len(vertices), source, target)

    around = queries.edges_around(vertices, group.lam, MOST_ROWS, MOST_FOUND)
    others = _Others(around, vertices)
    neighbours = others.neighbours(MOST_NEIGHBOURS)
    other_source, other_target, other_lambda = others.drawn(neighbours)
    _tell(queries, around, others, neighbours, len(other_source), notices)
    towards = other_target >= len(vertices)
    anchors = np.zeros((len(neighbours), 2))
    np.add.at(anchors, other_target[towards] - len(vertices), places[other_source[towards]])
    places = np.concatenate([places, ring(anchors)]).round(4)
    ids = [*vertices.to_pylist(), *others.names(neighbours)]
    return {
        "members": len(vertices),
        "own_edges": len(source),
        "vertices": {
            "id": [str(spelled(id)) for id in ids],
            "label": labels_of(queries.result, ids),
            "x": places[:, 0].tolist(),
            "y": places[:, 1].tolist(),
            "lambda": [group.lam] * len(vertices) + others.strongest[neighbours].tolist(),
            "edges": degree.tolist() + others.counts[neighbours].tolist(),
        },
        "edges": {
            "source": source.tolist() + other_source.tolist(),
            "target": target.tolist() + other_target.tolist(),
            "lambda": [group.lam] * len(source) + other_lambda.tolist(),
        },
        "notices": notices,
    }


def _tell(queries: Queries, around: Found, others: _Others, neighbours: Ends, drawn: int, notices: list[str]) -> None:
    """What is missing of the surroundings."""
    if around.more_rows or around.full:
        total = queries.result.manifest.counts.edges
        notices.append(f"Neighbours were looked for in {around.rows:,} of {total:,} edges: there may be more.")
    if len(neighbours) < len(others.counts):
        notices.append(
            f"{len(neighbours):,} of {len(others.counts):,} neighbours outside are drawn, those with most edges to it."
        )
    wanted = len(others) - int(others.counts.sum()) + int(others.counts[neighbours].sum())
    if drawn < wanted:
        notices.append(
            f"{drawn:,} of {wanted:,} edges that are not its own are drawn, those of the largest λ of each neighbour."
        )


def _chosen(queries: Queries, group: DNGraph, notices: list[str]) -> pa.Array:
    """The vertices to draw, ascending: all, or those nearest to the one that has most edges."""
    if group.vertices <= MOST_VERTICES:
        return queries.members(group.id, MOST_VERTICES)
    members = queries.members(group.id, MOST_MEMBERS)
    found = queries.edges_among(members, group.lam, MOST_ROWS, MOST_FOUND)
    source, target = (_places(column, members) for column in found.table.columns[:2])
    nearest = _ball(len(members), source, target, MOST_VERTICES)
    centre = spelled(members[int(nearest[0])].as_py())
    notices.append(
        f"{group.vertices:,} vertices are too many for one drawing: these are {len(nearest):,} of them, "
        f"around vertex {centre}."
    )
    return members.take(pa.array(np.sort(nearest)))


def _ball(vertices: int, source: Ends, target: Ends, most: int) -> Ends:
    """The vertex with most edges, then its neighbours, then theirs, those with most edges first; at most `most`."""
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


def _some(source: Ends, target: Ends, notices: list[str]) -> tuple[Ends, Ends]:
    """Edges to draw: all, or some chosen at random, the same every time."""
    if len(source) <= MOST_EDGES:
        return source, target
    notices.append(f"{MOST_EDGES:,} of its {len(source):,} edges are drawn, chosen at random.")
    chosen = np.sort(np.random.default_rng(0).choice(len(source), MOST_EDGES, replace=False))
    return source[chosen], target[chosen]


def _places(ids: pa.ChunkedArray, vertices: pa.Array) -> Ends:
    """The place of each id among the vertices, -1 for one that is none of them."""
    places: Ends = pc.fill_null(pc.index_in(ids, vertices), -1).to_numpy().astype(np.int64)
    return places


class _Others:
    """Edges of the vertices drawn that are not the DN-graph's, and the neighbours outside that they lead to."""

    def __init__(self, around: Found, vertices: pa.Array) -> None:
        low, high = around.table.columns[:2]
        source, target = _places(low, vertices), _places(high, vertices)
        lam: Ends = around.table["lambda"].to_numpy().astype(np.int64)
        between = (source >= 0) & (target >= 0)
        self._own = len(vertices)
        self._between = source[between], target[between], lam[between]
        self._member, self._lambda = np.maximum(source, target)[~between], lam[~between]
        outside = pc.if_else(pa.array(source >= 0), high, low).filter(pa.array(~between))
        coded = pa.chunked_array(outside).combine_chunks().dictionary_encode()
        self._names = coded.dictionary
        self._neighbour: Ends = coded.indices.to_numpy().astype(np.int64)
        self.counts: Ends = np.bincount(self._neighbour, minlength=len(self._names))
        """Edges to each neighbour."""
        self.strongest: Ends = np.zeros(len(self._names), np.int64)
        """The largest λ of these."""
        np.maximum.at(self.strongest, self._neighbour, self._lambda)

    def __len__(self) -> int:
        return len(self._between[0]) + len(self._member)

    def neighbours(self, most: int) -> Ends:
        """The neighbours with most edges, equal ones by λ and id; at most `most`."""
        by_id = pc.array_sort_indices(self._names).to_numpy().astype(np.int64)
        order: Ends = by_id[np.lexsort((-self.strongest[by_id], -self.counts[by_id]))]
        return order[:most]

    def names(self, neighbours: Ends) -> list[int | str]:
        """Their ids."""
        return list(self._names.take(pa.array(neighbours)).to_pylist())

    def drawn(self, neighbours: Ends) -> tuple[Ends, Ends, Ends]:
        """The edges of the largest λ, between vertices drawn and to each of these neighbours: two places, and λ."""
        place = np.full(len(self._names), -1, np.int64)
        place[neighbours] = np.arange(len(neighbours))
        to = place[self._neighbour]
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
