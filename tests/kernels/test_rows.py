"""Rows in both directions and their compaction, against dictionaries."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import strategies
from backends import BACKENDS, Backend, topology
from edgemill import kernels
from edgemill.kernels.graph import Adjacency
from edgemill.kernels.runtime.threads import kernel_threads

VERTICES = 12


def rows_of(backend: Backend, rows: Adjacency) -> list[list[tuple[int, int]]]:
    begin, length = backend.get(rows.begin).tolist(), backend.get(rows.length).tolist()
    pairs = list(zip(backend.get(rows.neighbour).tolist(), backend.get(rows.edge).tolist(), strict=True))
    return [pairs[b : b + n] for b, n in zip(begin, length, strict=True)]


def as_lists(backend: Backend, rows: Adjacency) -> list[list[tuple[int, int]]]:
    lists = rows_of(backend, rows)
    if backend.name == "cpu":  # a hash table needs no order
        assert lists == [sorted(row) for row in lists]
    return [sorted(row) for row in lists]


def expected(edges: list[tuple[int, int]], live: list[bool]) -> list[list[tuple[int, int]]]:
    return [
        sorted((u + v - vertex, e) for e, (u, v) in enumerate(edges) if vertex in (u, v) and live[e])
        for vertex in range(VERTICES)
    ]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("threads", [1, 2])
@given(graph=strategies.simple_graphs(VERTICES), bits=st.sampled_from([1, 2, 3, 10]), drawn=st.data())
def test_rows(backend: Backend, threads: int, graph: strategies.EdgeList, bits: int, drawn: st.DataObject) -> None:
    """Also of several blocks of several vertices, which graphs of over 1,023 vertices have."""
    edges = sorted(graph)
    with pytest.MonkeyPatch.context() as patch, kernel_threads(threads):
        patch.setattr(sys.modules["edgemill.kernels.cpu.adjacency"], "BLOCK_BITS", bits)
        rows = kernels.adjacency(topology(backend, edges, VERTICES))
        assert as_lists(backend, rows) == expected(edges, [True] * len(edges))
        assert rows.widest == max(map(len, as_lists(backend, rows)))
        live = [True] * len(edges)
        for _ in range(2):  # compacted rows are compacted again
            stay = drawn.draw(st.lists(st.booleans(), min_size=len(edges), max_size=len(edges)))
            live = [a and b for a, b in zip(live, stay, strict=True)]
            rows = kernels.compact(rows, backend.put(live, np.bool_))
            assert as_lists(backend, rows) == expected(edges, live)
            assert len(rows.edge) == 2 * sum(live)


@pytest.mark.parametrize("backend", [backend for backend in BACKENDS if backend.id == "gpu"])
def test_removed_edges_are_trimmed_from_rows(backend: Backend) -> None:
    from edgemill.kernels.gpu.adjacency import adjacency, trim

    edges = [(u, v) for u in range(150) for v in range(u + 1, 150)]
    rows: Any = adjacency(topology(backend, edges, 150))
    before = rows_of(backend, rows)
    random = np.random.default_rng(5)
    count = np.where(random.random(len(edges)) < 0.6, 3, -1)
    for _ in range(2):  # the second time from trimmed rows
        trim(rows, backend.put(count))
        assert rows_of(backend, rows) == [[(n, e) for n, e in row if count[e] >= 0] for row in before]
        count[random.random(len(edges)) < 0.5] = -1
