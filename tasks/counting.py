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
    proper = sample.rows_read - sample.nulls - sample.self_loops
    if not len(sample):
        return Guess(*[round(proper / max(1, sample.rows_read) * sample.rows)] * 3)
    return _all(sample, sample.edge_stretches, proper / int(sample.repeated.sum()))


def count_vertices(sample: Sample) -> Guess:
    """The vertices of the input."""
    return _all(sample, sample.vertex_stretches, 1 / sample.share)


def _all(sample: Sample, stretches: NDArray[np.int64], scale: float) -> Guess:
    """From the number of stretches that have each thing; there are `scale` as many things in what was read."""
    seen = len(stretches) * scale
    if sample.is_whole or not len(stretches):
        return Guess(*[round(seen)] * 3)
    read = sample.rows_read / sample.rows
    incidences, once, twice = (
        float(x) * scale for x in (stretches.sum(), (stretches == 1).sum(), (stretches == 2).sum())
    )
    pairs = max(seen, (incidences - twice / read) / read)
    unseen = once**2 / (2 * max(twice, scale))
    rate = once / (sample.stretches * unseen + once) if once else 0.0
    chao = seen + unseen * (1 - (1 - rate) ** (sample.stretches * (1 / read - 1)))
    likely = pairs if stretches.max() < 3 else chao
    return Guess(round(likely), round(min(pairs, chao)), round(max(likely, seen / read)))
