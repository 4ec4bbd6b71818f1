"""What the GPU kernel of one shard has counted; it is told where there is no GPU, too."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from .held import Held


@dataclass(frozen=True)
class ShardSums(Held):
    """What one shard has counted; sums over all shards obey the rules of conservation."""

    left: int
    """Edges of the whole graph that stand."""
    entries: int
    """Entries of rows read."""
    triangles: int
    """Triangles removed."""
    fingerprint: int
    """Sum of the hashes of edges that left, added where the high end is, subtracted where the low end is; mod 2^64."""
    sent: int
    """Messages."""
    received: int
    alarms: int
    reports: int
    grants: int
    faults: int
    """Messages and edges that did not fit the halves here: 0."""
    spent: tuple[int, ...]
    """Nanoseconds of looking at halves, writing, meeting, taking in and removing, where the kernel measures."""

    @classmethod
    def of(cls, words: NDArray[np.uint64]) -> ShardSums:
        """From Sums of shards.cu."""
        counted = dict(zip((field.name for field in fields(cls)), map(int, words), strict=False))
        return cls(**{**counted, "spent": tuple(map(int, words[10:]))})  # type: ignore[arg-type]
