"""The most similar vertices: by sparse products of SciPy and by NetworkX; labels, repeats, threads and what is cut."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from edgemill.kernels.runtime.threads import kernel_threads
from edgemill.tasks.errors import UsageError
from edgemill.tasks.partition import RangePartitioner
from edgemill.tasks.programs import cut_blocks, run_blocks
from edgemill.tasks.programs.program import PairRows
from edgemill.tasks.programs.shipped.similar_pairs import SimilarPairs
from edgemill.tasks.shards import MemoryCarrier
from examples import examples
from vertex_programs import Drawn, graphs

MEASURES = ("jaccard", "overlap_coefficient", "cosine", "adamic_adar")
WEIGHTED = MEASURES[:3]


def ran(program: SimilarPairs, graph: Drawn, threads: int = 1) -> tuple[PairRows, dict[str, Any], dict[str, Any]]:
    """Pairs, facts and state."""
    home = RangePartitioner()
    entries = graph.entries() if program.weighted else replace(graph.entries(), weight=None)
    blocks = cut_blocks(entries, graph.vertices, home, graph.directed, program.view)
    with kernel_threads(threads):
        (found,) = run_blocks(program, blocks, home, MemoryCarrier.open(1), threads=threads)
    assert found.similar is not None
    return found.similar, dict(found.facts), found.state


def by_definition(program: SimilarPairs, graph: Drawn) -> NDArray[np.float64]:
    """[vertices, vertices] similarities, 0 for a vertex and itself."""
    size = graph.vertices
    ends = np.array(graph.edges, np.int64).reshape(-1, 2)
    weight = np.array(graph.weights) if program.weighted else np.ones(len(ends))
    matrix = scipy.sparse.coo_array((weight, ends.T), shape=(size, size)).toarray()
    matrix = matrix + matrix.T
    np.fill_diagonal(matrix, 0)
    if not program.weighted:
        matrix = (matrix > 0).astype(float)
    degree = (matrix > 0).sum(axis=1)
    left = np.zeros(size, bool) if program.most_neighbours is None else degree > program.most_neighbours
    own = scipy.sparse.csr_array(np.where(left, 0, matrix))
    with np.errstate(divide="ignore", invalid="ignore"):
        if program.measure == "adamic_adar":
            found = (own * np.where(degree > 1, 1 / np.log(degree), 0) @ own.T).toarray()
        elif program.measure == "cosine":
            norm = np.sqrt((own.power(2)).sum(axis=1))
            found = (own @ own.T).toarray() / norm[:, None] / norm[None, :]
        else:
            dense = own.toarray()
            common = np.minimum(dense[:, None, :], dense[None, :, :]).sum(axis=2)
            total = dense.sum(axis=1)
            either = total[:, None] + total[None, :] - common
            least = np.minimum(total[:, None], total[None, :])
            found = common / (either if program.measure == "jaccard" else least)
    similarity: NDArray[np.float64] = np.nan_to_num(np.asarray(found))
    np.fill_diagonal(similarity, 0)
    return similarity


def check(program: SimilarPairs, graph: Drawn, pairs: PairRows) -> None:
    wanted = by_definition(program, graph)
    assert np.allclose(pairs.similarity, wanted[pairs.source, pairs.target], rtol=1e-12, atol=0)
    for v in range(graph.vertices):
        own = pairs.source == v
        assert pairs.rank[own].tolist() == list(range(1, np.count_nonzero(own) + 1))
        order = np.lexsort((pairs.target[own], -pairs.similarity[own]))
        assert order.tolist() == list(range(len(order)))
        others = np.delete(wanted[v], pairs.target[own])
        if program.of and v not in program.of:
            assert not own.any()
        elif np.count_nonzero(own) < program.k:
            assert not (others[others > 0] > program.minimum * (1 + 1e-12)).any()
        else:
            assert others.max(initial=0) <= pairs.similarity[own][-1] * (1 + 1e-12)


def programs() -> st.SearchStrategy[SimilarPairs]:
    def made(measure: str, k: int, minimum: float, most: int | None, weighted: bool, of: int | None) -> SimilarPairs:
        which: Any = measure
        named = () if of is None else (of,)
        return SimilarPairs(k, which, minimum, named, most, weighted=weighted and measure != "adamic_adar")

    most = st.none() | st.integers(1, 6)
    minimum = st.sampled_from([0.0, 0.0, 0.3, 0.5])
    return st.builds(
        made, st.sampled_from(MEASURES), st.integers(1, 4), minimum, most, st.booleans(), st.none() | st.just(0)
    )


@given(graphs(), programs())
@settings(max_examples=examples(150), deadline=None)
def test_the_definition_on_drawn_graphs(graph: Drawn, program: SimilarPairs) -> None:
    pairs, facts, state = ran(program, graph)
    check(program, graph, pairs)
    assert facts["pairs"] == len(pairs)
    first = pairs.rank == 1
    best = np.full(graph.vertices, -1)
    best[pairs.source[first]] = pairs.target[first]
    assert state["vertex"].tolist() == best.tolist()
    assert state["similarity"][pairs.source[first]].tolist() == pairs.similarity[first].tolist()


@given(graphs(), st.sampled_from(MEASURES), st.booleans(), st.randoms(use_true_random=False))
@settings(max_examples=examples(60), deadline=None)
def test_labels_rows_and_directions_change_no_bit(graph: Drawn, measure: Any, weighted: bool, random: Any) -> None:
    """All similarities are those of the same vertices by other labels, of edges in another order; undirected edges are
    given in both directions with half the weight.
    """
    program = SimilarPairs(1000, measure, weighted=weighted and measure != "adamic_adar")
    label, order = list(range(graph.vertices)), list(range(len(graph.edges)))
    random.shuffle(label)
    random.shuffle(order)
    edges, weights = [], []
    for at in order:
        (u, v), w = graph.edges[at], graph.weights[at]
        edges += [(label[u], label[v])] if graph.directed else [(label[u], label[v]), (label[v], label[u])]
        weights += [w] if graph.directed else [w / 2, w / 2]
    other = Drawn(graph.vertices, tuple(edges), tuple(weights), True)
    one, two = ran(program, graph)[0], ran(program, other)[0]
    named = {(label[u], label[v]): s for u, v, s in zip(one.source, one.target, one.similarity, strict=True)}
    assert {(u, v): s for u, v, s in zip(two.source, two.target, two.similarity, strict=True)} == named


@pytest.mark.parametrize("measure", ["jaccard", "adamic_adar"])
def test_networkx(measure: Any) -> None:
    known = nx.karate_club_graph()
    graph = Drawn(34, tuple(known.edges), (1.0,) * known.number_of_edges(), False)
    pairs, facts, _ = ran(SimilarPairs(1000, measure), graph)
    function = nx.jaccard_coefficient if measure == "jaccard" else nx.adamic_adar_index
    every = [(u, v) for u in known for v in known if u < v]
    wanted = {(u, v): s for u, v, s in function(known, every) if s}
    found = {(u, v): s for u, v, s in zip(pairs.source, pairs.target, pairs.similarity, strict=True)}
    assert {pair: s for pair, s in found.items() if pair[0] < pair[1]} == pytest.approx(wanted, rel=1e-13)
    assert all(found[v, u] == s for (u, v), s in found.items())
    assert facts["wedges"] == sum(d * (d - 1) for _, d in known.degree())


@pytest.mark.parametrize(
    ("measure", "weighted"), [*((own, False) for own in MEASURES), *((own, True) for own in WEIGHTED)]
)
def test_threads_change_no_bit(measure: Any, weighted: bool) -> None:
    """Also where all sums are looked at, and where those of a list are."""
    random = np.random.default_rng(3)
    ends = random.integers(0, 700, (6000, 2))
    ends[:1500, 0] //= 200  # hubs
    edges = tuple(sorted({(int(min(e)), int(max(e))) for e in ends if e[0] != e[1]}))
    graph = Drawn(700, edges, tuple(random.choice([0.3, 1.0, 2.5], len(edges)).tolist()), False)
    program = SimilarPairs(5, measure, weighted=weighted)
    one, two = (ran(program, graph, threads)[0] for threads in (1, 2))
    check(program, graph, one)
    for name in ("source", "target", "rank", "similarity"):
        assert getattr(one, name).tobytes() == getattr(two, name).tobytes()


@pytest.mark.parametrize("measure", MEASURES)
def test_equally_similar_vertices(measure: Any) -> None:
    """The smallest of them are kept."""
    edges = tuple((u, v) for u in range(4) for v in range(4 + u, 400))
    graph = Drawn(400, edges, (1.0,) * len(edges), False)
    found = ran(SimilarPairs(3, measure), graph)[0]
    check(SimilarPairs(3, measure), graph, found)
    first = 4 if measure == "overlap_coefficient" else 7  # all neighbours of vertex 4 are neighbours of 399
    assert found.target[found.source == 399].tolist() == [first, first + 1, first + 2]


def test_too_much_work() -> None:
    """The refusal names a number of neighbours that fits, and one more does not fit."""
    random = nx.barabasi_albert_graph(300, 4, seed=2)
    graph = Drawn(300, tuple(random.edges), (1.0,) * random.number_of_edges(), False)
    with pytest.raises(
        UsageError, match=r"similar_pairs\.most_wedges: the work is .* over the 3,000 allowed"
    ) as caught:
        ran(SimilarPairs(most_wedges=3000), graph)
    most = int(str(caught.value).partition("most_neighbours=")[2].partition(",")[0])
    _, facts, _ = ran(SimilarPairs(most_wedges=3000, most_neighbours=most), graph)
    assert facts["wedges"] <= 3000
    assert facts["vertices_left_out"] == sum(d > most for _, d in random.degree())
    with pytest.raises(UsageError):
        ran(SimilarPairs(most_wedges=3000, most_neighbours=most + 1), graph)


def test_what_has_no_form_with_weights() -> None:
    with pytest.raises(UsageError, match=r"similar_pairs\.weighted: adamic_adar"):
        SimilarPairs(measure="adamic_adar", weighted=True)


@pytest.mark.parametrize("power", [-40, 60])
@pytest.mark.parametrize("measure", WEIGHTED)
def test_the_unit_of_weights(measure: Any, power: int) -> None:
    random = np.random.default_rng(5)
    edges = tuple(nx.gnm_random_graph(40, 150, seed=1).edges)
    weights = random.random(len(edges))
    one, two = (
        ran(SimilarPairs(4, measure, weighted=True), Drawn(40, edges, tuple((weights * unit).tolist()), False))[0]
        for unit in (1.0, 2.0**power)
    )
    assert one.target.tolist() == two.target.tolist() and one.similarity.tolist() == two.similarity.tolist()


def test_graphs_without_pairs() -> None:
    for edges in ((), ((0, 1),)):
        pairs, facts, state = ran(SimilarPairs(), Drawn(3, edges, (1.0,) * len(edges), False))
        assert (len(pairs), facts["pairs"], state["vertex"].tolist()) == (0, 0, [-1] * 3)
