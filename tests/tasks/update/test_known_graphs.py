"""Updates of real graphs, compared with λ from nothing, edge by edge; the order is checked after each."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

import known_graphs
from edgemill.kernels.graph import Topology
from edgemill.tasks.bound.peel import find_lambda, find_triangles
from edgemill.tasks.update import updating
from edgemill.tasks.update.order import Order, find_violation, order_of
from edgemill.tasks.update.updating import Updated, update_order
from known_graphs import FACEBOOK

KNOWN = known_graphs.known_graphs()
SMALL = [graph.name for graph in KNOWN if graph.edges < 400_000]
Mask = NDArray[np.bool_]


def read(name: str) -> Topology:
    """The simple edges of a graph; vertices are numbered in the order of ids."""
    table = pq.read_table(FACEBOOK if name == "facebook" else known_graphs.known_graph(name).path)
    ids, ends = np.unique([table["src"].to_numpy(), table["dst"].to_numpy()], return_inverse=True)
    low, high = np.sort(ends.reshape(2, -1), axis=0)
    keys = np.unique((low << 32 | high)[low != high])
    return Topology((keys >> 32).astype(np.int32), keys.astype(np.int32), len(ids))


def part_of(edges: Topology, chosen: Mask) -> Topology:
    return Topology(edges.low[chosen], edges.high[chosen], edges.vertices)


def supports_and_lambda(edges: Topology) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    owned, subgraph = find_triangles(edges.low, edges.high, edges.vertices)
    found = np.empty((2, edges.edges), np.int32)
    found[:, owned.row] = subgraph.support, find_lambda(subgraph)
    return found[0], found[1]


def drawn(rng: np.random.Generator, edges: Topology, kind: str, share: float) -> Mask:
    """A share of the edges: random ones, or all edges of random vertices."""
    wanted = max(1, round(share * edges.edges))
    if kind == "random":
        chosen = np.zeros(edges.edges, np.bool_)
        chosen[rng.choice(edges.edges, wanted, replace=False)] = True
        return chosen
    degree = np.bincount(np.concatenate([edges.low, edges.high]), minlength=edges.vertices)
    shuffled = rng.permutation(edges.vertices)
    star = np.zeros(edges.vertices, np.bool_)
    star[shuffled[: np.searchsorted(np.cumsum(degree[shuffled]), wanted) + 1]] = True
    return star[edges.low] | star[edges.high]


def nights(edges: Topology, batches: list[tuple[Mask, Mask]], peels_rest: bool = False) -> list[Updated]:
    """Make each batch (come, go) of all edges take effect, and check λ, supports and the order after each.

    An edge that is there does not come, and one that is not does not go.
    """
    made = []
    here = ~batches[0][0]
    present = part_of(edges, here)
    support, lam = supports_and_lambda(present)
    order = order_of(present, lam)
    assert find_violation(present, order) is None
    for come, go in batches:
        come, go = come & ~here, go & here
        found = update_order(present, order, go[here], part_of(edges, come), peels_rest=peels_rest)
        made.append(found)
        here = (here | come) & ~go
        present, order = part_of(edges, here), found.order
        assert np.array_equal(found.edges.low, present.low) and np.array_equal(found.edges.high, present.high)
        new_support, lam = supports_and_lambda(present)
        assert np.array_equal(order.lam, lam)
        known = found.origin >= 0
        kept = np.where(known, support[np.where(known, found.origin, 0)], 0)
        assert np.array_equal(kept + found.support_change, new_support)
        assert find_violation(present, order) is None
        support = new_support
    return made


@pytest.mark.parametrize("kind", ["stars", pytest.param("random", marks=pytest.mark.slow)])
def test_facebook(kind: str) -> None:
    edges, rng = read("facebook"), np.random.default_rng(5)
    nights(edges, [(drawn(rng, edges, kind, share), drawn(rng, edges, kind, share)) for share in (0.001, 0.01)])


def test_facebook_with_the_rest_peeled(rest_first: None) -> None:
    edges, rng = read("facebook"), np.random.default_rng(5)
    batches = [(drawn(rng, edges, kind, 0.02), drawn(rng, edges, kind, 0.02)) for kind in ("stars", "random")]
    assert all(night.peeled for night in nights(edges, batches, peels_rest=True))


@pytest.fixture
def rest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """The edges that are left are peeled at the first level at which an old edge stands."""
    monkeypatch.setattr(updating, "REST", 2**40)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("rest", [updating.REST, 2**40], ids=["where it pays", "first"])
@pytest.mark.parametrize("kind", ["stars", "random"])
@pytest.mark.parametrize("name", SMALL)
def test_the_rest_of_a_known_graph(name: str, kind: str, rest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(updating, "REST", rest)
    edges, rng = read(name), np.random.default_rng(13)
    shares = 0.002, 0.02
    nights(edges, [(drawn(rng, edges, kind, share), drawn(rng, edges, kind, share)) for share in shares], True)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("share", [0.0001, 0.001, 0.01])
@pytest.mark.parametrize("kind", ["stars", "random"])
@pytest.mark.parametrize("name", [graph.name for graph in KNOWN])
def test_known_graph(name: str, kind: str, share: float) -> None:
    edges, rng = read(name), np.random.default_rng(7)
    nights(edges, [(drawn(rng, edges, kind, share / 2), drawn(rng, edges, kind, share / 2))])


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", SMALL[-2:])
def test_thirty_nights(name: str) -> None:
    """Vertices and random edges by turns; what went may come again."""
    edges, rng = read(name), np.random.default_rng(9)
    kinds = ["stars", "random"] * 15
    nights(edges, [(drawn(rng, edges, kind, 0.002), drawn(rng, edges, kind, 0.002)) for kind in kinds])


def test_times_are_renumbered_before_they_overflow() -> None:
    edges, rng = read("facebook"), np.random.default_rng(11)
    come, go = (drawn(rng, edges, "stars", 0.005) for _ in range(2))
    present = part_of(edges, ~come)
    order = order_of(present, supports_and_lambda(present)[1])
    late = Order(order.lam, order.time + np.int32(2**31 - 1 - order.time.max()), order.count, order.remainder)
    plain, found = (update_order(present, one, go[~come], part_of(edges, come)) for one in (order, late))
    assert np.array_equal(found.order.lam, plain.order.lam) and np.array_equal(found.order.time, plain.order.time)
    assert find_violation(found.edges, found.order) is None
