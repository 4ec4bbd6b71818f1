"""Peeling of one band: λ of its edges. Edges of higher bands remain meanwhile, and those of lower ones are gone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ... import kernels
from ...kernels.graph import IntArray, Topology
from ..errors import InternalError
from .filtering import Bands


def peel_band(
    topology: Topology, bands: Bands, band: int, progress: Callable[[int, int], None] | None = None
) -> IntArray:
    """λ of the edges of one band, int32, by their numbers. Calls `progress(level, edges of the band left)`.

    Raises InternalError if an edge has fewer triangles than the first level of the band, or remains at its end.
    """
    first, stop = bands.first_level(band), bands.stops[band]
    own = bands.band == band
    size = kernels.total(own)
    least = int(kernels.take(bands.start, kernels.nonzero(own)).min()) if size else first
    if least < first:
        raise InternalError(f"band {band} begins at level {first}, and an edge of it has {least} triangles")
    if bands.single[band]:
        return np.full_like(bands.start, stop - 1, shape=(size,))
    kept = kernels.nonzero(bands.band >= band)
    part = Topology(kernels.take(topology.low, kept), kernels.take(topology.high, kept), topology.vertices)
    higher = kernels.take(bands.band, kept) > band
    peeling = kernels.peeling(part, kernels.take(bands.start, kept), None, first, 0, higher)
    while peeling.left:
        peeling.advance()
        if progress is not None:
            progress(peeling.level, peeling.left)
    if peeling.level > stop:
        raise InternalError(f"band {band} ends at level {stop - 1}, and an edge of it has λ {peeling.level - 1}")
    return kernels.take(peeling.low, kernels.nonzero(~higher))
