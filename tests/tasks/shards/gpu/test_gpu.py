"""The tasks of triangulation and bounding on the GPU, against the same tasks on the CPU."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bounding
import drive
import strategies
from cut_graphs import cut_graph
from edgemill import kernels
from edgemill.tasks.bound.intervals import Intervals
from edgemill.tasks.device import MemorySpace, move_arrays
from edgemill.tasks.ingest import owned_to_device

VERTICES = 40

pytestmark = pytest.mark.gpu
pytest.importorskip("edgemill.kernels.gpu", exc_type=ImportError)


def on_host(intervals: Intervals) -> Intervals:
    return move_arrays(intervals, MemorySpace.HOST)


@given(
    rows=strategies.edge_lists(VERTICES),
    partitions=st.sampled_from([1, 2, 3, 7]),
    method=st.sampled_from(["range", "hash"]),
)
@settings(max_examples=500)
def test_drawn_graphs(rows: strategies.EdgeList, partitions: int, method: str) -> None:
    graph = cut_graph(rows, partitions, "hash" if method == "hash" else "range")
    there = drive.subgraphs([owned_to_device(owned) for owned in graph.owned])
    for here, subgraph in zip(graph.subgraphs, there, strict=True):
        assert here.counts == subgraph.counts
        assert np.array_equal(here.support, kernels.to_host(subgraph.support))
        for name in ("owned", "number", "ghost", "ghost_number", "subscriber_offsets", "subscriber", "is_owned"):
            assert np.array_equal(getattr(here, name), kernels.to_host(getattr(subgraph, name))), name
    for schedule in bounding.schedules(partitions):
        for here_ends, ends in zip(schedule(graph.subgraphs), map(on_host, schedule(there)), strict=True):
            assert np.array_equal(here_ends.low, ends.low), schedule
            assert np.array_equal(here_ends.high, ends.high), schedule


@given(rows=strategies.edge_lists(VERTICES))
@settings(max_examples=100)
def test_in_pieces(rows: strategies.EdgeList) -> None:
    """Gone on with after every level, from what was found until then."""
    graph = cut_graph(rows, 1, "hash")
    there = drive.subgraphs([owned_to_device(owned) for owned in graph.owned])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("edgemill.kernels.gpu.peel.MAX_ROUNDS", 1)
        found = bounding.peeling_in_pieces(there)
    for known, own in zip(bounding.band(graph.subgraphs), map(on_host, found), strict=True):
        assert np.array_equal(known.low, own.low)
        assert own.unsettled == 0


@given(rows=strategies.edge_lists(VERTICES))
@settings(max_examples=100)
def test_frontiers_that_are_grouped(rows: strategies.EdgeList) -> None:
    """As in graphs of hundreds of millions of edges."""
    from edgemill.kernels.gpu.runtime import source

    graph = cut_graph(rows, 1, "hash")
    there = drive.subgraphs([owned_to_device(owned) for owned in graph.owned])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("edgemill.kernels.gpu.peel.GROUPED_EDGES", 0)
        patch.setattr("edgemill.kernels.gpu.peel._GROUPED", 1.0)
        patch.setattr(source, "kernel", partial(source.kernel, LEAST_GROUPED=1))
        (found,) = map(on_host, bounding.peeling(there))
    assert np.array_equal(bounding.band(graph.subgraphs)[0].low, found.low)
