"""Checks of the vertex columns of programs, from the edges of the result, with NumPy alone.

Components and cores do not depend on the directions of edges. Columns that do are checked for undirected graphs only:
the result does not store directions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .reading import Flaw, Int, positions, reject
from .tables import EdgeTable, VertexTable

ROUNDING = 1e-12
"""Tolerance for sums of ranks that are added in another order."""

Check = Callable[[EdgeTable, VertexTable, Mapping[str, Any]], None]


def check_programs(manifest: dict[str, Any], edges: EdgeTable, vertices: VertexTable) -> tuple[str, bool]:
    """Check each program whose column can be checked. The detail lists checked and unchecked programs. Raises Flaw."""
    checked, left = [], []
    for record in manifest["programs"]:
        name = record["name"]
        check = _DIRECTED.get(name) or (None if manifest["input"].get("directed") else _UNDIRECTED.get(name))
        if record["parameters"].get("weighted") or record["parameters"].get("personal"):
            check = None
        if check is None:
            left.append(name)
        else:
            check(edges, vertices, record)
            checked.append(name)
    others = f"; not checked: {', '.join(left)}" if left else ""
    return f"as the edges say: {', '.join(checked) or 'none'}{others}", True


def _components(edges: EdgeTable, vertices: VertexTable, record: Mapping[str, Any]) -> None:
    """Propagate the smallest vertex along edges, with pointer jumping."""
    least = np.arange(len(vertices.ids))
    while True:
        before = least.copy()
        np.minimum.at(least, edges.source, before[edges.target])
        np.minimum.at(least, edges.target, before[edges.source])
        least = least[least]
        if np.array_equal(least, before):
            break
    _compare_ids(vertices, "weak_component", least)


def _labels(edges: EdgeTable, vertices: VertexTable, record: Mapping[str, Any]) -> None:
    """Repeat all supersteps, by sorting and counting labels."""
    ends, others = _both_directions(edges)
    label = np.arange(len(vertices.ids))
    for _ in range(record["supersteps"]):
        got = label[others]
        by = np.lexsort((got, ends))
        at, labels = ends[by], got[by]
        starts = np.flatnonzero(np.diff(at, prepend=-1) | np.diff(labels, prepend=-1))
        count = np.diff(starts, append=len(at))
        best = np.lexsort((labels[starts], -count, at[starts]))
        first = np.flatnonzero(np.diff(at[starts][best], prepend=-1))
        label = label.copy()
        label[at[starts][best][first]] = labels[starts][best][first]
    _compare_ids(vertices, "label", label)


def _coreness(edges: EdgeTable, vertices: VertexTable, record: Mapping[str, Any]) -> None:
    """Peel the vertices of smallest degree."""
    ends, others = _both_directions(edges)
    degree = np.bincount(ends, minlength=len(vertices.ids))
    core = np.zeros(len(vertices.ids), np.int64)
    left, level = np.ones(len(vertices.ids), np.bool_), 0
    while left.any():
        level = max(level, int(degree[left].min()))
        removed = left & (degree <= level)
        core[removed] = level
        left &= ~removed
        gone = removed[others]
        degree -= np.bincount(ends[gone], minlength=len(degree))
        kept = left[ends] & left[others]
        ends, others = ends[kept], others[kept]
    found = _numbers(vertices, "coreness")
    reject(found != core, lambda at: f"vertex {vertices.name(at)} is of coreness {core[at]}, not {found[at]}")


def _clustering(edges: EdgeTable, vertices: VertexTable, record: Mapping[str, Any]) -> None:
    """Compute from degrees and triangles, which are checked elsewhere."""
    pairs = vertices.degree * (vertices.degree - 1)
    share = 2 * vertices.triangles / np.maximum(pairs, 1)
    found = _numbers(vertices, "clustering")
    reject(found != share, lambda at: f"vertex {vertices.name(at)} has the clustering {share[at]}, not {found[at]}")


def _pagerank(edges: EdgeTable, vertices: VertexTable, record: Mapping[str, Any]) -> None:
    """One more superstep must change ranks by less than the tolerance. With `iterations`, repeat all supersteps."""
    ends, others = _both_directions(edges)
    found, parameters = _numbers(vertices, "pagerank"), record["parameters"]
    total, degree = max(len(found), 1), vertices.degree

    def step(rank: NDArray[np.float64]) -> NDArray[np.float64]:
        sent = np.where(degree > 0, rank, 0) / np.maximum(degree, 1)
        got: NDArray[np.float64] = (
            np.bincount(ends, weights=sent[others], minlength=len(rank)) + rank[degree == 0].sum() / total
        )
        damping = float(parameters["damping"])
        return (1 - damping) / total + damping * got

    if parameters["iterations"] is None:
        expected, most = step(found), parameters["tolerance"] + ROUNDING
    else:
        expected, most = np.full(len(found), 1 / total), ROUNDING
        for _ in range(record["supersteps"]):
            expected = step(expected)
    moved = float(np.abs(expected - found).sum())
    if not moved <= most:
        raise Flaw(f"ranks are off by {moved:.3g} in all, over {most:.3g}")


_DIRECTED: Mapping[str, Check] = {"components": _components, "coreness": _coreness}
_UNDIRECTED: Mapping[str, Check] = {"pagerank": _pagerank, "labels": _labels, "clustering": _clustering}


def _both_directions(edges: EdgeTable) -> tuple[Int, Int]:
    return np.concatenate([edges.source, edges.target]), np.concatenate([edges.target, edges.source])


def _numbers(vertices: VertexTable, name: str) -> NDArray[Any]:
    column = vertices.added[name]
    if column.null_count:
        raise Flaw(f"vertices: {name} has {column.null_count} nulls")
    found: NDArray[Any] = column.to_numpy()
    return found


def _compare_ids(vertices: VertexTable, name: str, expected: Int) -> None:
    found = positions(vertices.added[name], vertices.ids)
    reject(
        found != expected,
        lambda at: (
            f"vertex {vertices.name(at)} has the {name} {vertices.added[name][at].as_py()!r}, "
            f"not {vertices.name(int(expected[at]))}"
        ),
    )
