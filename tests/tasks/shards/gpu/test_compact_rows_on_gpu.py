"""Peeling of a whole graph on the GPU, in compact rows and then in plain ones, against halved bands on the CPU."""

from __future__ import annotations

import gc
from dataclasses import replace
from importlib import import_module
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bounding
import drive
import strategies
from edgemill import kernels
from edgemill.tasks.bound.peel import peel, peel_intervals
from edgemill.tasks.graph import WholeGraph, whole_graph
from edgemill.tasks.ingest import owned_to_device
from held_graphs import held_graph

VERTICES = 40

pytestmark = pytest.mark.gpu
cupy = pytest.importorskip("cupy", exc_type=ImportError)
pytest.importorskip("edgemill.kernels.gpu", exc_type=ImportError)


def both(rows: strategies.EdgeList) -> tuple[WholeGraph, Any]:
    """The graph on the GPU, and λ by bands that are halved on the CPU."""
    graph = held_graph(rows)
    there = whole_graph(owned_to_device(graph.owned))
    assert np.array_equal(kernels.to_host(there.support), graph.subgraph.support)
    return there, bounding.band(graph.subgraph).low


def in_host_memory(rows: strategies.EdgeList) -> tuple[WholeGraph, Any]:
    """As `both`, where the device has no room: triangles are counted in parts, and the graph is in host memory."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(import_module("edgemill.kernels.gpu.triangles"), "room", lambda wanted: 0)
        patch.setattr("edgemill.kernels.gpu.whole_graph.room", lambda wanted: 0)
        return both(rows)


def in_one_piece(graph: WholeGraph, most_plain: int | None = 0) -> Any:
    return kernels.to_host(peel_intervals(graph, peel(graph, most_plain=most_plain)).low)


@given(
    rows=strategies.edge_lists(VERTICES),
    room=st.sampled_from([2, 8, 2**16]),
    shrink_at=st.sampled_from([0.5, 0.95]),
    rounds=st.sampled_from([1, 3, 1000]),
    most_plain=st.sampled_from([0, 5, 30, None]),
    chunk=st.sampled_from([7, 2**26]),
    far=st.none() | st.integers(0, 2 * VERTICES),
)
@settings(max_examples=600)
def test_drawn_graphs(
    rows: strategies.EdgeList,
    room: int,
    shrink_at: float,
    rounds: int,
    most_plain: int | None,
    chunk: int,
    far: int | None,
) -> None:
    """With lists that overflow, rows that are built anew time and again, launches of few rounds, and plain rows for
    the edges that are left at some level. The keys of the first `far` buckets are in host memory.
    """
    graph, known = both(rows) if far is None else in_host_memory(rows)
    with pytest.MonkeyPatch.context() as patch:
        if far is not None:
            patch.setattr("edgemill.kernels.gpu.whole_graph.compact_rows_fit", lambda vertices, edges: False)
            patch.setattr("edgemill.kernels.gpu.runtime.memory.room", lambda wanted: 0)
            patch.setattr("edgemill.kernels.gpu.compact_rows.room", lambda wanted: wanted - 16 * far)
            patch.setattr("edgemill.kernels.gpu.whole_graph.SHRINK_APART_AT", shrink_at)
        patch.setattr("edgemill.kernels.gpu.whole_graph._LEAST_ROOM", room)
        patch.setattr("edgemill.kernels.gpu.whole_graph.SHRINK_AT", shrink_at)
        patch.setattr("edgemill.kernels.gpu.whole_graph.MOST_ROUNDS", rounds)
        patch.setattr("edgemill.kernels.gpu.whole_graph._PART", chunk)
        assert np.array_equal(in_one_piece(graph, most_plain), known)


@given(rows=strategies.edge_lists(VERTICES), turns=st.lists(st.booleans(), min_size=1, max_size=5))
@settings(max_examples=200)
def test_one_kind_of_rows_goes_on_from_what_the_other_found(rows: strategies.EdgeList, turns: list[bool]) -> None:
    """Between two pieces the intervals hold λ."""
    graph, known = both(rows)
    found = None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("edgemill.kernels.gpu.whole_graph.MOST_ROUNDS", 1)
        patch.setattr("edgemill.kernels.gpu.peel.MAX_ROUNDS", 1)
        while found is None or found.left:
            turns = [*turns[1:], turns[0]]
            found = peel(graph, found, 0, most_plain=0 if turns[0] else None)
            ends = peel_intervals(graph, found)
            assert (kernels.to_host(ends.low) <= known).all()
            assert (known <= kernels.to_host(ends.high)).all()
    assert np.array_equal(kernels.to_host(peel_intervals(graph, found).low), known)


@given(rows=strategies.edge_lists(VERTICES))
@settings(max_examples=50)
def test_a_subgraph_has_the_same_answer(rows: strategies.EdgeList) -> None:
    graph = held_graph(rows)
    there, known = drive.subgraph(owned_to_device(graph.owned)), bounding.band(graph.subgraph)
    assert np.array_equal(kernels.to_host(peel_intervals(there, peel(there)).low), known.low)


def test_free_memory_decides_how_many_edges_fit() -> None:
    from edgemill.kernels.gpu.whole_graph import PLAIN_BYTES, PLAIN_VERTEX_BYTES, fitting_edges

    pool = cupy.get_default_memory_pool()
    gc.collect()  # arrays of other tests
    pool.free_all_blocks()
    unreturned = pool.free_bytes()  # the rest of blocks of which a part is in use
    pool.set_limit(size=pool.total_bytes() + 10**9)
    try:
        assert fitting_edges(0) == (10**9 + unreturned) // PLAIN_BYTES
        assert fitting_edges(10**7) == (10**9 + unreturned - 10**7 * PLAIN_VERTEX_BYTES) // PLAIN_BYTES
        assert fitting_edges(0, 0, 10**9) == (2 * 10**9 + unreturned) // PLAIN_BYTES
        unused = cupy.empty(10**8, np.int8)
        del unused
        assert fitting_edges(0) == (10**9 + unreturned) // PLAIN_BYTES
        assert fitting_edges(0, 10**9) == 10**9 // PLAIN_BYTES
    finally:
        pool.set_limit(size=0)


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
@pytest.mark.parametrize("host_keys", [False, True])
def test_known_shapes(rows: strategies.EdgeList, host_keys: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of many units, all of whose edges leave in one round, and none."""
    graph, known = in_host_memory(rows) if host_keys else both(rows)
    if host_keys:
        monkeypatch.setattr("edgemill.kernels.gpu.whole_graph.compact_rows_fit", lambda vertices, edges: False)
    assert np.array_equal(in_one_piece(graph), known)


def test_ends_in_host_memory_are_copied_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ends are in host memory and the triangles are not, as where ends are what does not fit the device."""
    room = import_module("edgemill.kernels.gpu.runtime.memory")
    graph, known = both(list(combinations(range(60), 2)))
    mapped = replace(graph, high=room.in_host_memory(graph.high))
    copied: list[int] = []

    def near(part: Any) -> Any:
        copy = room.near(part)
        copied.append(0 if copy is part else len(part))
        return copy

    monkeypatch.setattr(room, "MAPPED_PART", 64)
    monkeypatch.setattr("edgemill.kernels.gpu.compact_rows.near", near)
    assert np.array_equal(in_one_piece(mapped), known)
    assert max(copied) == 64
