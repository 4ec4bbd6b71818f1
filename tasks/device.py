"""To the GPU and back: what is computed there are the same tasks, over arrays that lie there."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np

from .. import kernels
from .bound.intervals import Intervals
from .ingest import OwnedEdges


def owned_to_device(owned: OwnedEdges) -> OwnedEdges:
    """The edges of a partition on the GPU, without what only publishing needs."""
    unused = np.zeros(0, np.int16)
    slim = replace(owned, bucket=unused, row=unused.astype(np.int32))
    arrays = {f.name: getattr(slim, f.name) for f in fields(slim)}
    moved = {name: kernels.to_device(array) for name, array in arrays.items() if isinstance(array, np.ndarray)}
    return replace(slim, **moved)


def intervals_to_host(found: Intervals) -> Intervals:
    """The intervals of a partition in the host's memory."""
    low = kernels.to_host(found.low)
    return Intervals(low, low if found.high is found.low else kernels.to_host(found.high))
