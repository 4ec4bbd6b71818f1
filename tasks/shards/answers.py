"""Groups return λ to the buckets. An edge without triangles has λ 0, which is not sent.

exchange   send_intervals   groups → buckets: collect_intervals
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ..device import place_like
from ..errors import InternalError
from ..ids import order
from ..ingest import OwnedRows
from ..messages import Bundle, Payload, bundle
from ..publish.lambda_columns import BucketResults
from .supports import BucketSupports


@dataclass(frozen=True)
class EdgeIntervals(Payload):
    """λ of edges, sent by their owner to the bucket that publishes them. `len()` is the number of edges."""

    row: NDArray[np.int32]
    """[edges] row of the edge in the bucket's BucketEdges."""

    low: NDArray[np.int32]
    """[edges] lower bound of λ."""

    high: NDArray[np.int32]
    """[edges] upper bound of λ; the same array as `low` if all λ are known, so that it is sent once."""

    def __len__(self) -> int:
        return len(self.row)


def send_intervals(owned: OwnedRows, low: NDArray[np.int32], high: NDArray[np.int32]) -> Bundle[EdgeIntervals]:
    """Group → buckets: send the bounds of λ [owned edges] of the group's edges to the buckets that publish them.

    They are moved to the device of `owned`. If all λ are known, one array is sent. Raises InternalError unless there is
    an interval for each edge.
    """
    if not len(low) == len(high) == len(owned):
        raise InternalError(f"group {owned.partition} owns {len(owned)} edges and has λ of {len(low)}")
    if not len(owned):
        return bundle(owned.partition, {})
    if low is not high and np.array_equal(low, high):
        high = low
    known, low = high is low, place_like(owned.row, low)
    high = low if known else place_like(owned.row, high)
    by_bucket, cuts = order.group(owned.bucket, int(owned.bucket.max()) + 1)
    parts = {}
    for b in np.flatnonzero(np.diff(cuts)).tolist():
        rows = by_bucket[cuts[b] : cuts[b + 1]]
        part_low = low[rows]
        parts[b] = EdgeIntervals(owned.row[rows], part_low, part_low if high is low else high[rows])
    return bundle(owned.partition, parts)


def collect_intervals(supports: BucketSupports, parts: Mapping[int, EdgeIntervals]) -> BucketResults:
    """The results of a bucket's edges, in row order.

    Raises InternalError unless exactly one interval arrived for every edge with triangles, and none for other edges.
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
    if came != kernels.total(arrived) or kernels.total(arrived != (supports.support > 0)):
        raise InternalError(
            f"bucket {supports.bucket} has {supports.closed} edges with triangles, but {came} λ arrived, "
            "not one for each"
        )
    return BucketResults(supports.bucket, supports.support, low, high)
