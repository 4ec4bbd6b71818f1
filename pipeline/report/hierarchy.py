"""The upper part of the hierarchy: its largest components, the branches they form, and a picture of them.

The components with the most edges are closed under parents, since a parent has more edges than what lies in it. So a
bounded number of them, whatever the table's rows, has the largest branches whole from where they begin.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .reading import batches

if TYPE_CHECKING:
    import pyarrow.dataset as ds

__all__ = ["Block", "Branch", "Upper", "blocks", "branches", "upper"]

MOST_COMPONENTS = 20_000
MOST_ROWS_OF_BLOCKS = 60
NARROWEST = 1 / 1000
"""Of the picture's width: narrower components are left out."""
MOST_BLOCKS = 1500

Int = NDArray[np.int64]


@dataclass(frozen=True)
class Upper:
    """Components by edges, the largest first; int64 each, of one length."""

    component: Int
    k: Int
    vertices: Int
    edges: Int
    parent: Int
    """Where in these arrays the parent is; -1 for a root."""
    whole: bool
    """Whether these are all components there are."""


@dataclass(frozen=True)
class Branch:
    """A component that is not the largest in its parent, and on from it always the largest that lies within."""

    component: int
    first: int
    """The lowest λ at which it is a component of its own."""
    vertices: int
    edges: int
    top: int
    """The k of the last component of the branch."""
    end: int | None
    """That component, a DN-graph if `top` is more than 0; None if there may be further ones above it."""


@dataclass(frozen=True)
class Block:
    """One component, or a part of it, in the picture: as wide as it has edges, from `bottom` to `top` in levels."""

    left: int
    right: int
    bottom: int
    top: int
    """Excluded, as is `right`."""
    component: int
    vertices: int
    edges: int
    depth: int
    """The number of branches that it lies beyond, to tell neighbours apart."""


def upper(table: ds.Dataset, most: int = MOST_COMPONENTS) -> Upper:
    """The `most` components with the most edges, of those with as many the first by number. Raises InputError."""
    names = ["component", "k", "parent", "vertices", "edges"]
    kept, found, rows, least = np.empty((len(names), 0), np.int64), [], 0, -1
    for batch in batches(table, names):
        rows += batch.num_rows
        columns = np.stack([_filled(batch[name]) for name in names])
        found.append(columns[:, columns[4] >= least])
        if sum(part.shape[1] for part in found) >= most:
            kept = _largest(np.concatenate([kept, *found], axis=1), most)
            found.clear()
            least = int(kept[4, -1]) if kept.shape[1] == most else -1
    component, k, parent, vertices, edges = kept = _largest(np.concatenate([kept, *found], axis=1), most)
    by_number = np.argsort(component)
    at = by_number[np.searchsorted(component[by_number], np.maximum(parent, component.min(initial=0)))]
    return Upper(component, k, vertices, edges, np.where(parent < 0, -1, at), rows == kept.shape[1])


def _filled(column: Any) -> Int:
    """As int64, with -1 for null: numbers of components are not negative."""
    return np.asarray(column.fill_null(-1).to_numpy(zero_copy_only=False), np.int64)


def _largest(found: Int, most: int) -> Int:
    return found[:, np.lexsort((found[0], -found[4]))[:most]]


def _first_levels(part: Upper) -> Int:
    """The lowest λ at which each component is one of its own."""
    return np.where(part.parent < 0, 0, part.k[part.parent] + 1)


def _heavy(part: Upper) -> tuple[NDArray[np.bool_], Int]:
    """Whether each component is the largest within its parent; and where the largest within each is, or -1."""
    inner = np.flatnonzero(part.parent >= 0)
    parents, first = np.unique(part.parent[inner], return_index=True)
    heavy, within = np.zeros(part.k.size, np.bool_), np.full(part.k.size, -1)
    heavy[inner[first]] = True
    within[parents] = inner[first]
    return heavy, within


def branches(part: Upper, most: int) -> list[Branch]:
    """The branches that begin with the most edges, the largest first."""
    heavy, within = _heavy(part)
    first, found = _first_levels(part), []
    for start in np.flatnonzero(~heavy)[:most].tolist():
        end = start
        while within[end] >= 0:
            end = int(within[end])
        found.append(
            Branch(
                component=int(part.component[start]),
                first=int(first[start]),
                vertices=int(part.vertices[start]),
                edges=int(part.edges[start]),
                top=int(part.k[end]),
                end=int(part.component[end]) if part.whole else None,
            )
        )
    return found


def blocks(part: Upper) -> list[Block]:
    """Components side by side within their parents, by edges, for MOST_ROWS_OF_BLOCKS levels at most.

    The width of all blocks at one level is the number of edges with that λ or more, but for those too narrow to see.
    """
    roots = part.parent < 0
    wide = part.edges >= max(1, NARROWEST * int(part.edges[roots].sum()))  # a prefix, as they are sorted
    count = int(np.count_nonzero(wide))
    left, depth, first = _places(part, count), _depths(part, count), _first_levels(part)[:count]
    top = int(part.k[:count].max(initial=0))
    step = -(-(top + 1) // MOST_ROWS_OF_BLOCKS)
    rows = np.arange(0, top + 1, step)
    # From the first row at or above its lowest level to the last at or below its k.
    low, high = np.searchsorted(rows, first), np.searchsorted(rows, part.k[:count], "right")
    seen = np.flatnonzero(low < high)[:MOST_BLOCKS]
    return [
        Block(
            left=int(left[at]),
            right=int(left[at] + part.edges[at]),
            bottom=int(rows[low[at]]),
            top=min(int(rows[high[at] - 1]) + step, top + 1),
            component=int(part.component[at]),
            vertices=int(part.vertices[at]),
            edges=int(part.edges[at]),
            depth=int(depth[at]),
        )
        for at in seen.tolist()
    ]


def _places(part: Upper, count: int) -> Int:
    """Where each of the first `count` components begins from the left: in its parent, after its larger siblings."""
    edges, parent = part.edges[:count].tolist(), part.parent[:count].tolist()
    left, taken, roots = [0] * count, [0] * count, 0
    for at in range(count):
        if (up := parent[at]) < 0:
            left[at], roots = roots, roots + edges[at]
        else:
            left[at] = left[up] + taken[up]
            taken[up] += edges[at]
    return np.array(left, np.int64)


def _depths(part: Upper, count: int) -> Int:
    heavy, _ = _heavy(part)
    parent, along, depth = part.parent[:count].tolist(), heavy[:count].tolist(), [0] * count
    for at in range(count):
        if parent[at] >= 0:
            depth[at] = depth[parent[at]] + (not along[at])
    return np.array(depth, np.int64)
