"""Directed and weighted edges of a result or of its input, with NumPy alone. Shares no code with ingest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import fsum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..tables.live import LiveFiles
from .input import batches, input_pieces
from .reading import Flaw, Int, positions
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
    weight_of_pair = weight[starts]
    several = np.flatnonzero(counts > 1)
    if rule == "error" and len(several):
        one, other = divmod(int(key[starts[several[0]]]), len(vertices.ids))
        raise Flaw(f"edge ({vertices.name(one)}, {vertices.name(other)}) has several rows, which the run refused")
    rules: dict[str, Callable[[list[float]], float]] = {"sum": fsum, "min": min, "max": max}
    combine = rules.get(rule, fsum)
    for at in several.tolist():
        weight_of_pair[at] = combine(weight[starts[at] : starts[at] + counts[at]].tolist())
    return key[starts], weight_of_pair
