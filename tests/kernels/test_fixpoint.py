"""Fixpoint iterations, against the definition: bounds at the greatest fixpoint below those that they start from."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import strategies
from backends import BACKENDS, Backend, topology
from edgemill import kernels
from edgemill.kernels.runtime.threads import kernel_threads
from examples import examples

VERTICES = 12


def others(edges: list[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """[edges] the other two edges of each triangle."""
    number = {edge: e for e, edge in enumerate(edges)}
    return [
        [
            (number[min(u, w), max(u, w)], number[min(v, w), max(v, w)])
            for w in range(VERTICES)
            if {(min(u, w), max(u, w)), (min(v, w), max(v, w))} <= number.keys()
        ]
        for u, v in edges
    ]


def lowered(edges: list[tuple[int, int]], bound: list[int]) -> list[int]:
    """SLOW. While an edge has fewer supporting triangles than its bound, lower it by one."""
    bound, pairs = list(bound), others(edges)
    changed = True
    while changed:
        changed = False
        for e in range(len(edges)):
            if sum(min(bound[f], bound[g]) >= bound[e] for f, g in pairs[e]) < bound[e]:
                bound[e] -= 1
                changed = True
    return bound


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("by_one", [False, True])
@given(graph=strategies.simple_graphs(VERTICES), drawn=st.data())
@settings(max_examples=examples(100))
def test_iterations(
    backend: Backend, threads: int, by_one: bool, graph: strategies.EdgeList, drawn: st.DataObject
) -> None:
    """From any bounds. An edge whose bound is still too high is evaluated again, and others may be."""
    edges = sorted(graph)
    start = drawn.draw(st.lists(st.integers(0, VERTICES), min_size=len(edges), max_size=len(edges)))
    bound = backend.put(start)
    with kernel_threads(threads):
        whole = topology(backend, edges, VERTICES)
        rounds = kernels.fixpoint(whole, kernels.adjacency(whole), VERTICES)
        active = backend.put(list(range(len(edges))))
        while len(active):
            active = rounds.evaluate(bound, active, by_one)
            again, now, pairs = backend.get(active).tolist(), backend.get(bound).tolist(), others(edges)
            assert again == sorted(set(again))
            high = {e for e, own in enumerate(pairs) if sum(min(now[f], now[g]) >= now[e] for f, g in own) < now[e]}
            assert high <= set(again)
        assert backend.get(bound).tolist() == lowered(edges, start)
