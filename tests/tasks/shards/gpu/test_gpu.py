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
from edgemill import kernels
from edgemill.tasks.bound.fixpoint import Operator, fixpoint_intervals
from edgemill.tasks.bound.intervals import Intervals
from edgemill.tasks.device import MemorySpace, move_arrays
from edgemill.tasks.ingest import owned_to_device
from held_graphs import held_graph

VERTICES = 40

pytestmark = pytest.mark.gpu
pytest.importorskip("edgemill.kernels.gpu", exc_type=ImportError)


def on_host(intervals: Intervals) -> Intervals:
    return move_arrays(intervals, MemorySpace.HOST)


@given(rows=strategies.edge_lists(VERTICES))
@settings(max_examples=500)
def test_drawn_graphs(rows: strategies.EdgeList) -> None:
    graph = held_graph(rows)
    there, here = drive.subgraph(owned_to_device(graph.owned)), graph.subgraph
    assert here.counts == there.counts
    for name in ("support", "number"):
        assert np.array_equal(getattr(here, name), kernels.to_host(getattr(there, name))), name
    for name, method in bounding.ANYWHERE.items():
        known, found = method(here), on_host(method(there))
        assert np.array_equal(known.low, found.low), name
        assert np.array_equal(known.high, found.high), name


@pytest.mark.parametrize("operator", ["hindex", "tridn"])
@given(rows=strategies.edge_lists(VERTICES), after=st.integers(0, 4))
@settings(max_examples=100)
def test_iterations_that_stop(operator: Operator, rows: strategies.EdgeList, after: int) -> None:
    """Bounds on the way are above λ, and go on to it."""
    graph = held_graph(rows)
    there, known = drive.subgraph(owned_to_device(graph.owned)), bounding.peeling(graph.subgraph).low
    (bounds,) = bounding.lowered(there, operator, after)
    assert (known <= on_host(fixpoint_intervals(there, bounds)).high).all()
    (done,) = bounding.lowered(there, operator, None, 1, bounds)
    assert np.array_equal(on_host(fixpoint_intervals(there, done)).low, known)


@given(rows=strategies.edge_lists(VERTICES))
@settings(max_examples=100)
def test_in_pieces(rows: strategies.EdgeList) -> None:
    """Gone on with after every level, from what was found until then."""
    graph = held_graph(rows)
    there = drive.subgraph(owned_to_device(graph.owned))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("edgemill.kernels.gpu.peel.MAX_ROUNDS", 1)
        found = on_host(bounding.peeling_in_pieces(there))
    assert np.array_equal(bounding.band(graph.subgraph).low, found.low)
    assert found.unsettled == 0


@given(rows=strategies.edge_lists(VERTICES))
@settings(max_examples=100)
def test_frontiers_that_are_grouped(rows: strategies.EdgeList) -> None:
    """As in graphs of hundreds of millions of edges."""
    from edgemill.kernels.gpu.runtime import source

    graph = held_graph(rows)
    there = drive.subgraph(owned_to_device(graph.owned))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("edgemill.kernels.gpu.peel.GROUPED_EDGES", 0)
        patch.setattr("edgemill.kernels.gpu.peel._GROUPED", 1.0)
        patch.setattr(source, "kernel", partial(source.kernel, LEAST_GROUPED=1))
        found = on_host(bounding.peeling(there))
    assert np.array_equal(bounding.band(graph.subgraph).low, found.low)
