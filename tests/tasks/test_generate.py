"""Generated graphs: shape, determinism, refused parameters."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from edgemill.tasks import generate as graph_kinds
from edgemill.tasks.errors import UsageError
from edgemill.tasks.generate import KINDS, RMat, generate
from oracles import brute_force_lambda, simple_edges

SMALL: dict[str, dict[str, int]] = {
    "rmat": {"scale": 8, "edge_factor": 4},
    "erdos-renyi": {"vertices": 50, "edges": 300},
    "two-sided": {"left": 50, "right": 40, "edges": 200, "groups": 3, "group_left": 4, "group_right": 6},
    "planted-cliques": {"vertices": 60, "edges": 100, "cliques": 3, "clique_size": 6},
    "communities": {"vertices": 60, "communities": 30, "community_size": 5},
    "grid": {"width": 7, "height": 9},
    "chain": {"triangles": 40},
    "star": {"leaves": 30},
    "clique": {"vertices": 20},
}


def rows_of(folder: Path) -> list[tuple[int, int]]:
    table = pa.concat_tables([pq.read_table(path) for path in sorted(folder.iterdir())])
    return list(zip(table["src"].to_pylist(), table["dst"].to_pylist(), strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_rows_depend_on_parameters_and_seed_only(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_kinds, "CHUNK_ROWS", 64)  # many chunks, which do not align with files
    paths = generate(kind, tmp_path / "a", 1, 7, **SMALL[kind])
    assert [path.name for path in paths] == ["part-00000.parquet"]
    assert len(generate(kind, tmp_path / "b", 3, 7, **SMALL[kind])) == 3
    rows = rows_of(tmp_path / "a")
    assert rows == rows_of(tmp_path / "b")
    assert len(rows) == KINDS[kind](**SMALL[kind]).rows
    if kind in ("rmat", "erdos-renyi", "planted-cliques", "communities", "grid"):
        generate(kind, tmp_path / "c", 1, 8, **SMALL[kind])
        assert rows != rows_of(tmp_path / "c")


def test_files_hold_differences_of_int64_and_row_groups_of_at_most_a_chunk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graph_kinds, "CHUNK_ROWS", 100)
    (path,) = generate("clique", tmp_path, 1, 1, vertices=30)
    file = pq.ParquetFile(path)
    assert file.schema_arrow == pa.schema([("src", pa.int64()), ("dst", pa.int64())])
    groups = [file.metadata.row_group(number) for number in range(file.num_row_groups)]
    assert [group.num_rows for group in groups] == [100, 100, 100, 100, 35]
    columns = [group.column(c) for group in groups for c in range(2)]
    assert {(column.compression, "DELTA_BINARY_PACKED" in column.encodings) for column in columns} == {("ZSTD", True)}


def test_more_files_than_rows_gives_empty_files(tmp_path: Path) -> None:
    paths = generate("star", tmp_path, 5, 1, leaves=2)
    assert sorted(pq.read_metadata(path).num_rows for path in paths) == [0, 0, 0, 1, 1]


def test_rmat_quarters_have_their_probabilities() -> None:
    recipe = RMat(scale=12, edge_factor=16, a=0.5, b=0.3, c=0.15)
    src, dst = recipe.draw(0, recipe.rows, 3)
    assert src.dtype == dst.dtype == np.int64
    assert min(src.min(), dst.min()) >= 0 and max(src.max(), dst.max()) < 1 << 12
    for level in (0, 11):
        quarter = np.bincount((src >> level & 1) * 2 + (dst >> level & 1)) / recipe.rows
        assert quarter == pytest.approx([0.5, 0.3, 0.15, 0.05], abs=0.01)


def test_rmat_permute_only_renames_vertices() -> None:
    plain = RMat(scale=9, edge_factor=8)
    src, dst = plain.draw(0, plain.rows, 5)
    new_src, new_dst = RMat(scale=9, edge_factor=8, permute=True).draw(0, plain.rows, 5)
    names = dict(zip(np.concatenate([src, dst]), np.concatenate([new_src, new_dst]), strict=True))
    assert len(set(names.values())) == len(names)
    assert [names[vertex] for vertex in src] == list(new_src)
    assert [names[vertex] for vertex in dst] == list(new_dst)
    assert not np.array_equal(src, new_src)


@pytest.mark.parametrize("edges", [0, 1, 44, 45])
def test_erdos_renyi_edges_are_different(edges: int, tmp_path: Path) -> None:
    generate("erdos-renyi", tmp_path, 1, 2, vertices=10, edges=edges)
    rows = rows_of(tmp_path)
    assert len(rows) == len(simple_edges(rows)) == edges
    assert all(0 <= u < v < 10 for u, v in rows)


def test_pair_numbers_are_exact_where_floats_are_not() -> None:
    last = 2**31 * (2**31 - 1) // 2 - 1
    low, high = graph_kinds._unrank_pairs(np.array([0, 1, last - 2**31 + 1, last], np.int64))
    assert list(zip(low, high, strict=True)) == [(0, 1), (0, 2), (2**31 - 3, 2**31 - 2), (2**31 - 2, 2**31 - 1)]


@pytest.mark.parametrize(("width", "height"), [(2, 2), (2, 5), (6, 4)])
def test_a_grid_has_a_diagonal_in_each_cell(tmp_path: Path, width: int, height: int) -> None:
    generate("grid", tmp_path, 1, 4, width=width, height=height)
    edges = simple_edges(rows_of(tmp_path))
    assert len(edges) == len(rows_of(tmp_path))
    across = [(v - u) for u, v in edges]
    assert (across.count(1), across.count(width)) == ((width - 1) * height, width * (height - 1)) or width == 2
    assert set(brute_force_lambda(edges).values()) == {1}


@pytest.mark.parametrize("permute", [False, True])
def test_communities_are_cliques(tmp_path: Path, permute: bool) -> None:
    generate("communities", tmp_path, 1, 4, vertices=500, communities=9, community_size=6, spread=3, permute=permute)
    rows = rows_of(tmp_path)
    for first in range(0, len(rows), 15):
        members = sorted({end for row in rows[first : first + 15] for end in row})
        assert sorted((min(row), max(row)) for row in rows[first : first + 15]) == list(combinations(members, 2))
        assert len(members) == 6
    near = [abs(u - v) <= 3 * 6 for u, v in rows]
    assert (sum(near) < 0.5 * len(near)) if permute else (sum(near) > 0.8 * len(near))


def test_planted_cliques_are_disjoint_and_whole(tmp_path: Path) -> None:
    generate("planted-cliques", tmp_path, 1, 4, vertices=18, edges=0, cliques=3, clique_size=6)
    rows = rows_of(tmp_path)
    assert set(brute_force_lambda(rows).values()) == {4}
    assert len(rows) == 3 * 15
    assert len({vertex for row in rows for vertex in row}) == 18


def test_chain_star_and_clique(tmp_path: Path) -> None:
    for kind, edges, lam in (("chain", 81, 1), ("star", 30, 0), ("clique", 190, 18)):
        generate(kind, tmp_path / kind, 1, 0, **SMALL[kind])
        answer = brute_force_lambda(rows_of(tmp_path / kind))
        assert len(answer) == edges
        assert set(answer.values()) == {lam}
    assert set(rows_of(tmp_path / "clique")) == set(combinations(range(20), 2))


@pytest.mark.parametrize(
    ("kind", "parameters", "message"),
    [
        ("ring", {}, "kind: 'ring' is not one of rmat, erdos-renyi"),
        ("rmat", {"scale": 0}, "rmat: scale is 0; give from 1 to 40"),
        ("rmat", {"scale": 41}, "rmat: scale is 41"),
        ("rmat", {"scale": 4.5}, "rmat: scale is 4.5; give a whole number"),
        ("rmat", {"scale": 4, "a": 0.9, "b": 0.2}, "rmat: a [+] b [+] c is 1.29"),
        ("rmat", {"scale": 4, "a": float("nan")}, "rmat: a is nan; give a probability"),
        ("rmat", {}, "rmat: give scale"),
        ("rmat", {"scale": 4, "leaves": 1}, "rmat: unknown parameter 'leaves'; it takes scale, edge_factor"),
        ("erdos-renyi", {"vertices": 4, "edges": 7}, "edges is 7; give from 0 to 6, the pairs of 4 vertices"),
        ("planted-cliques", {"vertices": 9, "edges": 0, "cliques": 2, "clique_size": 5}, "need 10 vertices"),
        ("chain", {"triangles": 0}, "chain: triangles is 0"),
        ("star", {"leaves": True}, "star: leaves is True"),
        ("clique", {"vertices": 1}, "clique: vertices is 1"),
    ],
)
def test_bad_parameters_are_refused(kind: str, parameters: dict[str, float], message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        generate(kind, tmp_path / "out", 1, 0, **parameters)
    assert not (tmp_path / "out").exists()


def test_bad_outputs_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(UsageError, match="is not empty"):
        generate("star", tmp_path, 1, 0, leaves=1)
    with pytest.raises(UsageError, match=r"/file .*made a folder"):
        generate("star", tmp_path / "file", 1, 0, leaves=1)
    with pytest.raises(UsageError, match=r"files.*0"):
        generate("star", tmp_path / "new", 0, 0, leaves=1)
    with pytest.raises(UsageError, match=r"-1.*negative"):
        generate("star", tmp_path / "new", 1, -1, leaves=1)
    assert (tmp_path / "file").read_text() == "mine"


def test_no_partial_file_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: RMat, start: int, stop: int, seed: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(RMat, "draw", fail)
    with pytest.raises(KeyboardInterrupt):
        generate("rmat", tmp_path, 2, 0, scale=4)
    assert list(tmp_path.iterdir()) == []
