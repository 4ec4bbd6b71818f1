"""Packing of the oriented lists that other partitions need."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from ..rows import row_numbers


def pack_lists(offsets: Any, high: Any, part: Any, own: int, partitions: int) -> dict[int, tuple[Any, Any]]:
    """For each other partition, the part of each list that starts at the first member that belongs to it."""
    row = row_numbers(offsets)
    to = part[high]
    to[offsets[1:][offsets[1:] > offsets[:-1]] - 1] = own  # the last member of a list closes no triangle
    packed = {}
    for q in range(partitions):
        if q == own:
            continue
        entries = cupy.flatnonzero(to == q)
        if not len(entries):
            continue
        head = cupy.ones(len(entries), np.bool_)
        head[1:] = row[entries[1:]] != row[entries[:-1]]
        first = entries[head]
        starts = cupy.zeros(len(first) + 1, np.int64)
        cupy.cumsum(offsets[row[first] + 1] - first, out=starts[1:])
        total = int(starts[-1])
        edge = cupy.arange(total, dtype=np.int32) + (first - starts[:-1]).astype(np.int32)[row_numbers(starts)]
        packed[q] = (starts, edge)
    return packed
