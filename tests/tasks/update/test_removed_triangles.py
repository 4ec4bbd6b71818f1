"""The triangles of removed edges: each once, in one order, whatever threads and memory find them."""

from __future__ import annotations

import sys
from itertools import combinations

import numpy as np
import pytest

from edgemill import kernels
from edgemill.kernels.cpu.update import removed_triangles
from edgemill.kernels.cpu.update.merging import ADDED, KEPT, REMOVED
from edgemill.kernels.graph import Topology
from edgemill.kernels.runtime.threads import kernel_threads


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize(("room", "pieces"), [(1, 1), (1, 1000), (40, 7), (1 << 20, 1 << 10)])
@pytest.mark.parametrize("seed", range(4))
def test_by_definition(seed: int, room: int, pieces: int, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where each piece of the edges fills a thread's room many times."""
    monkeypatch.setattr(sys.modules[removed_triangles.__module__], "ROOM", room)
    monkeypatch.setattr(sys.modules[removed_triangles.__module__], "PIECES", pieces)
    random = np.random.default_rng(seed)
    vertices = 30
    low, high = np.nonzero(np.triu(random.random((vertices, vertices)) < 0.6, 1))
    edges = Topology(low.astype(np.int32), high.astype(np.int32), vertices)
    mark = random.choice(np.array([KEPT, ADDED, REMOVED]), edges.edges, p=[0.5, 0.1, 0.4])
    number = {pair: e for e, pair in enumerate(zip(low.tolist(), high.tolist(), strict=True))}
    looked, expected = 0, set[tuple[int, ...]]()
    for a, b, c in combinations(range(vertices), 3):
        own = [number[pair] for pair in ((a, b), (a, c), (b, c)) if pair in number]
        if len(own) < 3:
            continue
        gone = [e for e in own if mark[e] == REMOVED]
        looked += len(gone)
        if gone and not any(mark[e] == ADDED for e in own):
            expected.add((gone[0], *sorted({*own} - {gone[0]})))
    removed = np.flatnonzero(mark == REMOVED).astype(np.int32)
    with kernel_threads(threads):
        found, count = removed_triangles(edges, kernels.adjacency(edges), mark, removed)
    assert count == looked
    assert (np.diff(found[:, 0]) >= 0).all()
    assert {(e, *sorted((f, g))) for e, f, g in found.tolist()} == expected and len(found) == len(expected)


def test_none_is_removed() -> None:
    edges = Topology(np.array([0, 0, 1], np.int32), np.array([1, 2, 2], np.int32), 3)
    found, looked = removed_triangles(edges, kernels.adjacency(edges), np.zeros(3, np.uint8), edges.low[:0])
    assert found.shape == (0, 3) and found.dtype == np.int32 and looked == 0
