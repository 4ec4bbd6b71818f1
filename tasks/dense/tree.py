"""The components of one bucket's edges, and the outline of the components that reach into other buckets.

`subtree_sums` and `subtree_minima` reduce the values of each component and all components within it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels.graph import MAX_LOCAL_EDGES, Nested
from ...kernels.runtime.sizes import SizedArrays
from ...kernels.runtime.threads import numba_was_loaded
from ..errors import OutOfRoom
from ..ids.order import Ints
from ..ingest.degrees import BucketDegrees
from ..ingest.numbering import BucketEdges
from ..messages import Bundle, Payload, bundle
from ..publish.lambda_columns import BucketResults

FEW = 2**14
"""A loop in Python over this many components takes 5 ms. To load Numba and a kernel takes 0.4 s."""


def subtree_sums(parent: NDArray[np.int32], values: NDArray[np.int64]) -> NDArray[np.int64]:
    """The sum of `values` [components] over each component and all components within it.

    Each component must have a lower number than its `parent` (-1 for none), as in `Nested`.
    """
    if _are_few(parent):
        found = values.tolist()
        for x, above in enumerate(parent.tolist()):
            if above >= 0:
                found[above] += found[x]
        return np.array(found, np.int64)
    from ...kernels.cpu.nest import subtree_sums

    return subtree_sums(parent, values)


def subtree_minima(parent: NDArray[np.int32], values: NDArray[np.int64]) -> NDArray[np.int64]:
    """The least of `values` over each component and all components within it; as `subtree_sums`."""
    if _are_few(parent):
        found = values.tolist()
        for x, above in enumerate(parent.tolist()):
            if above >= 0:
                found[above] = min(found[above], found[x])
        return np.array(found, np.int64)
    from ...kernels.cpu.nest import subtree_minima

    return subtree_minima(parent, values)


def _are_few(parent: NDArray[np.int32]) -> bool:
    """Whether kernels are not worth loading."""
    return len(parent) <= FEW and not numba_was_loaded()


ROOT = 0
"""Number of the task that merges all outlines."""


@dataclass(frozen=True)
class BucketTree(SizedArrays):
    """The components of a bucket's own edges.

    Local vertices are those of the bucket, then the larger ends of its edges in later buckets; both ascend by dense
    number. A component comes before the components that contain it. It is open if one of its vertices is shared with
    another bucket, else closed.
    """

    bucket: int
    starts: NDArray[np.int64]
    """[buckets + 1] first dense number of each bucket."""
    nested: Nested
    """Components over local vertices and the bucket's edges, on the device of the edges."""
    dense: Ints
    """[local vertices] dense numbers."""
    shared: NDArray[np.int32]
    """[shared vertices] local vertices with edges here and in other buckets, ascending."""

    level: NDArray[np.int32]
    """[components] k; on the host, as are all following fields."""
    parent: NDArray[np.int32]
    """[components] the next larger component that contains it; -1 if there is none."""
    least: NDArray[np.int64]
    """[components] dense number of the least vertex."""
    edges: NDArray[np.int64]
    """[components] edges that are in no smaller component."""
    vertices: NDArray[np.int64]
    """[components] vertices that are in no smaller component and not shared."""
    representative: NDArray[np.int32]
    """[components] position in `shared` of the least shared vertex; -1 if the component is closed."""

    @property
    def first(self) -> int:
        """Dense number of the bucket's first vertex."""
        return int(self.starts[self.bucket])

    @property
    def own(self) -> int:
        """Vertices of the bucket."""
        return int(self.starts[self.bucket + 1]) - self.first


@dataclass(frozen=True)
class Outline(Payload):
    """The open components of one bucket, or of several. `len()` counts components and joins.

    The joins connect shared vertices. At each level they connect the same shared vertices as the buckets' edges do.
    """

    bucket: NDArray[np.int16]
    """[open components] the bucket of each, ascending; on the host."""
    representative: Ints
    """[open components] dense number of the least shared vertex of each; on the device of the edges."""
    level: NDArray[np.int32]
    """[open components] k."""
    least: NDArray[np.int64]
    """[open components] dense number of the least vertex; on the host, as are the next three."""
    edges: NDArray[np.int64]
    """[open components] edges that are in no smaller open component."""
    vertices: NDArray[np.int64]
    """[open components] vertices that are in no smaller open component and not shared."""
    contains_closed: NDArray[np.bool_]
    """[open components] whether it contains a closed component."""

    low: Ints
    """[joins] dense number of a shared vertex."""
    high: Ints
    """[joins] dense number of another shared vertex in the same component."""
    join_level: NDArray[np.int32]
    """[joins] k of the component that connects both."""

    def __len__(self) -> int:
        return len(self.level) + len(self.low)


@dataclass(frozen=True)
class EdgeLevels(SizedArrays):
    """The level of each edge of a bucket, if it is not λ. `len()` counts edges."""

    low: Ints
    """[edges] int32, at least 0; on the device of the edges."""

    def __len__(self) -> int:
        return len(self.low)


