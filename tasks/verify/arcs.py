"""Directed and weighted edges, and certificates of paths along them, with NumPy alone. Shares no code with ingest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import fsum
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..ids.display import parse_id
from ..tables.live import LiveFiles
from .input import batches, input_pieces
from .reading import Flaw, Int, positions, reject
from .tables import EdgeTable, VertexTable

Float = NDArray[np.float64]


@dataclass(frozen=True)
class Arcs:
    """Directed edges. An edge of an undirected graph is two of them."""

    source: Int
    """[arcs] positions in the vertex table."""
    target: Int
    weight: Float | None
    """[arcs] None if weights are not known, or there are none."""
    directed: bool = False


def arcs_of(edges: EdgeTable) -> Arcs:
    """The edges of a result as undirected edges without weights."""
    return Arcs(np.concatenate([edges.source, edges.target]), np.concatenate([edges.target, edges.source]), weight=None)


def arcs_of_input(path: str, manifest: dict[str, Any], vertices: VertexTable, live: LiveFiles | None = None) -> Arcs:
    """The edges of the input, each once, without self-loops, with directions and weights as the manifest says.

    Rows with an id that is not in the vertex table are left out. Raises as `check_input` does, and Flaw if an edge has
    several rows and the run allowed only one.
    """
    size = max(1, len(vertices.ids))
    directed, weights = manifest["input"].get("directed"), manifest["input"].get("weights")
    keys, values = [np.zeros(0, np.int64)], [np.zeros(0)]
    for batch in batches(input_pieces(path, manifest["input"], live), size):
        source, target = (positions(end, vertices.ids) for end in (batch.source, batch.target))
        kept = (source != target) & (source >= 0) & (target >= 0)
        source, target = source[kept], target[kept]
        if not directed:
            source, target = np.minimum(source, target), np.maximum(source, target)
        keys.append(source * size + target)
        if batch.weight is not None:
            values.append(batch.weight[kept])
    key, weight = np.concatenate(keys), None
    if weights is None:
        key = np.unique(key)
    else:
        key, weight = _combined(key, np.concatenate(values), weights["repeats"], vertices)
    source, target = key // size, key % size
    if directed:
        return Arcs(source, target, weight, directed=True)
    both = None if weight is None else np.concatenate([weight, weight])
    return Arcs(np.concatenate([source, target]), np.concatenate([target, source]), both)


def _combined(key: Int, weight: Float, rule: str, vertices: VertexTable) -> tuple[Int, Float]:
    by = np.argsort(key, kind="stable")
    key, weight = key[by], weight[by]
    starts = np.flatnonzero(np.diff(key, prepend=-1))
    counts = np.diff(starts, append=len(key))
    found = weight[starts]
    several = np.flatnonzero(counts > 1)
    if rule == "error" and len(several):
        one, other = divmod(int(key[starts[several[0]]]), len(vertices.ids))
        raise Flaw(f"edge ({vertices.name(one)}, {vertices.name(other)}) has several rows, which the run refused")
    rules: dict[str, Callable[[list[float]], float]] = {"sum": fsum, "min": min, "max": max}
    combine = rules.get(rule, fsum)
    for at in several.tolist():
        found[at] = combine(weight[starts[at] : starts[at] + counts[at]].tolist())
    return key[starts], found


def check_levels(arcs: Arcs, vertices: VertexTable, record: Mapping[str, Any]) -> None:
    """Levels: no edge skips one, and each vertex but the source has an edge from its parent, the smallest vertex of the
    level above. So a level is neither above nor below the fewest edges of a path. Raises Flaw.
    """
    level = vertices.added["level"].fill_null(-1).to_numpy()
    parent = positions(vertices.added["parent"], vertices.ids)
    _check_start(vertices, record["parameters"]["source"], "level", level, parent, level == 0)
    above, below = level[arcs.source], level[arcs.target]
    reject(
        (above >= 0) & ((below < 0) | (below > above + 1)),
        lambda at: _too_far(vertices, arcs, at, "level", above[at], below[at]),
    )
    tight = (above >= 0) & (below == above + 1)
    smallest = np.full(len(level), len(level))
    np.minimum.at(smallest, arcs.target[tight], arcs.source[tight])
    wanted = np.where(level > 0, smallest, np.where(level == 0, np.arange(len(level)), -1))
    reject(
        parent != wanted,
        lambda at: f"vertex {vertices.name(at)} of level {level[at]} has the parent {_named(vertices, parent[at])}",
    )


def check_distances(arcs: Arcs, vertices: VertexTable, record: Mapping[str, Any]) -> None:
    """Distances: no edge makes one smaller, and each vertex but the source has an edge from its predecessor that gives
    its distance; predecessors lead to the source. All sums are exact as float64, as the run adds them. Raises Flaw.
    """
    distance = vertices.added["distance"].fill_null(np.inf).to_numpy()
    before = positions(vertices.added["predecessor"], vertices.ids)
    assert arcs.weight is not None
    number = np.arange(len(distance))
    _check_start(vertices, record["parameters"]["source"], "distance", distance, before, before == number)
    reached = np.isfinite(distance)
    reject(reached != (before >= 0), lambda at: f"vertex {vertices.name(at)} has a distance or a predecessor, not both")
    reject(distance < 0, lambda at: f"vertex {vertices.name(at)} has the distance {distance[at]}")
    by_arc = distance[arcs.source] + arcs.weight
    reject(
        by_arc < distance[arcs.target],
        lambda at: _too_far(
            vertices, arcs, at, "distance", distance[arcs.source[at]], distance[arcs.target[at]], by_arc[at]
        ),
    )
    tight = before == number
    used = (before[arcs.target] == arcs.source) & (by_arc == distance[arcs.target])
    tight[arcs.target[used]] = True
    reject(
        reached & ~tight,
        lambda at: (
            f"vertex {vertices.name(at)} has the predecessor {_named(vertices, before[at])}, and no edge from it "
            f"gives its distance {distance[at]}"
        ),
    )
    first = np.where(reached, before, number)
    for _ in range(len(distance).bit_length()):
        first = first[first]
    reject(
        reached & (before[first] != first),
        lambda at: f"the predecessors of vertex {vertices.name(at)} do not lead to the source",
    )


def check_strong_components(arcs: Arcs, vertices: VertexTable, record: Mapping[str, Any]) -> None:
    """Strong components: a component has the smallest id in it. All its vertices are reached from that one, and reach
    it, by edges within the component. The other edges have no circle: removing components without in-edges removes
    all. Raises Flaw.
    """
    label = positions(vertices.added["strong_component"], vertices.ids)
    number = np.arange(len(label))
    reject(label < 0, lambda at: f"vertex {vertices.name(at)} has a strong_component that is no vertex")
    reject(
        (label[label] != label) | (label > number),
        lambda at: f"vertex {vertices.name(at)} has the strong_component {_named(vertices, label[at])}, not the least",
    )
    within = label[arcs.source] == label[arcs.target]
    for start, end, how in ((arcs.source, arcs.target, "from"), (arcs.target, arcs.source, "to")):
        start, end, reached = start[within], end[within], label == number
        while len(new := end[reached[start] & ~reached[end]]):
            reached[new] = True
            left = ~reached[end]
            start, end = start[left], end[left]
        reject(
            ~reached,
            lambda at, how=how: f"vertex {vertices.name(at)} has no path {how} its strong_component",  # type: ignore[misc]
        )
    start, end = label[arcs.source[~within]], label[arcs.target[~within]]
    while len(start):
        entered = np.zeros(len(label), np.bool_)
        entered[end] = True
        left = entered[start]
        if left.all():
            raise Flaw(f"the strong_component {vertices.name(start[0])} and others are on a circle: they are one")
        start, end = start[left], end[left]


def _check_start(
    vertices: VertexTable, source: str, name: str, value: NDArray[Any], before: Int, is_start: NDArray[np.bool_]
) -> None:
    """Check that the source, and no other vertex, is the start of paths, with the value 0."""
    start = ids_at(vertices, [source])[0]
    if value[start] != 0 or before[start] != start:
        raise Flaw(f"the source {vertices.name(start)} has the {name} {value[start]}, not 0, or is not its own parent")
    others = is_start.copy()
    others[start] = False
    reject(others, lambda at: f"vertex {vertices.name(at)} is a start of paths, and the source is another one")


def ids_at(vertices: VertexTable, texts: list[str]) -> list[int]:
    """The positions of typed ids in the vertex table. Raises Flaw for ids that are not there."""
    values = [parse_id(text, vertices.id_type) for text in texts]
    found = positions(pa.array(values, vertices.ids.type), vertices.ids).tolist()
    if -1 in found:
        raise Flaw(f"the manifest names the vertex {texts[found.index(-1)]!r}, which the table does not have")
    return [int(at) for at in found]


def _named(vertices: VertexTable, at: int) -> str:
    return "null" if at < 0 else vertices.name(at)


def _too_far(vertices: VertexTable, arcs: Arcs, at: int, name: str, one: Any, other: Any, by_arc: Any = None) -> str:
    ends = f"{vertices.name(arcs.source[at])} to {vertices.name(arcs.target[at])}"
    least = f" = {by_arc} by it" if by_arc is not None else ""
    return f"the edge from {ends} leads from {name} {one} to {name} {other}, which is too large{least}"
