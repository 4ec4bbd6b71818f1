"""The components of the graph, from the outlines of all buckets, which are joined a few at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels.graph import MAX_LOCAL_EDGES, Nested
from ...kernels.runtime.sizes import SizedArrays
from ..errors import OutOfRoom
from ..ids import order
from ..ids.order import Ints
from ..messages import Bundle, Payload, bundle
from .tree import ROOT, Outline, subtree_minima, subtree_sums


@dataclass(frozen=True)
class HierarchyRows(SizedArrays):
    """Rows of the hierarchy, sorted by id. `len()` counts them."""

    id: NDArray[np.int64]
    level: NDArray[np.int32]
    """k"""
    parent: NDArray[np.int64]
    """Id of the parent; -1 without one."""
    vertices: NDArray[np.int64]
    edges: NDArray[np.int64]
    is_leaf: NDArray[np.bool_]
    """Whether the component contains no smaller one."""

    def __len__(self) -> int:
        return len(self.id)

    def __getitem__(self, rows: slice | NDArray[np.intp]) -> HierarchyRows:
        return HierarchyRows(
            self.id[rows],
            self.level[rows],
            self.parent[rows],
            self.vertices[rows],
            self.edges[rows],
            self.is_leaf[rows],
        )

    @property
    def is_dn_graph(self) -> NDArray[np.bool_]:
        """[rows] whether the component is a DN-graph: k > 0, and it contains no smaller component."""
        return self.is_leaf & (self.level > 0)


@dataclass(frozen=True)
class MergedOutlines(SizedArrays):
    """The components that span several buckets."""

    starts: NDArray[np.int64]
    """[buckets + 1] first dense number of each bucket."""
    components: HierarchyRows
    lines: Mapping[int, NDArray[np.int32]]
    """Bucket → [open components of the bucket] the component that each is part of, as a row of `components`."""
    vertex: Ints
    """[shared vertices] dense numbers, ascending."""
    innermost: NDArray[np.int32]
    """[shared vertices] the innermost component of each, as a row of `components`; on the device of `vertex`."""


@dataclass(frozen=True)
class Answer(Payload):
    """The part of MergedOutlines that one bucket needs. `len()` counts rows."""

    line_id: NDArray[np.int64]
    """[open components of the bucket] id of the component that each is part of."""
    line_is_leaf: NDArray[np.bool_]
    """[open components of the bucket] whether that component contains no smaller one."""
    vertex: Ints
    """[shared vertices of the bucket] dense numbers, ascending."""
    innermost: NDArray[np.int64]
    """[shared vertices of the bucket] id of the innermost component of each; on the host."""
    is_member: NDArray[np.bool_]
    """[shared vertices of the bucket] whether that component is a DN-graph."""
    components: HierarchyRows
    """Components whose least vertex is in the bucket."""

    def __len__(self) -> int:
        return len(self.line_id) + len(self.innermost) + len(self.components)


def component_ids(least: NDArray[np.int64], level: NDArray[np.int32], highest: int) -> NDArray[np.int64]:
    """Ids of components, from least vertices and k. `highest` is the largest λ.

    The factor of the least vertex is a power of two, so most changes of the largest λ leave the ids as they are.
    """
    return (least << highest.bit_length()) + level


def join_outlines(number: int, receiver: int, parts: Mapping[int, Outline]) -> Bundle[Outline]:
    """Task `number` → another task: the outlines of some buckets, joined to one outline.

    The joined outline has all components of the parts, and at most one join for each of its shared vertices and
    components. These are far fewer joins than the parts have together if their buckets share many vertices.
    """
    outlines = [parts[sender] for sender in sorted(parts)]
    if not outlines:
        return bundle(number, {})
    vertex, nested = _nested(outlines)
    first = nested.least[nested.vertex]
    met = np.flatnonzero(first != np.arange(len(vertex), like=first))
    within = np.flatnonzero(nested.parent >= 0)
    within = within[nested.least[within] != nested.least[nested.parent[within]]]
    around = nested.parent[within]
    columns = ("bucket", "representative", "level", "least", "edges", "vertices", "contains_closed")
    joined = Outline(
        **{name: _column(outlines, name) for name in columns},
        low=vertex[np.concatenate([first[met], nested.least[around]])],
        high=vertex[np.concatenate([met.astype(np.int32), nested.least[within]])],
        join_level=np.concatenate([nested.level[nested.vertex[met]], nested.level[around]]),
    )
    return bundle(number, {receiver: joined})


def merge_outlines(starts: NDArray[np.int64], highest: int, parts: Mapping[int, Outline]) -> MergedOutlines:
    """The open components of all buckets, merged; `parts` are their outlines, or outlines joined from these.

    `starts` [buckets + 1] are the first dense numbers of the buckets, `highest` is the largest λ.
    """
    outlines = [parts[sender] for sender in sorted(parts)]
    if not outlines:
        none = np.zeros(0, np.int64)
        empty = HierarchyRows(none, none.astype(np.int32), none, none, none, none.astype(np.bool_))
        return MergedOutlines(starts, empty, {}, none, none.astype(np.int32))
    vertex, nested = _nested(outlines)
    bucket = _column(outlines, "bucket")
    line = kernels.to_host(nested.edge[: len(bucket)])
    k, parent = kernels.to_host(nested.level), kernels.to_host(nested.parent)
    size = len(nested)

    def gathered(name: str) -> NDArray[np.int64]:
        total = np.zeros(size, np.int64)
        np.add.at(total, line, _column(outlines, name))
        return total

    vertices = gathered("vertices") + kernels.to_host(kernels.bincount(nested.vertex, size))
    least = np.full(size, starts[-1], np.int64)
    np.minimum.at(least, line, _column(outlines, "least"))
    least = subtree_minima(parent, least)
    is_leaf = np.ones(size, np.bool_)
    is_leaf[parent[parent >= 0]] = False
    is_leaf[line[_column(outlines, "contains_closed")]] = False
    ids = component_ids(least, k, highest)
    components = HierarchyRows(
        ids,
        k,
        np.where(parent >= 0, ids[parent], -1),
        subtree_sums(parent, vertices),
        subtree_sums(parent, gathered("edges")),
        is_leaf,
    )
    by_id = np.argsort(ids)
    row = np.empty(size, np.int32)
    row[by_id] = np.arange(size, dtype=np.int32)
    cuts = np.searchsorted(bucket, np.arange(1, len(starts) - 1))
    lines = dict(enumerate(np.split(row[line], cuts)))
    return MergedOutlines(starts, components[by_id], lines, vertex, np.asarray(row, like=nested.vertex)[nested.vertex])


def _nested(outlines: Sequence[Outline]) -> tuple[Ints, Nested]:
    """The shared vertices of several outlines, ascending, and their components.

    The edges of `Nested` are the outlines' components, then their joins. Raises OutOfRoom for more than 2^31 - 2 of
    these, which are numbered with int32.
    """
    if sum(map(len, outlines)) > MAX_LOCAL_EDGES:
        raise OutOfRoom(
            f"ranges of ids share vertices by {sum(map(len, outlines)):,} components and joins, over the "
            f"{MAX_LOCAL_EDGES:,} that a task can put together; give neighbours ids that are near each other"
        )
    representative, low, high = (_column(outlines, name) for name in ("representative", "low", "high"))
    level = np.asarray(_column(outlines, "level"), like=low)
    vertex, (representative_code, low_code, high_code) = order.encode(representative, low, high)
    nested = kernels.nest(
        np.concatenate([representative_code, low_code]),
        np.concatenate([representative_code, high_code]),
        np.concatenate([level, _column(outlines, "join_level")]),
        len(vertex),
    )
    return vertex, nested


def _column(outlines: Sequence[Outline], name: str) -> NDArray[Any]:
    return np.concatenate([getattr(outline, name) for outline in outlines])


def answer_outlines(merged: MergedOutlines, highest: int) -> Bundle[Answer]:
    """One task → buckets: the component that each of their open components is part of, and the components that they
    publish.
    """
    buckets = len(merged.starts) - 1
    at = kernels.to_host(np.searchsorted(merged.vertex, np.asarray(merged.starts, like=merged.vertex)))
    components = merged.components
    rows = np.searchsorted(components.id, component_ids(merged.starts, np.zeros(1, np.int32), highest))
    answers = {}
    for b in range(buckets):
        line = merged.lines.get(b, np.zeros(0, np.int32))
        innermost = kernels.to_host(merged.innermost[at[b] : at[b + 1]])
        answers[b] = Answer(
            components.id[line],
            components.is_leaf[line],
            merged.vertex[at[b] : at[b + 1]],
            components.id[innermost],
            components.is_dn_graph[innermost],
            components[rows[b] : rows[b + 1]],
        )
    return bundle(ROOT, answers)
