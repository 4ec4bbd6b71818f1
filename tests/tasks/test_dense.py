"""The hierarchy of components and the DN-graphs, in any buckets, against those found by definition."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import drive
import foreign
import oracles
import strategies
from edgemill import kernels
from edgemill.pipeline.stages.extracting import Groups
from edgemill.tasks import dense
from edgemill.tasks.dense.groups import SupportSums
from edgemill.tasks.dense.merge import component_ids
from edgemill.tasks.device import MemorySpace
from edgemill.tasks.errors import InternalError, OutOfRoom
from edgemill.tasks.ingest.degrees import BucketDegrees
from edgemill.tasks.ingest.numbering import BucketEdges, merge_pairs
from edgemill.tasks.inputs.open_source import open_source
from edgemill.tasks.messages import collect
from edgemill.tasks.publish.lambda_columns import BucketResults
from examples import examples
from runs import write_rows

Edge = tuple[int, int]


def extracted(
    folder: Path, levels: dict[Edge, int], buckets: int, partitions: int, space: MemorySpace = MemorySpace.HOST
) -> tuple[drive.Ingested, Groups]:
    """The groups of edges whose λ is given. Loops make dense numbers of vertices, which are ids."""
    vertices = 1 + max((vertex for edge in levels for vertex in edge), default=0)
    write_rows(folder / "rows.parquet", [*levels, *((v, v) for v in range(vertices))])
    ingested = drive.ingest(open_source(str(folder / "rows.parquet")), partitions, buckets, space=space)
    results = []
    for own in ingested.edges:
        level = space.place(np.array([levels[edge] for edge in edges_of(own)], np.int32))
        results.append(BucketResults(own.bucket, level, level, level))
    return ingested, drive.extract(ingested, results, space)


def edges_of(own: BucketEdges) -> list[Edge]:
    """A bucket's edges, in its order."""
    low, high = kernels.to_host(own.low) + own.first, kernels.to_host(own.highs[own.high])
    return list(zip(low.tolist(), high.tolist(), strict=True))


def rows_of(groups: Groups) -> list[tuple[int, ...]]:
    """Id, k, parent, vertices, edges."""
    return [
        row
        for own in groups.found
        for row in zip(
            *(getattr(own.components, name).tolist() for name in ("id", "level", "parent", "vertices", "edges")),
            strict=True,
        )
    ]


def check(levels: dict[Edge, int], groups: Groups) -> None:
    """All of what was found is what there is."""
    highest = max(levels.values(), default=0)
    known = oracles.networkx_hierarchy(levels)

    def number(edges: frozenset[Edge] | None) -> int:
        return -1 if edges is None else (min(min(edges)) << highest.bit_length()) + known[edges].k

    rows = rows_of(groups)
    assert rows == sorted(
        (number(edges), own.k, number(own.parent), len(own.vertices), len(edges)) for edges, own in known.items()
    )

    graphs = {number(edges): edges for _, edges in oracles.maximal_dn_graphs(levels)}
    found = {
        graph: triangles
        for own, counts in zip(groups.found, groups.triangles, strict=True)
        for graph, triangles in zip(own.dn_graphs.id.tolist(), counts.tolist(), strict=True)
    }
    assert found == {graph: len(oracles.brute_force_triangles(edges)) for graph, edges in graphs.items()}

    innermost: dict[int, int] = {}
    for edges, own in sorted(known.items(), key=lambda item: item[1].k):
        innermost |= dict.fromkeys(own.vertices, number(edges))
    homes = np.concatenate([own.innermost for own in groups.found]).tolist()
    assert homes == [innermost.get(vertex, -1) for vertex in range(len(homes))]
    is_member = np.concatenate([own.is_member for own in groups.found]).tolist()
    members = {vertex for edges in graphs.values() for edge in edges for vertex in edge}
    assert {vertex for vertex, is_one in enumerate(is_member) if is_one} == members


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("dense")


@given(
    rows=strategies.edge_lists(14),
    buckets=st.integers(1, 6),
    partitions=st.sampled_from([1, 3]),
)
@settings(max_examples=examples(150))
def test_lambda(folder: Path, rows: list[Edge], buckets: int, partitions: int) -> None:
    levels = oracles.networkx_lambda(rows)
    check(levels, extracted(folder, levels, buckets, partitions)[1])


