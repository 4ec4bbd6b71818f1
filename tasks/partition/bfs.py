"""Partition by growing regions breadth first, level by level over all buckets, from seeds spread over the ids."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from .neighbours import Neighbours, Parts, all_labels, loads_of


def plant(neighbours: Neighbours, seeds: NDArray[np.int64]) -> Parts:
    """All vertices in no partition but the seeds, whose dense numbers are [partitions]; the first one of two alike."""
    part = np.full(neighbours.vertices, -1, np.int16)
    for number in range(len(seeds) - 1, -1, -1):
        place = int(seeds[number]) - neighbours.first
        if 0 <= place < neighbours.vertices:
            part[place] = number
    return Parts(part, loads_of(neighbours.load, part, len(seeds)))


def grow(
    neighbours: Neighbours,
    parts: Parts,
    room: NDArray[np.int64],
    levels: int,
    answers: Mapping[int, NDArray[np.int16]],
) -> Parts:
    """Grow the regions in one bucket by so many levels, or, with 0, until no vertex is left; `room` [partitions] is
    what may be added here.
    """
    labels = all_labels(neighbours, parts, answers)
    part = kernels.grow(neighbours.offsets, neighbours.member, neighbours.load, labels, room, levels)
    return Parts(part, loads_of(neighbours.load, part, len(room)), moved=int(np.count_nonzero(part != parts.part)))
