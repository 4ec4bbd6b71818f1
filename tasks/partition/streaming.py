"""Partition by moving vertices to their neighbours, pass after pass, from where the ranges of ids have put them.

Linear deterministic greedy (Stanton and Kliot, "Streaming graph partitioning for large distributed graphs", KDD 2012),
restreamed (Nishimura and Ugander, KDD 2013). All buckets stream at once: what lies in others is seen as it was before
the pass, and each may fill only its share of the room that partitions had, so none overflows.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from . import Partitioner
from .neighbours import Neighbours, Parts, all_labels, loads_of


def start_parts(neighbours: Neighbours, partitioner: Partitioner) -> Parts:
    """The vertices of a bucket where a partitioner puts them."""
    part = partitioner(np.arange(neighbours.first, neighbours.first + neighbours.vertices))
    return Parts(part, loads_of(neighbours.load, part, partitioner.partitions))


def restream(
    neighbours: Neighbours,
    parts: Parts,
    loads: NDArray[np.int64],
    room: NDArray[np.int64],
    capacity: int,
    turn: int,
    answers: Mapping[int, NDArray[np.int16]],
) -> Parts:
    """One pass over half of a bucket's vertices, the other half in the next `turn`.

    `loads` [partitions] is what partitions have taken of their `capacity` before it, `room` [partitions] what may be
    added here.
    """
    part, moved = kernels.restream(
        neighbours.offsets,
        neighbours.member,
        neighbours.weight,
        neighbours.load,
        all_labels(neighbours, parts, answers),
        loads,
        room,
        capacity,
        turn,
    )
    return Parts(part, loads_of(neighbours.load, part, len(loads)), moved)
