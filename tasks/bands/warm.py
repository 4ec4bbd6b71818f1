"""Compiles the kernels of peeling in bands, or loads them from the cache, before a stage is timed."""

from __future__ import annotations

from typing import cast

import numpy as np

from ... import kernels
from ...kernels.cpu.arrays.shared_words import load_acquire, spin_until_at_least, store_release
from ...kernels.filters import PlainChanges
from ...kernels.runtime.cache import compiling
from ..device import MemorySpace
from ..graph import whole_graph
from ..shards.carriers.carrier import MemoryCarrier
from ..warm import whole_cliques
from .copies import graph_copy
from .filtering import CoarseFilter
from .peeling import BandState, band_intervals, peel_band
from .sums import WorkerSums


def warm_bands() -> None:
    """Call the kernels of packets between workers. One process of a machine compiles them, and the others load them.

    `kernels.runtime.warm` has the kernels that peel.
    """
    with compiling("packets of bands"):
        own = np.zeros(1, np.uint32)
        store_release(own, 0, 1)
        own.flags.writeable = False  # words of other workers are read-only
        spin_until_at_least(own, 0, load_acquire(own, 0), 1)


def warm_bands_on_gpu() -> None:
    """Peel some cliques in bands on the GPU."""
    graph = whole_graph(whole_cliques(MemorySpace.DEVICE))
    copy = graph_copy(graph)
    topology, support = copy.topology(), copy.support
    bands = CoarseFilter(topology, support, WorkerSums(MemoryCarrier.open(1)[0])).run()
    state = BandState.of(bands)
    found = {band: peel_band(topology, bands, band) for band in state.unfinished}
    band_intervals(graph, state)
    band_intervals(graph, state.with_bands(found))
    part = kernels.filtering(topology, support.copy())
    part.find(int(support.max()) + 1)
    part.remove_share(0, 2)
    words, _ = part.pack(0, topology.edges)
    part.collect(words, 0)
    part.apply(words, 0)
    plain = cast("PlainChanges", part)
    plain.weigh(0, topology.edges)
    plain.subtract([(0, np.zeros_like(plain.amounts))])
    part.end_pass()
    part.smaller()