@given(rows=strategies.edge_lists(14), buckets=st.integers(1, 6), data=st.data())
@settings(max_examples=examples(150))
def test_any_levels(folder: Path, rows: list[Edge], buckets: int, data: st.DataObject) -> None:
    """More kinds of hierarchy than λ has in small graphs."""
    edges = sorted(oracles.simple_edges(rows))
    drawn = data.draw(st.lists(st.integers(0, 5), min_size=len(edges), max_size=len(edges)))
    levels = dict(zip(edges, drawn, strict=True))
    check(levels, extracted(folder, levels, buckets, 1)[1])


@given(
    levels=st.dictionaries(
        st.tuples(st.integers(0, 29), st.integers(1, 3)).map(lambda drawn: (drawn[0], sum(drawn))),
        st.integers(0, 5),
        max_size=60,
    ),
    buckets=st.integers(2, 4),
)
@settings(max_examples=examples(100))
def test_neighbours_in_one_bucket(folder: Path, levels: dict[Edge, int], buckets: int) -> None:
    """Ids with locality: most small components lie within a bucket, some of them in larger ones that do not."""
    check(levels, extracted(folder, levels, buckets, 1)[1])


@given(rows=strategies.edge_lists(14), buckets=st.integers(1, 4))
@settings(max_examples=examples(50))
def test_elsewhere(folder: Path, rows: list[Edge], buckets: int) -> None:
    """On arrays that are not the host's, as on a GPU."""
    levels = oracles.networkx_lambda(rows)
    with foreign.with_kernels():
        check(levels, extracted(folder, levels, buckets, 2, MemorySpace.DEVICE)[1])


def test_a_component_of_one_bucket_within_one_of_two(tmp_path: Path) -> None:
    """The larger one is no DN-graph, which only the first bucket can tell."""
    levels = {(0, 1): 3, (1, 5): 1, (5, 6): 1}
    ingested, groups = extracted(tmp_path, levels, 2, 1)
    assert ingested.starts.tolist() == [0, 3, 7]
    check(levels, groups)


def test_a_dn_graph_of_which_a_bucket_has_two_parts(tmp_path: Path) -> None:
    """They hang together in the other bucket only; and supports that no triangles make are refused."""
    sides = [{0, 4, 5, 6}, {1, 7, 8, 9}]
    levels = {(6, 7): 2} | {edge: 2 for side in sides for edge in combinations(sorted(side), 2)}
    ingested, groups = extracted(tmp_path, levels, 2, 1)
    assert 2 <= ingested.starts[1] <= 6
    check(levels, groups)
    own = groups.found[0]
    assert own.dn_graphs.id.tolist() == [2] and groups.triangles[0].tolist() == [8]
    with pytest.raises(InternalError, match=r"0.*DN-graph"):
        dense.collect_triangles(own, {1: SupportSums(own.dn_graphs.id, np.array([25]))})


def test_more_vertices_than_an_int32_counts(tmp_path: Path) -> None:
    """A bucket of 2^32 vertices before all others, which is not grown here, and one without edges after them."""
    levels = oracles.networkx_lambda([*combinations(range(5), 2), (4, 5), (5, 6), *combinations(range(6, 10), 2)])
    ingested, groups = extracted(tmp_path, levels, 3, 1)
    shift, highest = 2**32, max(levels.values())
    starts = np.concatenate([[0], ingested.starts + shift, [ingested.starts[-1] + shift + 1]])
    buckets = [
        replace(own, bucket=own.bucket + 1, starts=starts, highs=own.highs.astype(np.int64) + shift)
        for own in ingested.edges
    ]
    buckets.append(merge_pairs(4, starts, MemorySpace.HOST, None, {}))
    asked = [{asker + 1: places for asker, places in own.asked.items()} for own in ingested.degrees]
    degrees = [BucketDegrees(own.bucket, np.zeros(own.vertices, np.int64), {}) for own in buckets]
    degrees = [replace(own, asked=questions) for own, questions in zip(degrees, [*asked, {}], strict=True)]
    level = [np.array([levels[edge] for edge in edges_of(own)], np.int32) for own in ingested.edges]
    results = [BucketResults(0, known, known, known) for known in [*level, np.zeros(0, np.int32)]]
    trees = list(map(dense.grow_tree, buckets, degrees, results))
    merged = dense.merge_outlines(starts, highest, collect(0, (dense.send_outline(tree, 0) for tree in trees)))
    answers = [dense.answer_outlines(merged, highest)]
    found = [dense.collect_groups(tree, highest, collect(tree.bucket, answers)) for tree in trees]
    moved = shift << highest.bit_length()
    for known, own in zip(groups.found, found, strict=False):
        assert np.array_equal(own.components.id, known.components.id + moved)
        assert np.array_equal(own.components.parent, known.components.parent + moved * (known.components.parent >= 0))
        assert np.array_equal(own.innermost, known.innermost + moved * (known.innermost >= 0))
        assert np.array_equal(own.components.edges, known.components.edges)
    assert (len(found[3].components), found[3].innermost.tolist()) == (0, [-1])
    for tree, own in zip(trees, found, strict=True):
        kept = dense.dn_edges(buckets[tree.bucket - 1], tree, own)
        assert (kept.edges.highs.dtype.itemsize, len(kept)) == (8, len(kept.place))


