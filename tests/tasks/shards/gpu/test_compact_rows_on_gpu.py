"""Peeling in compact rows on the GPU, against banding on the CPU."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bounding
import drive
import strategies
from cut_graphs import cut_graph
from edgemill import kernels
from edgemill.tasks.bound.peel import peel, peel_intervals
from edgemill.tasks.graph.subgraph import Subgraph
from edgemill.tasks.ingest import owned_to_device

VERTICES = 40

pytestmark = pytest.mark.gpu
pytest.importorskip("edgemill.kernels.gpu", exc_type=ImportError)


def both(rows: strategies.EdgeList) -> tuple[Subgraph, Any]:
    """The graph's subgraph on the GPU, and λ by banding on the CPU."""
    graph = cut_graph(rows, 1, "hash")
    (there,) = drive.subgraphs([owned_to_device(owned) for owned in graph.owned])
    (known,) = bounding.band(graph.subgraphs)
    return there, known.low


def in_one_piece(subgraph: Subgraph) -> Any:
    return kernels.to_host(peel_intervals(subgraph, peel(subgraph, compact_rows=True)).low)


@given(
    rows=strategies.edge_lists(VERTICES),
    room=st.sampled_from([2, 8, 2**16]),
    shrink_at=st.sampled_from([0.5, 0.95]),
    rounds=st.sampled_from([1, 3, 1000]),
)
@settings(max_examples=500)
def test_drawn_graphs(rows: strategies.EdgeList, room: int, shrink_at: float, rounds: int) -> None:
    """With lists that overflow, rows that are built anew time and again, and launches of few rounds."""
    subgraph, known = both(rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("edgemill.kernels.gpu.compact_rows._LEAST_ROOM", room)
        patch.setattr("edgemill.kernels.gpu.compact_rows.SHRINK_AT", shrink_at)
        patch.setattr("edgemill.kernels.gpu.compact_rows.MOST_ROUNDS", rounds)
        assert np.array_equal(in_one_piece(subgraph), known)


@given(rows=strategies.edge_lists(VERTICES), turns=st.lists(st.booleans(), min_size=1, max_size=5))
@settings(max_examples=200)
def test_one_kind_of_rows_goes_on_from_what_the_other_found(rows: strategies.EdgeList, turns: list[bool]) -> None:
    """Between two pieces the intervals hold λ."""
    subgraph, known = both(rows)
    found = None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("edgemill.kernels.gpu.compact_rows.MOST_ROUNDS", 1)
        patch.setattr("edgemill.kernels.gpu.peel.MAX_ROUNDS", 1)
        while found is None or found.left:
            turns = [*turns[1:], turns[0]]
            found = peel(subgraph, found, 0, compact_rows=turns[0])
            ends = peel_intervals(subgraph, found)
            assert (kernels.to_host(ends.low) <= known).all()
            assert (known <= kernels.to_host(ends.high)).all()
    assert np.array_equal(kernels.to_host(peel_intervals(subgraph, found).low), known)


@pytest.mark.parametrize(
    "rows",
    [
        list(combinations(range(300), 2)),
        [(hub, leaf) for hub in (0, 1) for leaf in range(2, 5000)] + [(0, 1)],
        [(0, leaf) for leaf in range(1, 5000)] + [(leaf, leaf + 1) for leaf in range(1, 4999)],
        [],
    ],
    ids=["a clique", "two hubs", "a wheel", "no edge"],
)
def test_known_shapes(rows: strategies.EdgeList) -> None:
    """Rows of many units, all of whose edges leave in one round, and none."""
    subgraph, known = both(rows)
    assert np.array_equal(in_one_piece(subgraph), known)
