"""Fixpoint rounds, against the definition: owned bounds at their greatest fixpoint, with the bounds of ghosts fixed."""

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


def lowered(edges: list[tuple[int, int]], bound: list[int], owned: list[bool]) -> list[int]:
    """SLOW. While an owned edge has fewer supporting triangles than its bound, lower it by one."""
    bound, pairs = list(bound), others(edges)
    changed = True
    while changed:
        changed = False
        for e in range(len(edges)):
            if owned[e] and sum(min(bound[f], bound[g]) >= bound[e] for f, g in pairs[e]) < bound[e]:
                bound[e] -= 1
                changed = True
    return bound


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("by_one", [False, True])
@given(graph=strategies.simple_graphs(VERTICES), drawn=st.data())
@settings(max_examples=examples(100))
def test_rounds(backend: Backend, threads: int, by_one: bool, graph: strategies.EdgeList, drawn: st.DataObject) -> None:
    edges = sorted(graph)
    owned = drawn.draw(st.lists(st.booleans(), min_size=len(edges), max_size=len(edges)))
    highest = max(map(len, others(edges)), default=0)
    start = [len(pairs) if own else highest for pairs, own in zip(others(edges), owned, strict=True)]
    bound = backend.put(start)
    with kernel_threads(threads):
        whole = topology(backend, edges, VERTICES)
        rounds = kernels.fixpoint(whole, kernels.adjacency(whole), backend.put(owned, bool), highest)
        active = backend.put([e for e, own in enumerate(owned) if own])
        while len(active):
            active = rounds.evaluate(bound, active, by_one)
            again = backend.get(active).tolist()
            assert again == sorted(set(again))
            assert all(owned[e] for e in again)
        assert backend.get(bound).tolist() == lowered(edges, start, owned)

        ghosts = [e for e, own in enumerate(owned) if not own]
        changed_ghosts = sorted(drawn.draw(st.sets(st.sampled_from(ghosts)))) if ghosts else []
        for e in changed_ghosts:
            bound[e] = drawn.draw(st.integers(0, highest))
        before = backend.get(bound).tolist()
        active = rounds.unsettle(bound, backend.put(changed_ghosts))
        while len(active):
            active = rounds.evaluate(bound, active, by_one)
        assert backend.get(bound).tolist() == lowered(edges, before, owned)
