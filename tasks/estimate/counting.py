"""Estimate the number of edges and vertices from a sample.

If all rows were read, the sampled share is known, and counts are scaled by it. Otherwise the number of new edges in the
unread rows is estimated from the number of sampled edges that occur in one, two or more stretches of the input. If no
edge occurs in three stretches, edges are assumed to occur at most twice, as in files that list both directions, and the
estimate counts pairs (Bonferroni). Else Chao's incidence-based estimate is extrapolated to all stretches (Colwell et
al., J. Plant Ecology 2012).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .sampling import Sample


@dataclass(frozen=True)
class EstimatedCount:
    """An estimated count with a range."""

    likely: int
    least: int
    """Lower end of the plausible range."""
    most: int
    """Upper end of the plausible range."""


def count_edges(sample: Sample) -> EstimatedCount:
    """The estimated number of distinct edges of the input."""
    proper = sample.rows_read - sample.left_out - sample.self_loops
    kept = int(sample.repeated.sum())
    scale = proper / kept if kept else 0.0
    return _extrapolate(sample, len(sample) * scale if kept else float(proper), sample.edge_stretches, scale)


def count_vertices(sample: Sample) -> EstimatedCount:
    """The estimated number of vertices of the input."""
    return _extrapolate(
        sample, np.count_nonzero(sample.picked) / sample.share, sample.vertex_stretches, 1 / sample.share
    )


def _extrapolate(sample: Sample, seen: float, stretches: NDArray[np.int64], scale: float) -> EstimatedCount:
    """The estimate from `seen`, the count in the rows read, and `stretches`, the number of stretches with each item.

    One sampled item stands for `scale` items.
    """
    if sample.is_whole:
        return EstimatedCount(*[round(seen)] * 3)
    read = sample.rows_read / sample.rows
    if not len(stretches):
        return EstimatedCount(*[round(seen / read)] * 3)
    incidences, once, twice = (
        float(x) * scale for x in (stretches.sum(), (stretches == 1).sum(), (stretches == 2).sum())
    )
    pairs = max(seen, (incidences - twice / read) / read)
    unseen = once**2 / (2 * max(twice, scale))
    rate = once / (sample.stretches * unseen + once) if once else 0.0
    chao = seen + unseen * (1 - (1 - rate) ** (sample.stretches * (1 / read - 1)))
    likely = pairs if stretches.max() < 3 else chao
    return EstimatedCount(round(likely), round(min(pairs, chao)), round(max(likely, seen / read)))
