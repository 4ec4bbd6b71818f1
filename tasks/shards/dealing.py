"""Which group has which vertices: the classes of a cut, dealt to groups in runs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...kernels.cpu.shards import Cut
from ..errors import OutOfRoom
from .groups import first_shards

MOST_VERTICES = 2**32 - 2
"""Of a graph whose ranks are uint32."""


@dataclass(frozen=True)
class Dealing:
    """The shards of a graph and the groups that have them. An edge is owned by the group of its high endpoint."""

    cut: Cut
    groups: int

    @classmethod
    def of(cls, vertices: int, groups: int, shards: int) -> Dealing:
        """Deal so many vertices to `shards` shards in `groups` groups, one shard each at least.

        Raises OutOfRoom for more than 2^32 - 2 vertices.
        """
        if vertices > MOST_VERTICES:
            raise OutOfRoom(f"the graph has {vertices:,} vertices, over the {MOST_VERTICES:,} that shards tell apart")
        if not 1 <= groups <= shards:
            raise ValueError(f"{shards} shards cannot be dealt to {groups} groups")
        return cls(Cut(vertices, shards), groups)

    @property
    def first(self) -> list[int]:
        """[groups + 1] the first shard of each group."""
        return first_shards(self.groups, self.cut.shards)

    def shards(self, group: int) -> int:
        """Shards of one group."""
        first = self.first
        return first[group + 1] - first[group]

    def vertices(self, group: int) -> int:
        """Vertices of the classes of one group."""
        first = self.first
        return int(self.cut.members[first[group] : first[group + 1]].sum())

    def group_of(self, vertex: NDArray[np.uint32]) -> NDArray[np.int16]:
        """The group of each vertex, int16, where these lie."""
        if self.groups == 1:
            return np.zeros_like(vertex, np.int16)
        classes = self.cut.classes(vertex)
        if self.groups == self.cut.shards:
            return classes.astype(np.int16)
        group = np.repeat(np.arange(self.groups, dtype=np.int16), np.diff(self.first))
        found: NDArray[np.int16] = np.asarray(group, like=classes)[classes]
        return found
