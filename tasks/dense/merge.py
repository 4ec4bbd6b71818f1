"""One task puts together how the components of all buckets hang together, from their outlines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels.held import Held
from .. import order
from ..messages import Bundle, bundle
from ..order import Ints
from .tree import ROOT, Outline


@dataclass(frozen=True)
class Components(Held):
    """Rows of the hierarchy, sorted by id. `len()` counts them."""

    id: NDArray[np.int64]
    level: NDArray[np.int32]
    """k"""
    parent: NDArray[np.int64]
    """Its id; -1 for none."""
    vertices: NDArray[np.int64]
    edges: NDArray[np.int64]
    is_leaf: NDArray[np.bool_]
    """Whether it holds no smaller one."""

    def __len__(self) -> int:
        return len(self.id)

    def __getitem__(self, rows: slice | NDArray[np.intp]) -> Components:
        return Components(
            self.id[rows],
            self.level[rows],
            self.parent[rows],
            self.vertices[rows],
            self.edges[rows],
            self.is_leaf[rows],
        )

    @property
    def is_dn_graph(self) -> NDArray[np.bool_]:
        """Which are DN-graphs: those of k > 0 that hold no smaller one."""
        return self.is_leaf & (self.level > 0)


@dataclass(frozen=True)
class Merged(Held):
    """The components that reach over several buckets."""

    starts: NDArray[np.int64]
    """[buckets + 1] first dense number of each bucket."""
    components: Components
    lines: Mapping[int, NDArray[np.int32]]
    """Bucket → the component that each of its open ones is part of, as a row of `components`."""
    vertex: Ints
    """[shared vertices] dense numbers, ascending."""
    home: NDArray[np.int32]
    """[shared vertices] the innermost component of each, as a row of `components`; it lies where `vertex` does."""


@dataclass(frozen=True)
class Answer(Held):
    """What one bucket needs to know of them. `len()` counts lines."""

    line_id: NDArray[np.int64]
    """[open components of the bucket] id of the component that each is part of."""
    line_is_leaf: NDArray[np.bool_]
    """[open components of the bucket] whether that holds no smaller one."""
    vertex: Ints
    """[shared vertices of the bucket] dense numbers, ascending."""
    home: NDArray[np.int64]
    """[shared vertices of the bucket] id of each one's innermost component; on the host."""
    is_member: NDArray[np.bool_]
    """[shared vertices of the bucket] whether that is a DN-graph."""
    components: Components
    """Those whose least vertex is the bucket's."""

    def __len__(self) -> int:
        return len(self.line_id) + len(self.home) + len(self.components)


def component_ids(least: NDArray[np.int64], level: NDArray[np.int32], highest: int) -> NDArray[np.int64]:
    """Ids of components by least vertex and k, where no λ is over `highest`."""
    return least * (highest + 1) + level


def merge_outlines(starts: NDArray[np.int64], highest: int, parts: Mapping[int, Outline]) -> Merged:
    """The components that the outlines of all buckets tell of. `highest` is the largest λ."""
    outlines = [parts[b] for b in sorted(parts)]
    if not outlines:
        none = np.zeros(0, np.int64)
        empty = Components(none, none.astype(np.int32), none, none, none, none.astype(np.bool_))
        return Merged(starts, empty, {}, none, none.astype(np.int32))
    speaker, low, high = (
        np.concatenate([getattr(outline, name) for outline in outlines]) for name in ("speaker", "low", "high")
    )
    level = np.asarray(np.concatenate([outline.level for outline in outlines]), like=low)
    vertex, (speaker_code, low_code, high_code) = order.encode(speaker, low, high)
    nested = kernels.nest(
        np.concatenate([speaker_code, low_code]),
        np.concatenate([speaker_code, high_code]),
        np.concatenate([level, *(outline.join_level for outline in outlines)]),
        len(vertex),
    )
    line = kernels.to_host(nested.edge[: len(speaker)])
    k, parent = kernels.to_host(nested.level), kernels.to_host(nested.parent)
    size = len(nested)

    def gathered(name: str) -> NDArray[np.int64]:
        total = np.zeros(size, np.int64)
        np.add.at(total, line, np.concatenate([getattr(outline, name) for outline in outlines]))
        return total

    vertices = gathered("vertices") + kernels.to_host(np.bincount(nested.vertex, minlength=size))
    least = np.full(size, starts[-1], np.int64)
    np.minimum.at(least, line, np.concatenate([outline.least for outline in outlines]))
    least = kernels.least_up(parent, least)
    is_leaf = np.ones(size, np.bool_)
    is_leaf[parent[parent >= 0]] = False
    is_leaf[line[np.concatenate([outline.holds for outline in outlines])]] = False
    ids = component_ids(least, k, highest)
    components = Components(
        ids,
        k,
        np.where(parent >= 0, ids[parent], -1),
        kernels.add_up(parent, vertices),
        kernels.add_up(parent, gathered("edges")),
        is_leaf,
    )
    by_id = np.argsort(ids)
    row = np.empty(size, np.int32)
    row[by_id] = np.arange(size, dtype=np.int32)
    cuts = np.cumsum([len(outline.level) for outline in outlines])[:-1]
    lines = dict(zip(sorted(parts), np.split(row[line], cuts), strict=True))
    return Merged(starts, components[by_id], lines, vertex, np.asarray(row, like=nested.vertex)[nested.vertex])


def answer_outlines(merged: Merged, highest: int) -> Bundle[Answer]:
    """One task → buckets: what became of their outlines, and the components that are theirs to publish."""
    buckets = len(merged.starts) - 1
    at = kernels.to_host(np.searchsorted(merged.vertex, np.asarray(merged.starts, like=merged.vertex)))
    components = merged.components
    rows = np.searchsorted(components.id, component_ids(merged.starts, np.zeros(1, np.int32), highest))
    answers = {}
    for b in range(buckets):
        line = merged.lines.get(b, np.zeros(0, np.int32))
        home = kernels.to_host(merged.home[at[b] : at[b + 1]])
        answers[b] = Answer(
            components.id[line],
            components.is_leaf[line],
            merged.vertex[at[b] : at[b + 1]],
            components.id[home],
            components.is_dn_graph[home],
            components[rows[b] : rows[b + 1]],
        )
    return bundle(ROOT, answers)
