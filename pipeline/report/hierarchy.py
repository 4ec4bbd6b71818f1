"""The upper part of the hierarchy: its largest components, the branches they form, and a picture of them.

A parent has more edges than its children, so the parents of the components with the most edges are among them too.
A bounded number of components therefore holds each of the largest branches from its start.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..results.streaming import batches

if TYPE_CHECKING:
    import pyarrow.dataset as ds

MOST_COMPONENTS = 20_000
MOST_ROWS_OF_BLOCKS = 60
NARROWEST = 1 / 1000
"""Share of the picture's width; narrower components are left out."""
MOST_BLOCKS = 1500

Int = NDArray[np.int64]


@dataclass(frozen=True)
class Upper:
    """Components by their number of edges, largest first. All arrays are int64 and have one length."""

    component: Int
    k: Int
    vertices: Int
    edges: Int
    parent: Int
    """Index of the parent in these arrays; -1 for a root."""
    whole: bool
    """Whether these are all components of the hierarchy."""


@dataclass(frozen=True)
class Branch:
    """A chain of components: it starts at one that is not its parent's largest child, and follows largest children."""

    component: int
    first: int
    """The lowest λ at which the first component is separate from others."""
    vertices: int
    edges: int
    top: int
    """The k of the last component of the branch."""
    end: int | None
    """The last component, a DN-graph if `top` is above 0; None if the branch may continue."""


@dataclass(frozen=True)
class IcicleBlock:
    """A component in the picture, or a part of it: as wide as its number of edges, from level `bottom` to `top`."""

    left: int
    right: int
    bottom: int
    top: int
    """Exclusive, as is `right`."""
    component: int
    vertices: int
    edges: int
    depth: int
    """The number of branch starts on the way from its root; it selects the colour."""


def upper(table: ds.Dataset, most: int = MOST_COMPONENTS) -> Upper:
    """The `most` components with the most edges; ties go to the smaller number. Raises InputError for damage.

    `table` is the hierarchy. Memory is O(most).
    """
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
    """The column as int64, with -1 for null. Numbers of components are not negative."""
    return np.asarray(column.fill_null(-1).to_numpy(zero_copy_only=False), np.int64)


def _largest(found: Int, most: int) -> Int:
    return found[:, np.lexsort((found[0], -found[4]))[:most]]


def _first_levels(part: Upper) -> Int:
    """The lowest λ at which each component is separate from others."""
    return np.where(part.parent < 0, 0, part.k[part.parent] + 1)


def _heavy(part: Upper) -> tuple[NDArray[np.bool_], Int]:
    """Whether each component is its parent's largest child; and the index of each component's largest child, or -1."""
    inner = np.flatnonzero(part.parent >= 0)
    parents, first = np.unique(part.parent[inner], return_index=True)
    heavy, largest_child = np.zeros(part.k.size, np.bool_), np.full(part.k.size, -1)
    heavy[inner[first]] = True
    largest_child[parents] = inner[first]
    return heavy, largest_child


def branches(part: Upper, most: int) -> list[Branch]:
    """The `most` branches whose first component has the most edges, largest first."""
    heavy, largest_child = _heavy(part)
    first, found = _first_levels(part), []
    for start in np.flatnonzero(~heavy)[:most].tolist():
        end = start
        while largest_child[end] >= 0:
            end = int(largest_child[end])
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


def blocks(part: Upper) -> list[IcicleBlock]:
    """The blocks of the picture: components side by side within their parents, in at most MOST_ROWS_OF_BLOCKS rows.

    The blocks at one level together are as wide as the number of edges with at least that λ, less the components that
    are too narrow to draw.
    """
    roots = part.parent < 0
    wide = part.edges >= max(1, NARROWEST * int(part.edges[roots].sum()))
    count = int(np.count_nonzero(wide))  # sorted by edges, so the wide ones are a prefix
    left, depth, first = _left_sides(part, count), _depths(part, count), _first_levels(part)[:count]
    top = int(part.k[:count].max(initial=0))
    step = -(-(top + 1) // MOST_ROWS_OF_BLOCKS)
    rows = np.arange(0, top + 1, step)
    # A component covers the rows from its lowest level up to its k.
    low, high = np.searchsorted(rows, first), np.searchsorted(rows, part.k[:count], "right")
    seen = np.flatnonzero(low < high)[:MOST_BLOCKS]
    return [
        IcicleBlock(
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


def _left_sides(part: Upper, count: int) -> Int:
    """The left side of each of the first `count` components: within its parent, after its larger siblings."""
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
