"""The only block of an undirected graph, built from sorted edges without sorting, is the one that sorting builds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from edgemill.kernels.runtime.threads import kernel_threads
from edgemill.tasks.device import MemorySpace
from edgemill.tasks.partition import RangePartitioner
from edgemill.tasks.programs import Entries, entries_of
from edgemill.tasks.programs.block import build_block
from edgemill.tasks.programs.delivery import collect_block
from edgemill.tasks.programs.program import View
from edgemill.tasks.programs.streaming import place_entries
from examples import examples
from vertex_programs import Drawn, arrays, graphs

VIEWS: tuple[View, ...] = ("in", "both", "either")


@given(graphs(), st.sampled_from(VIEWS), st.booleans(), st.integers(0, 40))
@settings(max_examples=examples(100))
def test_the_same_block(space: MemorySpace, graph: Drawn, view: View, weighted: bool, first: int) -> None:
    """From edges sorted by (low, high) in two buckets, without loops."""
    drawn = graph.entries()
    low, high = np.minimum(drawn.source, drawn.target), np.maximum(drawn.source, drawn.target)
    _, of = np.unique(low.astype(np.int64) * graph.vertices + high, return_index=True)
    of = of[low[of] < high[of]]
    edges = Entries(low[of], high[of], np.arange(len(of), dtype=np.float64) if weighted else None)
    parts = {b: replace(edges.at(own), mirrored=True) for b, own in enumerate((slice(first), slice(first, None)))}
    number = np.arange(graph.vertices, dtype=np.int32)
    known = build_block(0, 1, graph.vertices, number, entries_of(edges, False, view), False, view)
    for threads in (1, 3):
        with kernel_threads(threads):
            placed = place_entries(parts, graph.vertices, weighted, space is MemorySpace.DEVICE, None)
            found = collect_block(0, graph.vertices, RangePartitioner(), False, view, weighted, placed)
        assert found.on_device == (space is MemorySpace.DEVICE)
        assert arrays(found.placed(MemorySpace.HOST)) == arrays(known)
