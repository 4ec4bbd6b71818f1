"""Tracks: numbers that DN-graphs keep from one night of a series to the next, found bucket by bucket. In order:

    every bucket   inherit_tracks       without an earlier result nothing is inherited
    exchange 1     send_shapes          buckets → one task: number_shapes
    exchange 2                          one task → buckets: collect_tracks

Before that, for the result of the night before and for one that is replaced:

    exchange       send_overlaps        buckets of vertices → buckets of DN-graphs: match

For the counts of changes since the night before:

    exchange       send_outcomes        buckets of DN-graphs → buckets of old DN-graphs: count_old

DN-graphs are rows of the hierarchy, ascending by id. The one task gets the number of DN-graphs of each λ, vertices and
edges per bucket, not the DN-graphs: most of them have one of a few small sizes. May import `dense`, `ids`, `ingest`,
`inputs` and `storage`. Start with `overlaps`.
"""

from .changes import Fates, NewCounts, OldCounts, PairOutcomes, count_new, count_old, send_outcomes, summed
from .earlier_result import EarlierResult
from .inheritance import InheritedTracks, inherit_tracks
from .numbers import Numbers, Shapes, collect_tracks, number_shapes, send_shapes
from .overlaps import MatchedPairs, Overlaps, match, members_of, overlaps_of, send_overlaps

__all__ = [
    "EarlierResult",
    "Fates",
    "InheritedTracks",
    "MatchedPairs",
    "NewCounts",
    "Numbers",
    "OldCounts",
    "Overlaps",
    "PairOutcomes",
    "Shapes",
    "collect_tracks",
    "count_new",
    "count_old",
    "inherit_tracks",
    "match",
    "members_of",
    "number_shapes",
    "overlaps_of",
    "send_outcomes",
    "send_overlaps",
    "send_shapes",
    "summed",
]