def test_ids_stay_when_the_largest_lambda_changes_a_little() -> None:
    least, level = np.array([0, 3, 2**33]), np.array([0, 2, 4], np.int32)
    found = [component_ids(least, level, highest).tolist() for highest in (4, 5, 7, 8)]
    assert found[0] == found[1] == found[2] != found[3]
    assert found[0] == [0, 26, 2**36 + 4]


def test_joined_outlines_are_no_larger_than_what_they_are_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clique that eight buckets share: each knows of all vertices after its own."""
    levels = dict.fromkeys(combinations(range(64), 2), 62)
    ingested, _ = extracted(tmp_path, levels, 8, 1)
    known = [np.full(len(own), 62, np.int32) for own in ingested.edges]
    results = [BucketResults(b, own, own, own) for b, own in enumerate(known)]
    trees = map(dense.grow_tree, ingested.edges, ingested.degrees, results)
    sent = [dense.send_outline(tree, 0) for tree in trees]
    assert sum(len(part.low) for own in sent for part in own.parts.values()) > 200
    (joined,) = dense.join_outlines(0, 0, collect(0, sent)).parts.values()
    with monkeypatch.context() as patch, pytest.raises(OutOfRoom, match=r"100.*put"):
        patch.setattr("edgemill.tasks.dense.merge.MAX_LOCAL_EDGES", 100)
        dense.merge_outlines(ingested.starts, 62, collect(0, sent))
    shared = 64 - int(ingested.starts[1])  # the first bucket's own vertices are in no other
    assert (len(joined.low), joined.bucket.tolist()) == (shared - 1, list(range(8)))


def test_more_vertices_of_a_bucket_than_numbers_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own and those that its edges lead to are numbered together."""
    ingested, _ = extracted(tmp_path, dict.fromkeys(combinations(range(6), 2), 4), 2, 1)
    edges, degrees = ingested.edges[0], ingested.degrees[0]
    level = np.full(len(edges), 4, np.int32)
    own = edges, degrees, BucketResults(0, level, level, level)
    assert edges.vertices < 6
    monkeypatch.setattr("edgemill.tasks.dense.tree.MAX_LOCAL_EDGES", 6)
    dense.grow_tree(*own)
    monkeypatch.setattr("edgemill.tasks.dense.tree.MAX_LOCAL_EDGES", 5)
    with pytest.raises(OutOfRoom, match=r"bucket 0 .*6 vertices .*the 5 allowed; raise"):
        dense.grow_tree(*own)


def test_two_triangles_that_share_a_vertex_are_one_group(tmp_path: Path) -> None:
    """The theorem of the source (2.5.2), which is followed, says so. By its definition each of the triangles is a
    DN-graph as well (docs/dense-groups.md).
    """
    edges = set(combinations((1, 2, 3), 2)) | set(combinations((3, 4, 5), 2))
    for buckets in (1, 3):
        _, groups = extracted(tmp_path, oracles.networkx_lambda(edges), 2, buckets)
        found = [own.dn_graphs for own in groups.found]
        rows = [row for own in found for row in zip(own.level, own.vertices, own.edges, strict=True)]
        assert rows == [(1, 5, 6)]


def test_planted_cliques_come_back(tmp_path: Path) -> None:
    """Lemma 2.5.1 of the thesis: a clique of d vertices whose neighbourhood is sparser is a DN-graph of λ = d - 2."""
    sizes, edges, first = (4, 5, 7, 9), set[Edge](), 0
    for size in sizes:
        edges |= set(combinations(range(first, first + size), 2))
        edges |= {(first, first + size)} if size != sizes[-1] else set()  # bridges without triangles between them
        first += size
    levels = oracles.networkx_lambda(edges)
    _, groups = extracted(tmp_path, levels, 3, 2)
    found = [own.dn_graphs for own in groups.found]
    ours = [
        row for own in found for row in zip(own.level.tolist(), own.vertices.tolist(), own.edges.tolist(), strict=True)
    ]
    assert sorted(ours) == [(size - 2, size, size * (size - 1) // 2) for size in sizes]
