"""Counters of the GPU kernel of one shard. Imports no CuPy: processes without a GPU read them too."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from .runtime.sizes import SizedArrays


@dataclass(frozen=True)
class ShardSums(SizedArrays):
    """Counters of one shard. Their sums over all shards satisfy the conservation rules that the run checks."""

    left: int
    """Number of remaining edges of the whole graph."""
    entries: int
    """Number of row entries read."""
    triangles: int
    """Number of triangles removed."""
    fingerprint: int
    """Sum of hashes of removed edges mod 2^64: the high end adds, the low end subtracts."""
    sent: int
    """Number of messages sent."""
    received: int
    """Number of messages received."""
    alarms: int
    """Number of alarms sent."""
    reports: int
    """Number of reports sent."""
    grants: int
    """Number of grants sent."""
    faults: int
    """Number of messages and edges that do not fit the shard's halves; 0 unless there is a bug."""
    spent: tuple[int, ...]
    """Nanoseconds spent on scanning halves, writing, meeting, receiving and removing, if the kernel measures them."""

    @classmethod
    def of(cls, words: NDArray[np.uint64]) -> ShardSums:
        """The counters from the words of Sums in shards/state.cuh."""
        counted = dict(zip((field.name for field in fields(cls)), map(int, words), strict=False))
        return cls(**{**counted, "spent": tuple(map(int, words[10:]))})  # type: ignore[arg-type]
