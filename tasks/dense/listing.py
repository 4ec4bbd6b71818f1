"""The groups of a program that are listed: those of a level, or those that contain no smaller one. They are disjoint.

DN-graphs are those of λ that are listed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...kernels.runtime.sizes import SizedArrays
from .merge import HierarchyRows

Int = NDArray[np.int64]


@dataclass(frozen=True)
class Homes(SizedArrays):
    """The listed group around each group that is listed or lies in one. `len()` counts these groups."""

    inner: Int
    """[groups] ids, ascending."""
    listed: Int
    """[groups] the id of the listed group."""

    def __len__(self) -> int:
        return len(self.inner)

    def of(self, innermost: Int) -> Int:
        """The listed group of vertices by their innermost groups; -1 for a vertex in none."""
        if not len(self):
            return np.full(len(innermost), -1, np.int64)
        at = np.minimum(np.searchsorted(self.inner, innermost), len(self) - 1)
        return np.where(self.inner[at] == innermost, self.listed[at], -1)


def homes_of(groups: HierarchyRows, level: int | None) -> Homes:
    """The homes among all groups of a program at a level, or with None those that contain no smaller group."""
    ids, everyone = groups.id, np.arange(len(groups))
    if level is None:
        home = np.where(groups.is_leaf, everyone, -1)
    else:
        up = np.where(groups.parent >= 0, np.searchsorted(ids, groups.parent), everyone)
        home = everyone
        while (rises := (up[home] != home) & (groups.level[up[home]] >= level)).any():
            home = np.where(rises, up[home], home)
        home = np.where(groups.level >= level, home, -1)
    inside = home >= 0
    return Homes(ids[inside], ids[home[inside]])


@dataclass(frozen=True)
class BucketListing(SizedArrays):
    """The listed groups of a program in one bucket."""

    bucket: int
    listed: HierarchyRows
    """Listed groups whose least vertex is in the bucket."""
    innermost: Int
    """[vertices] id of the listed group of each vertex, -1 if there is none."""

    @property
    def is_member(self) -> NDArray[np.bool_]:
        """[vertices] whether each is in a listed group."""
        return self.innermost >= 0


def list_bucket(bucket: int, groups: HierarchyRows, innermost: Int, homes: Homes) -> BucketListing:
    """The listed groups of a bucket, of its `groups` and the `innermost` group of each of its vertices."""
    rows = np.flatnonzero(np.isin(groups.id, homes.listed))
    return BucketListing(bucket, groups[rows], homes.of(innermost))
