"""Triangles, peeling and the certificates of λ of the verification, against the oracles."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import known_graphs
from edgemill.tasks.verify import bounds as verify_bounds
from edgemill.tasks.verify import triangles as verify_triangles
from edgemill.tasks.verify.bounds import Simple, not_falling, peel, survey
from edgemill.tasks.verify.triangles import orient, triangles
from examples import examples
from oracles import brute_force_lambda, brute_force_triangles, networkx_lambda, simple_edges
from strategies import EdgeList, edge_lists

ROWS: EdgeList = [*combinations(range(6), 2), (5, 6), (5, 7), (6, 7), (6, 8), (7, 8), (8, 9)]
"""An edge joins a clique of six to a strip of triangles with a tail."""


def numbered(rows: EdgeList) -> tuple[Simple, list[tuple[int, int]]]:
    edges = sorted(simple_edges(rows))
    ends = np.array(edges, np.int64).reshape(-1, 2)
    return Simple(ends[:, 0], ends[:, 1], 12), edges


@settings(max_examples=examples(100))
@given(rows=edge_lists(12))
def test_triangles_and_peeling_agree_with_the_oracle(rows: EdgeList) -> None:
    graph, edges = numbered(rows)
    oriented = orient(graph.source, graph.target, graph.vertices)
    found = [
        tuple(sorted({vertex for side in triangle for vertex in edges[oriented.edge[side]]}))
        for piece in triangles(oriented)
        for triangle in zip(*piece, strict=True)
    ]
    assert len(found) == len(set(found))
    assert set(found) == brute_force_triangles(rows)
    expected = brute_force_lambda(rows)
    assert networkx_lambda(rows) == expected
    assert peel(graph).tolist() == [expected[edge] for edge in edges]


@settings(max_examples=examples(100))
@given(rows=edge_lists(12), data=st.data())
def test_certificates_are_sound_and_complete(rows: EdgeList, data: st.DataObject) -> None:
    """A bound that passes one certificate is on that side of λ for all edges. λ passes both."""
    graph, edges = numbered(rows)
    expected = brute_force_lambda(rows)
    lam = np.array([expected[edge] for edge in edges], np.int32)
    _, (backing,) = survey(graph, [lam])
    assert (backing.count >= lam).all()
    assert not_falling(graph, lam, backing).size == 0
    steps = data.draw(st.lists(st.integers(-1, 1), min_size=lam.size, max_size=lam.size))
    other = np.maximum(0, lam + np.array(steps, np.int32)).astype(np.int32)
    _, (backing,) = survey(graph, [other])
    if (backing.count >= other).all():
        assert (other <= lam).all()
        if (other < lam).any():
            assert (lam > other)[not_falling(graph, other, backing)].any()
    if not_falling(graph, other, backing).size == 0:
        assert (other >= lam).all()


def test_triangles_do_not_depend_on_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, _ = numbered(ROWS)
    (whole,) = triangles(orient(graph.source, graph.target, graph.vertices))
    for paths, cells in ((1, 1), (3, 30), (1000, 24)):
        monkeypatch.setattr(verify_triangles, "_BATCH_PATHS", paths)
        monkeypatch.setattr(verify_triangles, "_TABLE_CELLS", cells)
        monkeypatch.setattr(verify_triangles, "_PIECE", 5)
        pieces = list(triangles(orient(graph.source, graph.target, graph.vertices)))
        assert len(pieces) > 1
        for side, at_once in zip(zip(*pieces, strict=True), whole, strict=True):
            assert np.array_equal(np.concatenate(side), at_once)


def test_certificates_do_not_depend_on_level_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify_bounds, "_GROUP_TRIANGLES", 1)  # every level by itself
    graph, edges = numbered(ROWS)
    expected = brute_force_lambda(ROWS)
    lam = np.array([expected[edge] for edge in edges], np.int32)
    assert not_falling(graph, lam, survey(graph, [lam])[1][0]).size == 0
    lam[:15] = 3
    assert not_falling(graph, lam, survey(graph, [lam])[1][0]).tolist() == list(range(15))


@pytest.mark.skipif(known_graphs.SKIP_REASON is not None, reason=str(known_graphs.SKIP_REASON))
@pytest.mark.parametrize("name", ["ca-GrQc", "email-Eu-core", "facebook_combined", "wiki-Vote"])
def test_known_lambda_is_certified(name: str) -> None:
    known = known_graphs.known_graph(name)
    source, target, lam = known.lambda_table()
    ids, ends = np.unique(np.concatenate([source, target]), return_inverse=True)
    graph = Simple(ends[: source.size], ends[source.size :], ids.size)
    support, (backing,) = survey(graph, [lam])
    assert support.sum() == 3 * known.triangles
    assert (backing.count >= lam).all()
    assert not_falling(graph, lam, backing).size == 0
    lam = lam.copy()
    lam[lam == lam.max()] -= 1
    assert not_falling(graph, lam, survey(graph, [lam])[1][0]).size > 0
