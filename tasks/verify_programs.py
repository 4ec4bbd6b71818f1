"""Checks of the columns that programs added to the vertices, from the edges of the result, with NumPy alone.

Components and cores do not depend on the ways that edges lead. What does is checked where edges lead both ways: the
result does not say more of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .verify_tables import EdgeTable, Flaw, Int, VertexTable, none, positions

__all__ = ["check_programs"]

ROUNDING = 1e-12
"""By how much sums of ranks may differ that are added up in another order."""

Check = Callable[[EdgeTable, VertexTable, Mapping[str, Any]], None]


def check_programs(manifest: dict[str, Any], edges: EdgeTable, vertices: VertexTable) -> tuple[str, bool]:
    """Check every column whose values the result can prove; the detail names them, and the others. Raises Flaw."""
    checked, left = [], []
    for record in manifest["programs"]:
        name = record["name"]
        check = _ANY_WAY.get(name) or (None if manifest["input"].get("directed") else _BOTH_WAYS.get(name))
        if check is None:
            left.append(name)
        else:
            check(edges, vertices, record)
            checked.append(name)
    others = f"; not checked, as edges lead one way: {', '.join(left)}" if left else ""
    return f"as the edges say: {', '.join(checked) or 'none'}{others}", True


def _components(edges: EdgeTable, vertices: VertexTable, record: Mapping[str, Any]) -> None:
    """The least vertex spreads along edges, and along what it has reached before."""
    least = np.arange(len(vertices.ids))
    while True:
        before = least.copy()
        np.minimum.at(least, edges.source, before[edges.target])
        np.minimum.at(least, edges.target, before[edges.source])
        least = least[least]
        if np.array_equal(least, before):
            break
    _same_ids(vertices, "weak_component", least)


def _labels(edges: EdgeTable, vertices: VertexTable, record: Mapping[str, Any]) -> None:
    """All supersteps once more: labels are sorted and counted."""
    ends, others = _both_ways(edges)
    label = np.arange(len(vertices.ids))
    for _ in range(record["supersteps"]):
        got = label[others]
        by = np.lexsort((got, ends))
        at, held = ends[by], got[by]
        starts = np.flatnonzero(np.diff(at, prepend=-1) | np.diff(held, prepend=-1))
        count = np.diff(starts, append=len(at))
        best = np.lexsort((held[starts], -count, at[starts]))
        first = np.flatnonzero(np.diff(at[starts][best], prepend=-1))
        label = label.copy()
        label[at[starts][best][first]] = held[starts][best][first]
    _same_ids(vertices, "label", label)


def _coreness(edges: EdgeTable, vertices: VertexTable, record: Mapping[str, Any]) -> None:
    """Vertices of the least degree leave, and the others lose a neighbour by each."""
    ends, others = _both_ways(edges)
    degree = np.bincount(ends, minlength=len(vertices.ids))
    core = np.zeros(len(vertices.ids), np.int64)
    left, level = np.ones(len(vertices.ids), np.bool_), 0
    while left.any():
        level = max(level, int(degree[left].min()))
        leaving = left & (degree <= level)
        core[leaving] = level
        left &= ~leaving
        gone = leaving[others]
        degree -= np.bincount(ends[gone], minlength=len(degree))
        kept = left[ends] & left[others]
        ends, others = ends[kept], others[kept]
    found = _numbers(vertices, "coreness")
    none(found != core, lambda at: f"vertex {vertices.name(at)} is of coreness {core[at]}, not {found[at]}")


def _clustering(edges: EdgeTable, vertices: VertexTable, record: Mapping[str, Any]) -> None:
    """From the degrees and triangles, which are checked."""
    pairs = vertices.degree * (vertices.degree - 1)
    share = 2 * vertices.triangles / np.maximum(pairs, 1)
    found = _numbers(vertices, "clustering")
    none(found != share, lambda at: f"vertex {vertices.name(at)} has the clustering {share[at]}, not {found[at]}")


def _pagerank(edges: EdgeTable, vertices: VertexTable, record: Mapping[str, Any]) -> None:
    """One more superstep moves ranks by less than the tolerance; or, of a number of them, all once more."""
    ends, others = _both_ways(edges)
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
        wanted, most = step(found), parameters["tolerance"] + ROUNDING
    else:
        wanted, most = np.full(len(found), 1 / total), ROUNDING
        for _ in range(record["supersteps"]):
            wanted = step(wanted)
    moved = float(np.abs(wanted - found).sum())
    if not moved <= most:
        raise Flaw(f"ranks are off by {moved:.3g} in all, over {most:.3g}")


_ANY_WAY: Mapping[str, Check] = {"components": _components, "coreness": _coreness}
_BOTH_WAYS: Mapping[str, Check] = {"pagerank": _pagerank, "labels": _labels, "clustering": _clustering}


def _both_ways(edges: EdgeTable) -> tuple[Int, Int]:
    return np.concatenate([edges.source, edges.target]), np.concatenate([edges.target, edges.source])


def _numbers(vertices: VertexTable, name: str) -> NDArray[Any]:
    found: NDArray[Any] = vertices.added[name].to_numpy()
    return found


def _same_ids(vertices: VertexTable, name: str, wanted: Int) -> None:
    found = positions(vertices.added[name], vertices.ids)
    none(
        found != wanted,
        lambda at: (
            f"vertex {vertices.name(at)} has the {name} {vertices.added[name][at].as_py()!r}, "
            f"not {vertices.name(int(wanted[at]))}"
        ),
    )
