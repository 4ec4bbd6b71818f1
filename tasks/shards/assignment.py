"""Assignment of vertices to shards, and of shards to groups."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...kernels.cpu.shards import Cut
from ..errors import OutOfRoom

MAX_VERTICES = 2**32 - 2
"""Maximum number of vertices of a graph, as ranks are uint32."""


@dataclass(frozen=True)
class ShardAssignment:
    """The shards of a graph and their groups. The group of an edge's high endpoint owns the edge."""

    cut: Cut
    groups: int

    @classmethod
    def of(cls, vertices: int, groups: int, shards: int) -> ShardAssignment:
        """Assign `vertices` to `shards` shards in `groups` groups of at least one shard each.

        Raises OutOfRoom for more than 2^32 - 2 vertices, ValueError for more groups than shards.
        """
        if vertices > MAX_VERTICES:
            raise OutOfRoom(f"the graph has {vertices:,} vertices, over the {MAX_VERTICES:,} that shards can number")
        if not 1 <= groups <= shards:
            raise ValueError(f"{shards} shards cannot be assigned to {groups} groups")
        return cls(Cut(vertices, shards), groups)

    @property
    def first(self) -> list[int]:
        """[groups + 1] the first shard of each group."""
        return first_shards(self.groups, self.cut.shards)

    def shards(self, group: int) -> int:
        """Number of shards of a group."""
        first = self.first
        return first[group + 1] - first[group]

    def vertices(self, group: int) -> int:
        """Number of vertices in the classes of a group."""
        first = self.first
        return int(self.cut.members[first[group] : first[group + 1]].sum())

    def group_of(self, vertex: NDArray[np.uint32]) -> NDArray[np.int16]:
        """The group of each vertex, int16, on the device of `vertex`."""
        if self.groups == 1:
            return np.zeros_like(vertex, np.int16)
        classes = self.cut.classes(vertex)
        if self.groups == self.cut.shards:
            return classes.astype(np.int16)
        group = np.repeat(np.arange(self.groups, dtype=np.int16), np.diff(self.first))
        group_of_vertex: NDArray[np.int16] = np.asarray(group, like=classes)[classes]
        return group_of_vertex


def first_shards(groups: int, shards: int) -> list[int]:
    """[groups + 1] the first shard of each group; groups have contiguous shards, as evenly as possible."""
    return [rank * shards // groups for rank in range(groups + 1)]
