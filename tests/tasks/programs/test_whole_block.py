"""The only block of an undirected graph, built from sorted edges without sorting, is the one that sorting builds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgemill.tasks.device import MemorySpace
from edgemill.tasks.partition import RangePartitioner
from edgemill.tasks.programs import Entries, entries_of
from edgemill.tasks.programs.block import build_block, build_whole_block
from edgemill.tasks.programs.delivery import collect_block
from edgemill.tasks.programs.program import View
from examples import examples
from vertex_programs import Drawn, arrays, graphs

VIEWS: tuple[View, ...] = ("in", "both", "either")


@pytest.fixture(autouse=True)
def _once(space: MemorySpace) -> None:
    if space is MemorySpace.DEVICE:
        pytest.skip("of the CPU")


@given(graphs(), st.sampled_from(VIEWS), st.booleans(), st.integers(0, 40))
@settings(max_examples=examples(100))
def test_the_same_block(graph: Drawn, view: View, weighted: bool, first: int) -> None:
    """From edges sorted by (low, high) in two buckets, without loops."""
    drawn = graph.entries()
    low, high = np.minimum(drawn.source, drawn.target), np.maximum(drawn.source, drawn.target)
    _, of = np.unique(low.astype(np.int64) * graph.vertices + high, return_index=True)
    of = of[low[of] < high[of]]
    edges = Entries(low[of], high[of], np.arange(len(of), dtype=np.float64) if weighted else None)
    parts = {b: entries_of(edges.at(own), False, view) for b, own in enumerate((slice(first), slice(first, None)))}
    number = np.arange(graph.vertices, dtype=np.int32)
    known = build_block(0, 1, graph.vertices, number, entries_of(edges, False, view), False, view)
    found = build_whole_block(graph.vertices, [*parts.values()], view)
    assert found is not None and arrays(found) == arrays(known)
    collected = collect_block(0, graph.vertices, RangePartitioner(), False, view, weighted, parts)
    assert arrays(collected) == arrays(known)


@pytest.mark.parametrize(
    "edges",
    [[(1, 2), (0, 1)], [(0, 1), (0, 1)], [(0, 2), (0, 1)], [(1, 0)], [(0, 1), (2, 2)]],
    ids=["low", "equal", "high", "down", "loop"],
)
def test_other_edges_are_not_taken_for_sorted_ones(edges: list[tuple[int, int]]) -> None:
    ends = np.array(edges, np.int32).T
    both = np.concatenate([ends, ends[::-1]], axis=1)
    assert build_whole_block(3, [Entries(both[0], both[1])], "both") is None


def test_edges_in_one_direction_are_not_halves() -> None:
    ends = np.array([(0, 1), (0, 2), (1, 2), (1, 3)], np.int32).T
    assert build_whole_block(4, [Entries(ends[0], ends[1])], "both") is None