def grow_tree(edges: BucketEdges, degrees: BucketDegrees, results: BucketResults | EdgeLevels) -> BucketTree:
    """The components of a bucket's edges, whose λ, or level, is `results.low`.

    Raises OutOfRoom for more than 2^31 - 2 local vertices, which are numbered with int32.
    """
    own = edges.vertices
    inside = kernels.total(edges.highs < edges.first + own)
    if own + len(edges.highs) - inside > MAX_LOCAL_EDGES:
        raise OutOfRoom(
            f"bucket {edges.bucket} has {own + len(edges.highs) - inside:,} vertices with those of its edges, over the "
            f"{MAX_LOCAL_EDGES:,} allowed; raise partitioning.count"
        )
    place = np.arange(len(edges.highs), dtype=np.int32, like=edges.highs)
    place += np.int32(own - inside)
    place[:inside] = edges.highs[:inside] - edges.first
    local = own + len(edges.highs) - inside
    nested = kernels.nest(edges.low, place[edges.high], results.low, local)
    dense = np.concatenate([_run(edges.first, own, edges.highs), edges.highs[inside:]])

    shared = np.zeros(local, np.bool_, like=edges.highs)
    shared[own:] = True
    for asker, asked in degrees.asked.items():
        if asker != edges.bucket:
            shared[asked] = True
    shared &= nested.vertex >= 0
    alone = nested.vertex[~shared]
    found = np.flatnonzero(shared).astype(np.int32)
    parent = kernels.to_host(nested.parent)
    return BucketTree(
        edges.bucket,
        edges.starts,
        nested,
        dense,
        found,
        kernels.to_host(nested.level),
        parent,
        kernels.to_host(nested.least).astype(np.int64) + edges.first,
        _counts(nested.edge, len(nested)),
        _counts(alone[alone >= 0], len(nested)),
        _representatives(nested.vertex[found], parent),
    )


def send_outline(tree: BucketTree, receiver: int) -> Bundle[Outline]:
    """Bucket → task `receiver`: the outline of the bucket's open components."""
    lines = np.flatnonzero(tree.representative >= 0)
    closed = tree.representative < 0
    closed_in_open = np.flatnonzero(closed & (tree.parent >= 0))
    closed_in_open = closed_in_open[~closed[tree.parent[closed_in_open]]]
    contains_closed = np.zeros(len(closed), np.bool_)
    contains_closed[tree.parent[closed_in_open]] = True
    within = lines[tree.parent[lines] >= 0]
    joined = within[tree.representative[within] != tree.representative[tree.parent[within]]]

    innermost = tree.nested.vertex[tree.shared]
    representative_at = np.asarray(tree.representative, like=tree.shared)[innermost]
    met = np.flatnonzero(representative_at != np.arange(len(tree.shared), like=tree.shared))
    low = [representative_at[met], np.asarray(tree.representative[tree.parent[joined]], like=tree.shared)]
    high = [met.astype(np.int32), np.asarray(tree.representative[joined], like=tree.shared)]
    level = [tree.nested.level[innermost[met]], np.asarray(tree.level[tree.parent[joined]], like=tree.shared)]
    numbers = tree.dense[tree.shared]
    outline = Outline(
        np.full(len(lines), tree.bucket, np.int16),
        numbers[np.asarray(tree.representative[lines], like=tree.shared)],
        tree.level[lines],
        tree.least[lines],
        _own(tree, tree.edges, closed, closed_in_open)[lines],
        _own(tree, tree.vertices, closed, closed_in_open)[lines],
        contains_closed[lines],
        numbers[np.concatenate(low)],
        numbers[np.concatenate(high)],
        np.concatenate(level),
    )
    return bundle(tree.bucket, {receiver: outline})


def _own(
    tree: BucketTree, counts: NDArray[np.int64], closed: NDArray[np.bool_], closed_in_open: NDArray[np.intp]
) -> NDArray[np.int64]:
    """[components] for each open component, its `counts` and those of the closed components that it contains."""
    own = counts.copy()
    np.add.at(own, tree.parent[closed_in_open], subtree_sums(tree.parent, np.where(closed, counts, 0))[closed_in_open])
    return own


def _run(first: int, count: int, like: Ints) -> Ints:
    run = np.arange(count, like=like).astype(like.dtype)
    run += like.dtype.type(first)
    return run


def _counts(places: NDArray[np.int32], count: int) -> NDArray[np.int64]:
    if not len(places):
        return np.zeros(count, np.int64)
    return kernels.to_host(kernels.bincount(places, count)).astype(np.int64)


def _representatives(innermost: NDArray[np.int32], parent: NDArray[np.int32]) -> NDArray[np.int32]:
    """[components] the least position in `innermost` of each component and all within it; -1 without one."""
    none = len(innermost)
    # Descending, as there is a kernel for maxima only.
    descending = np.int32(none) - np.arange(none, dtype=np.int32, like=innermost)
    most = kernels.scatter_max(innermost, descending, len(parent))
    least = none - kernels.to_host(most).astype(np.int64)
    least = subtree_minima(parent, least)
    return np.where(least < none, least, -1).astype(np.int32)
