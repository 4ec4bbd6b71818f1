"""Blocks → buckets: distances by targets become distances by sources. Buckets → buckets: the ids of all targets.

exchange 1   send_pairs   blocks → buckets: collect_pairs
exchange 2   send_all_ids   buckets → buckets: collect_all_ids
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ...errors import InternalError
from ...ids import identity
from ...ids.identity import Ids
from ...ingest.numbering import BucketIds, split_by_bucket
from ...messages import Bundle, bundle
from ..block import NO_PATH, PairTable
from ..running import Outcome


def send_pairs(outcome: Outcome, starts: NDArray[np.int64]) -> Bundle[PairTable]:
    """Block → buckets: the distances from the sources in each bucket to the vertices of the block."""
    found = outcome.pairs
    assert found is not None
    cuts, parts = split_by_bucket(found.column, starts), {}
    for b in np.flatnonzero(np.diff(cuts)).tolist():
        own = slice(cuts[b], cuts[b + 1])
        parts[b] = PairTable(found.column[own], found.row, np.ascontiguousarray(found.distance[:, own].T))
    return bundle(outcome.group, parts)


def collect_pairs(bucket: int, vertices: int, parts: Mapping[int, PairTable]) -> PairTable:
    """The distances from the sources in a bucket to all vertices.

    Raises InternalError unless each vertex is in one block.
    """
    if not parts:
        none = np.zeros(0, np.int64)
        return PairTable(none, np.arange(vertices), np.zeros((0, vertices), np.uint16))
    row = next(iter(parts.values())).row
    distance, arrived = np.full((len(row), vertices), NO_PATH), 0
    for part in parts.values():
        distance[:, part.column] = part.distance
        arrived += len(part.column)
    if arrived != vertices:
        raise InternalError(f"bucket {bucket} got the distances to {arrived:,} of {vertices:,} vertices")
    return PairTable(row, np.arange(vertices), distance)


def send_all_ids(ids: BucketIds, buckets: int) -> Bundle[Ids]:
    """Bucket → buckets: all ids of the bucket."""
    own = identity.to_host(ids.ids)
    return bundle(ids.bucket, dict.fromkeys(range(buckets), own))


def collect_all_ids(kind: identity.Kind, parts: Mapping[int, Ids]) -> Ids:
    """The ids of all vertices, in the order of their numbers."""
    return identity.concatenate([parts[b] for b in sorted(parts)] or [identity.no_ids(kind)])
