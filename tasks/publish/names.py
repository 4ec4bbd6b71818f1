"""The original ids of the larger ends of a bucket's edges: one exchange from buckets to buckets."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..errors import InternalError
from ..ids import identity
from ..ids.identity import Ids
from ..ingest.degrees import BucketDegrees
from ..ingest.numbering import BucketEdges, BucketIds
from ..messages import Bundle, bundle


def answer_names(ids: BucketIds, degrees: BucketDegrees) -> Bundle[Ids]:
    """Bucket → buckets: the original ids of the vertices that each bucket has as larger ends."""
    return bundle(ids.bucket, {asker: identity.take(ids.ids, asked) for asker, asked in degrees.asked.items()})


def join_names(edges: BucketEdges, kind: identity.Kind, answers: Mapping[int, Ids]) -> Ids:
    """The original ids of `edges.highs`, from the answers of all buckets. Raises InternalError if ids are missing."""
    none = edges.highs[:0].astype(np.int64) if kind == "integer" else identity.no_ids(kind)
    names = identity.concatenate([answers[b] for b in sorted(answers)] or [none])
    if len(names) != len(edges.highs):
        raise InternalError(f"bucket {edges.bucket} asked for {len(edges.highs)} ids and got {len(names)}")
    return names
