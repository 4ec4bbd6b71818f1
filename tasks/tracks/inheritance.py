"""Which DN-graphs of a bucket inherit a track from an earlier result."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...kernels.runtime.sizes import SizedArrays
from ..dense.merge import Components
from .earlier_result import EarlierResult
from .overlaps import MatchedPairs


@dataclass(frozen=True)
class InheritedTracks(SizedArrays):
    """The tracks that DN-graphs of a bucket have inherited."""

    track: NDArray[np.int64]
    """[DN-graphs] the track; 0 if the DN-graph needs a new one."""
    continued: int
    """DN-graphs with a track from the night before."""
    again: int
    """DN-graphs with a track from the result that is replaced."""


def inherit_tracks(
    graphs: Components, before: MatchedPairs | None, replaced: MatchedPairs | None, night_before: EarlierResult | None
) -> InheritedTracks:
    """The tracks that the DN-graphs of a bucket inherit.

    A DN-graph inherits the track of the same DN-graph of the night before. Without one it inherits the track of the
    same DN-graph of the replaced result, unless a DN-graph of the night before has this track. `before` and `replaced`
    are the pairs with the two results, None if there is no such result. Raises as `EarlierResult` does.
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
    return InheritedTracks(track, continued, int(np.count_nonzero(track)) - continued)
