"""Tracks: the numbers that DN-graphs keep from one night of a series to the next, found bucket by bucket. In order:

    every bucket   take_over                            a bucket without an earlier result takes over nothing
    exchange 1     send_shapes      buckets → one task: number_shapes
    exchange 2                      one task → buckets: collect_tracks

With the result of the night before, or one that is replaced, before that, for each of them:

    exchange       send_overlaps    buckets of vertices → buckets of DN-graphs: match

And for the counts of what became of the DN-graphs of the night before:

    exchange       send_matches     buckets of DN-graphs → buckets of earlier DN-graphs: count_earlier

The one task sees how many DN-graphs each bucket has of each λ, vertices and edges: most of a large graph's are of a few
small sizes. DN-graphs are given as rows of the hierarchy, ascending by id.
"""

from .earlier import Earlier
from .fates import EarlierCounts, LaterCounts, Matches, count_earlier, count_later, send_matches
from .numbers import Numbers, Shapes, collect_tracks, number_shapes, send_shapes
from .overlaps import Matched, Overlaps, match, members_of, overlaps_of, send_overlaps
from .taking import Taken, take_over

__all__ = [
    "Earlier",
    "EarlierCounts",
    "LaterCounts",
    "Matched",
    "Matches",
    "Numbers",
    "Overlaps",
    "Shapes",
    "Taken",
    "collect_tracks",
    "count_earlier",
    "count_later",
    "match",
    "members_of",
    "number_shapes",
    "overlaps_of",
    "send_matches",
    "send_overlaps",
    "send_shapes",
    "take_over",
]
