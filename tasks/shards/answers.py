"""λ comes back from the groups to the buckets; an edge without triangles has λ 0, and nobody sends it.

exchange   send_intervals   groups → buckets: collect_intervals
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...kernels.held import Held
from .. import order
from ..device import beside
from ..errors import InternalError
from ..ingest import OwnedRows
from ..messages import Bundle, bundle
from ..publish import BucketResults
from .supports import BucketSupports


@dataclass(frozen=True)
class EdgeIntervals(Held):
    """λ on its way from the owners of edges to the bucket that publishes them. `len()` counts the edges."""

    row: NDArray[np.int32]
    """[edges] row in the bucket's BucketEdges."""

    low: NDArray[np.int32]
    """[edges] λ is at least this."""

    high: NDArray[np.int32]
    """[edges] λ is at most this; the same array as `low` where all λ are known, which saves its transport."""

    def __len__(self) -> int:
        return len(self.row)


def send_intervals(owned: OwnedRows, low: NDArray[np.int32], high: NDArray[np.int32]) -> Bundle[EdgeIntervals]:
    """Group → buckets: λ of its own edges (each [owned edges]) to the bucket that publishes them.

    It lies where `owned` does. Where all λ are known, less is sent. Raises InternalError unless there is an interval
    for each.
    """
    if not len(low) == len(high) == len(owned):
        raise InternalError(f"group {owned.partition} owns {len(owned)} edges and found λ of {len(low)}")
    if not len(owned):
        return bundle(owned.partition, {})
    if low is not high and np.array_equal(low, high):
        high = low
    known, low = high is low, beside(owned.row, low)
    high = low if known else beside(owned.row, high)
    by_bucket, cuts = order.group(owned.bucket, int(owned.bucket.max()) + 1)
    parts = {}
    for b in np.flatnonzero(np.diff(cuts)).tolist():
        rows = by_bucket[cuts[b] : cuts[b + 1]]
        part_low = low[rows]
        parts[b] = EdgeIntervals(owned.row[rows], part_low, part_low if high is low else high[rows])
    return bundle(owned.partition, parts)


def collect_intervals(supports: BucketSupports, parts: Mapping[int, EdgeIntervals]) -> BucketResults:
    """The results of a bucket's edges, in row order.

    Raises InternalError unless every edge with triangles has got exactly one answer, and no other edge any.
    """
    low = np.zeros_like(supports.support)
    high = low if all(part.low is part.high for part in parts.values()) else np.zeros_like(low)
    arrived = np.zeros_like(low, np.bool_)
    for part in parts.values():
        arrived[part.row] = True
        low[part.row] = part.low
        if high is not low:
            high[part.row] = part.high
    came = sum(map(len, parts.values()))
    if came != int(np.count_nonzero(arrived)) or not np.array_equal(arrived, supports.support > 0):
        raise InternalError(
            f"bucket {supports.bucket} has {supports.closed} edges with triangles, and {came} answers came, "
            "not one for each"
        )
    return BucketResults(supports.bucket, supports.support, low, high)
