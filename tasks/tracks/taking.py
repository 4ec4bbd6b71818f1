"""Which DN-graphs of a bucket take over a track."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...kernels.held import Held
from ..dense.merge import Components
from .earlier import Earlier
from .overlaps import Matched


@dataclass(frozen=True)
class Taken(Held):
    """The tracks that DN-graphs of a bucket have taken over."""

    track: NDArray[np.int64]
    """[DN-graphs] 0 where a new number is wanted."""
    continued: int
    """DN-graphs with the track of one of the night before."""
    again: int
    """DN-graphs with the track that they had in the result that is replaced."""


def take_over(
    graphs: Components, before: Matched | None, replaced: Matched | None, night_before: Earlier | None
) -> Taken:
    """Each DN-graph takes the track of the one of the night before that is the same; of the others, each takes that of
    the one of the replaced result that is the same, unless the night before has a DN-graph of this track: whatever
    became of it, it is none of the replaced result.

    Raises as `Earlier` does.
    """
    track = np.zeros(len(graphs), np.int64)
    if before is not None:
        same = before.same(graphs)
        track[before.graph[same]] = before.track[same]
    continued = int(np.count_nonzero(track))
    if replaced is not None:
        left = np.flatnonzero(replaced.same(graphs) & (track[replaced.graph] == 0))
        if night_before is not None and len(left):
            known = night_before.tracks_among(pa.array(replaced.track[left]))
            left = left[~np.isin(replaced.track[left], known.to_numpy())]
        track[replaced.graph[left]] = replaced.track[left]
    return Taken(track, continued, int(np.count_nonzero(track)) - continued)
