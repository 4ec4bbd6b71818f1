"""The drawings of the explorer, and their limits."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pytest

import runs
from edgemill.pipeline import Result, find_dn_graph
from edgemill.pipeline.explorer import drawing, tree
from edgemill.pipeline.explorer.queries import ORDERS, Queries
from edgemill.pipeline.explorer.server import ExplorerServer
from made import made as made_of
from serving import answer, serving


def rows(table: Any) -> list[dict[str, Any]]:
    return list(table.to_table().to_pylist())


def drawn_edges(said: dict[str, Any]) -> tuple[dict[frozenset[str], int], dict[frozenset[str], int]]:
    """Drawn edges by their ids, with λ: the DN-graph's own, and the others."""
    ids, edges, own = said["vertices"]["id"], said["edges"], said["own_edges"]
    pairs = [frozenset((ids[s], ids[t])) for s, t in zip(edges["source"], edges["target"], strict=True)]
    both = list(zip(pairs, edges["lambda"], strict=True))
    assert len(set(pairs)) == len(pairs)
    return dict(both[:own]), dict(both[own:])


def test_a_drawing_is_the_dn_graph_and_its_neighbours(
    served: ExplorerServer, facebook: Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("MOST_NEIGHBOURS", "MOST_TIES", "MOST_BETWEEN"):
        monkeypatch.setattr(drawing, name, 10**6)
    lam = {frozenset(map(str, pair)): value for pair, value in runs.column(facebook, "lambda").items()}
    for group in rows(facebook.dn_graphs):
        members = {str(row["vertex"]) for row in rows(facebook.dn_graph_members) if row["dn_graph"] == group["id"]}
        said = answer(served, "drawing", group=group["id"])
        own, others = drawn_edges(said)
        assert set(said["vertices"]["id"][: said["members"]]) == members
        assert len(own) == group["edges"]
        assert own == {pair: k for pair, k in lam.items() if pair <= members and k == group["lambda"]}
        assert others == {pair: k for pair, k in lam.items() if pair & members and pair not in own}
        assert not said["notices"]
        for id, k, count in list(zip(*(said["vertices"][name] for name in ("id", "lambda", "edges")), strict=True))[
            said["members"] :
        ]:
            to = [value for pair, value in others.items() if id in pair]
            assert (max(to), len(to)) == (k, count)


def test_ties_of_dn_graphs(tmp_path: Path) -> None:
    """λ is invented, so that it does not depend on the size."""
    sizes = {0: (5, 9), 10: (5, 10), 20: (7, 9), 30: (4, 9), 40: (4, 8), 50: (4, 9)}
    levels: dict[tuple[int, int], int] = {}
    for start, (vertices, lam) in sizes.items():
        levels |= dict.fromkeys(combinations(range(start, start + vertices), 2), lam)
    result = made_of(tmp_path / "out", levels, rows_per_file=2, rows_per_group=1)
    groups = rows(result.dn_graphs)
    for by in ORDERS:
        groups.sort(key=lambda row: (-row[by], -row["lambda"], -row["vertices"], row["id"]))
        for most in (1, 3, 9):
            found = Queries(result).largest(by, most)
            assert [drawn.group.component for drawn in found] == [row["id"] for row in groups[:most]], by


def test_members_are_ascending_whatever_the_files(facebook: Result) -> None:
    result = Result(facebook.path)
    (row, *_) = rows(result.dn_graphs)
    group = find_dn_graph(result, row["id"])
    known = Queries(result).members(group, 10**6)
    whole = result.dn_graph_members.to_table()
    vars(result)["dn_graph_members"] = ds.dataset(whole.take(pa.array(range(len(whole))[::-1])))
    assert Queries(result).members(group, 10**6) == known


def test_the_largest_of_a_level_are_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Regardless of the parent: a large child of a small component comes before small children of a large one."""
    path = [(at, at + 1) for at in range(100, 160)]
    levels = dict.fromkeys([*path, (160, 200), (160, 210), (300, 301)], 0)
    for start, vertices in ((200, 4), (210, 4), (301, 6)):
        levels |= dict.fromkeys(combinations(range(start, start + vertices), 2), vertices - 2)
    monkeypatch.setattr(tree, "_EXPANDED", 2)
    with serving(made_of(tmp_path / "out", levels)) as served:
        large, small = answer(served, "hierarchy", depth=9)["node"]["children"]["largest"]
    assert ("to" in small, small["k"]) == (False, 0)
    assert [child["edges"] for child in small["children"]["largest"]] == [15]
    assert "children" in small["children"]["largest"][0]
    assert ["children" in child for child in large["children"]["largest"]] == [True, False]


def test_the_neighbours_with_most_edges_then_of_the_largest_lambda(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    levels = dict.fromkeys([(1, 2), (2, 3), (3, 4), (1, 4)], 5)
    levels |= {(1, 10): 1, (2, 10): 1, (1, 11): 4, (1, 12): 2, (2, 12): 1, (3, 13): 1, (1, 3): 1, (2, 4): 2}
    monkeypatch.setattr(drawing, "MOST_NEIGHBOURS", 3)
    monkeypatch.setattr(drawing, "MOST_BETWEEN", 1)
    with serving(made_of(tmp_path / "out", levels)) as served:
        (group,) = answer(served, "largest")["largest"]
        said = answer(served, "drawing", group=group["component"])
    assert said["vertices"]["id"] == ["1", "2", "3", "4", "12", "10", "11"]
    assert said["vertices"]["lambda"] == [5] * 4 + [2, 1, 4]
    _, others = drawn_edges(said)
    assert others.keys() & {frozenset("13"), frozenset("24")} == {frozenset("24")}
    assert said["notices"] == [
        "3 of 4 neighbours are drawn: those with the most edges to it.",
        "6 of 7 edges outside the group are drawn: those of the largest λ.",
    ]


def test_the_choice_of_drawn_vertices() -> None:
    """Vertices around the one with the most edges; neighbours with more edges come first."""
    edges = [(0, 1), (1, 2), (2, 3), (2, 4), (2, 5), (4, 5), (4, 6), (5, 6), (4, 7)]
    source, target = (np.array(ends) for ends in zip(*edges, strict=True))
    assert drawing._ball(8, source, target, 4).tolist() == [2, 4, 5, 1]
    assert drawing._ball(8, source, target, 99).tolist() == [2, 4, 5, 1, 3, 6, 0, 7]


def test_few_of_many_members_are_read(
    served: ExplorerServer, facebook: Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawing, "MOST_VERTICES", 5)
    monkeypatch.setattr(drawing, "MOST_MEMBERS", 30)
    (group, *_) = sorted(rows(facebook.dn_graphs), key=lambda row: -row["vertices"])
    members = sorted(row["vertex"] for row in rows(facebook.dn_graph_members) if row["dn_graph"] == group["id"])
    said = answer(served, "drawing", group=group["id"])
    assert said["members"] == 5
    assert {int(id) for id in said["vertices"]["id"][:5]} <= {*members[:30]}


def test_limits_of_the_drawing_have_notices(
    served: ExplorerServer, facebook: Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    (group, *_) = sorted(rows(facebook.dn_graphs), key=lambda row: -row["vertices"])
    caps = {"VERTICES": 50, "EDGES": 100, "NEIGHBOURS": 9, "TIES": 3, "BETWEEN": 5}
    for name, most in caps.items():
        monkeypatch.setattr(drawing, f"MOST_{name}", most)
    said = answer(served, "drawing", group=group["id"])
    own, others = drawn_edges(said)
    assert (said["members"], len(own), len(said["vertices"]["id"])) == (50, 100, 59)
    assert len(others) <= 9 * 3 + 5
    assert all(k < group["lambda"] for k in others.values())
    members = {str(row["vertex"]) for row in rows(facebook.dn_graph_members) if row["dn_graph"] == group["id"]}
    assert not members & set(said["vertices"]["id"][50:])
    assert all(any(id in pair for pair in others) for id in said["vertices"]["id"][50:])
    text = "\n".join(said["notices"])
    assert "139 vertices are too many for one drawing. It shows 50 of them, around vertex" in text
    assert re.search(r"100 of its [\d,]+ edges are drawn", text)
    assert re.search(r"9 of [\d,]+ neighbours are drawn", text)
    assert re.search(r"edges outside the group are drawn", text)
    assert answer(served, "drawing", group=group["id"]) == said


def test_searches_read_a_bounded_number_of_rows(
    served: ExplorerServer, facebook: Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    (group, *_) = sorted(rows(facebook.dn_graphs), key=lambda row: -row["vertices"])
    monkeypatch.setattr(drawing, "MOST_ROWS", 20_000)
    said = answer(served, "drawing", group=group["id"])
    assert any(re.match(r"Only (1\d|20),\d{3} of 88,234 edges were searched", text) for text in said["notices"])
    monkeypatch.setattr(drawing, "MOST_ROWS", 1)
    said = answer(served, "drawing", group=group["id"])
    assert said["own_edges"] < group["edges"]
    assert any(
        re.match(r"Only [\d,]+ of its edges were read, from 500 of 88,234 rows", text) for text in said["notices"]
    )
    monkeypatch.undo()
    monkeypatch.setattr(drawing, "MOST_FOUND", 1_000)
    assert answer(served, "drawing", group=group["id"])["own_edges"] == 1_000
