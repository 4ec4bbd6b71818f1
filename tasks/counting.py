"""How many edges and vertices there are, from a sample.

Shares that are known where all rows were looked at. Of larger inputs a part is unseen, and how many of its edges are
new can only be guessed from how many of those seen lie in one stretch of the input, in two, in more. Where none lies in
three, each stands in two at most, as in files that name both directions, and pairs are counted up (Bonferroni). Else
Chao's incidence-based estimate is extrapolated to all stretches (Colwell et al., J. Plant Ecology 2012).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .sampling import Sample


@dataclass(frozen=True)
class Guess:
    """A number that is estimated."""

    likely: int
    least: int
    """Less would surprise."""
    most: int
    """More would surprise."""


def count_edges(sample: Sample) -> Guess:
    """The distinct edges of the input."""
    proper = sample.rows_read - sample.left_out - sample.self_loops
    kept = int(sample.repeated.sum())
    scale = proper / kept if kept else 0.0
    return _all(sample, len(sample) * scale if kept else float(proper), sample.edge_stretches, scale)


def count_vertices(sample: Sample) -> Guess:
    """The vertices of the input."""
    return _all(sample, np.count_nonzero(sample.picked) / sample.share, sample.vertex_stretches, 1 / sample.share)


def _all(sample: Sample, seen: float, stretches: NDArray[np.int64], scale: float) -> Guess:
    """Where so many were seen; and from the stretches that have each one kept, which stands for `scale` of them."""
    if sample.is_whole:
        return Guess(*[round(seen)] * 3)
    read = sample.rows_read / sample.rows
    if not len(stretches):
        return Guess(*[round(seen / read)] * 3)
    incidences, once, twice = (
        float(x) * scale for x in (stretches.sum(), (stretches == 1).sum(), (stretches == 2).sum())
    )
    pairs = max(seen, (incidences - twice / read) / read)
    unseen = once**2 / (2 * max(twice, scale))
    rate = once / (sample.stretches * unseen + once) if once else 0.0
    chao = seen + unseen * (1 - (1 - rate) ** (sample.stretches * (1 / read - 1)))
    likely = pairs if stretches.max() < 3 else chao
    return Guess(round(likely), round(min(pairs, chao)), round(max(likely, seen / read)))
