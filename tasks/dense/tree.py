"""The components of one bucket's edges, and what of them reaches into other buckets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels.graph import MAX_LOCAL_EDGES, Nested
from ...kernels.held import Held
from ..degrees import BucketDegrees
from ..errors import OutOfRoom
from ..messages import Bundle, bundle
from ..numbering import BucketEdges
from ..order import Ints
from ..publish import BucketResults

ROOT = 0
"""Number of the one task that all outlines go to."""


@dataclass(frozen=True)
class BucketTree(Held):
    """The components of a bucket's edges alone. Local vertices are the bucket's own, and then those of later buckets
    that its edges lead to, so that they ascend as dense numbers do. Components come before those that hold them.
    """

    bucket: int
    starts: NDArray[np.int64]
    """[buckets + 1] first dense number of each bucket."""
    nested: Nested
    """Over local vertices and the bucket's edges, where these lie."""
    dense: Ints
    """[local vertices] dense numbers."""
    shared: NDArray[np.int32]
    """[shared vertices] local vertices with edges here that other buckets have too, ascending."""

    level: NDArray[np.int32]
    """[components] k; on the host, as all that follows."""
    parent: NDArray[np.int32]
    """[components] -1 for none."""
    least: NDArray[np.int64]
    """[components] dense number of the least vertex."""
    edges: NDArray[np.int64]
    """[components] edges in no smaller component."""
    vertices: NDArray[np.int64]
    """[components] vertices in no smaller component, without shared ones."""
    speaker: NDArray[np.int32]
    """[components] position in `shared` of the least shared vertex; -1 if there is none, and the component is known."""

    @property
    def first(self) -> int:
        """Dense number of the bucket's first vertex."""
        return int(self.starts[self.bucket])

    @property
    def own(self) -> int:
        """Vertices of the bucket."""
        return int(self.starts[self.bucket + 1]) - self.first


@dataclass(frozen=True)
class Outline(Held):
    """What components of one bucket, or of several, have to do with others. `len()` counts its lines.

    Where the least shared vertices of the components that it is about are joined as the outline says, at each level
    the same shared vertices hang together as by the bucket's edges.
    """

    bucket: NDArray[np.int16]
    """[open components] whose it is, ascending; on the host."""
    speaker: Ints
    """[open components] dense number of each one's least shared vertex; with edges this lies where they do."""
    level: NDArray[np.int32]
    """[open components] k."""
    least: NDArray[np.int64]
    """[open components] dense number of the least vertex; on the host, as what follows."""
    edges: NDArray[np.int64]
    """[open components] edges that are in no smaller open component."""
    vertices: NDArray[np.int64]
    """[open components] vertices in no smaller open component, without shared ones."""
    holds: NDArray[np.bool_]
    """[open components] whether it holds a smaller component that is known."""

    low: Ints
    """[joins] dense number of a shared vertex."""
    high: Ints
    """[joins] dense number of another one in the same component."""
    join_level: NDArray[np.int32]
    """[joins] k of that component."""

    def __len__(self) -> int:
        return len(self.level) + len(self.low)


def grow_tree(edges: BucketEdges, degrees: BucketDegrees, results: BucketResults) -> BucketTree:
    """The components of a bucket's edges, whose λ is known (`results.low`).

    Raises OutOfRoom for more than 2^31 - 2 vertices of the bucket and of its edges: numbers of more would wrap.
    """
    own = edges.vertices
    inside = int((edges.highs < edges.first + own).sum())
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
        _speakers(nested.vertex[found], parent),
    )


def send_outline(tree: BucketTree, receiver: int) -> Bundle[Outline]:
    """Bucket → task `receiver`: what its components have to do with other buckets."""
    lines = np.flatnonzero(tree.speaker >= 0)
    known = tree.speaker < 0
    below_open = np.flatnonzero(known & (tree.parent >= 0))
    below_open = below_open[~known[tree.parent[below_open]]]
    holds = np.zeros(len(known), np.bool_)
    holds[tree.parent[below_open]] = True
    within = lines[tree.parent[lines] >= 0]
    joined = within[tree.speaker[within] != tree.speaker[tree.parent[within]]]

    home = tree.nested.vertex[tree.shared]
    speaker_of_home = np.asarray(tree.speaker, like=tree.shared)[home]
    met = np.flatnonzero(speaker_of_home != np.arange(len(tree.shared), like=tree.shared))
    low = [speaker_of_home[met], np.asarray(tree.speaker[tree.parent[joined]], like=tree.shared)]
    high = [met.astype(np.int32), np.asarray(tree.speaker[joined], like=tree.shared)]
    level = [tree.nested.level[home[met]], np.asarray(tree.level[tree.parent[joined]], like=tree.shared)]
    numbers = tree.dense[tree.shared]
    outline = Outline(
        np.full(len(lines), tree.bucket, np.int16),
        numbers[np.asarray(tree.speaker[lines], like=tree.shared)],
        tree.level[lines],
        tree.least[lines],
        _own(tree, tree.edges, known, below_open)[lines],
        _own(tree, tree.vertices, known, below_open)[lines],
        holds[lines],
        numbers[np.concatenate(low)],
        numbers[np.concatenate(high)],
        np.concatenate(level),
    )
    return bundle(tree.bucket, {receiver: outline})


def _own(
    tree: BucketTree, counts: NDArray[np.int64], known: NDArray[np.bool_], below_open: NDArray[np.intp]
) -> NDArray[np.int64]:
    """Of open components what they hold outside of smaller open ones, that in known ones included."""
    own = counts.copy()
    np.add.at(own, tree.parent[below_open], kernels.add_up(tree.parent, np.where(known, counts, 0))[below_open])
    return own


def _run(first: int, count: int, like: Ints) -> Ints:
    run = np.arange(count, like=like).astype(like.dtype)
    run += like.dtype.type(first)
    return run


def _counts(places: NDArray[np.int32], count: int) -> NDArray[np.int64]:
    if not len(places):
        return np.zeros(count, np.int64)
    return kernels.to_host(np.bincount(places, minlength=count)).astype(np.int64)


def _speakers(home: NDArray[np.int32], parent: NDArray[np.int32]) -> NDArray[np.int32]:
    """The least position in `home`, whose entries are components, of each component and all within it; -1 for none."""
    none = len(home)
    down = np.int32(none) - np.arange(none, dtype=np.int32, like=home)  # from high to low, as only maxima have a kernel
    least = none - kernels.to_host(kernels.maxima_at(kernels.positions(home), down, len(parent))).astype(np.int64)
    least = kernels.least_up(parent, least)
    return np.where(least < none, least, -1).astype(np.int32)
