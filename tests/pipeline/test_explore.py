"""What the explorer's server says, refuses and reads."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from itertools import combinations
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode
from uuid import UUID

import fsspec
import numpy as np
import psutil
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from distributed import Client

import runs
from edgemill.pipeline import InputError, Result, UsageError, mine
from edgemill.pipeline.cli import edgemill
from edgemill.pipeline.explore import answers, drawing, members, search, server, tree
from edgemill.pipeline.explore.queries import ORDERS, Queries
from edgemill.pipeline.explore.server import ExplorerServer
from edgemill.pipeline.lookup import look_up
from edgemill.pipeline.manifest import Manifest
from edgemill.tasks.places import Place
from made import made as made_of
from serving import serving

WriteResult = Callable[..., Manifest]
FACEBOOK = Path(__file__).parents[1] / "graphs" / "facebook_combined.parquet"
STATIC = Path(server.__file__).parent / "static"
Answer = tuple[int, dict[str, Any]]


def get(served: ExplorerServer, path: str, **headers: str) -> tuple[http.client.HTTPResponse, bytes]:
    return send(served, "GET", path, {name.replace("_", "-"): value for name, value in headers.items()})


def send(
    served: ExplorerServer, method: str, path: str, headers: dict[str, str]
) -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection(server.ADDRESS, served.server_port)
    try:
        connection.request(method, path, headers=headers)
        response = connection.getresponse()
        return response, response.read()
    finally:
        connection.close()


def ask(served: ExplorerServer, question: str, **parameters: Any) -> Answer:
    response, content = get(served, f"/api/{question}?{urlencode(parameters)}")
    assert response.headers["Content-Type"] == "application/json"
    return response.status, json.loads(content)


def answer(served: ExplorerServer, question: str, **parameters: Any) -> dict[str, Any]:
    status, content = ask(served, question, **parameters)
    assert status == 200, content
    return content


@pytest.fixture(scope="module")
def facebook(client: Client, tmp_path_factory: pytest.TempPathFactory) -> Result:
    """In row groups of 500 rows, so that a search reads few of many."""
    out = tmp_path_factory.mktemp("facebook") / "out"
    return mine(FACEBOOK, out, client=client, device="cpu", row_group_rows=500)


@pytest.fixture
def made(client: Client, tmp_path: Path) -> Callable[..., Result]:
    """The result of a few rows."""

    def run(pairs: Iterable[runs.Edge], id_type: pa.DataType | None = None) -> Result:
        rows = runs.write_rows(tmp_path / "rows.parquet", pairs, id_type)
        return mine(rows, tmp_path / "out", client=client, device="cpu")

    return run


@pytest.fixture(scope="module")
def served(facebook: Result) -> Iterator[ExplorerServer]:
    with serving(facebook) as served:
        yield served


def rows(table: Any) -> list[dict[str, Any]]:
    return list(table.to_table().to_pylist())


def test_the_page_names_the_result(served: ExplorerServer, facebook: Result) -> None:
    said = answer(served, "result")
    assert facebook.manifest.dense is not None
    assert (said["name"], said["edges"], said["lambda"], said["id_type"]) == ("out", 88_234, 95, "int64")
    assert (said["dn_graphs"], said["components"]) == (7, len(rows(facebook.hierarchy)))


def test_a_result_named_by_a_dot(facebook: Result, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(facebook.path)
    for name in (".", "../out/"):
        with serving(Result(name)) as served:
            assert answer(served, "result")["name"] == "out"


def test_the_tree_holds_every_component_once(served: ExplorerServer, facebook: Result) -> None:
    components = {row["component"]: row for row in rows(facebook.hierarchy)}
    below: dict[int | None, list[int]] = {}
    for row in components.values():
        below.setdefault(row["parent"], []).append(row["component"])
    seen: list[int] = []
    leaves: list[str] = []

    def walk(node: dict[str, Any], expected: list[int]) -> None:
        if node["component"] is not None:
            at = int(node["component"])
            assert at in expected
            assert (node["k"], node["edges"]) == (components[at]["k"], components[at]["edges"])
            seen.append(at)
            while str(at) != node.get("to", node)["component"]:
                (at,) = below[at]
                seen.append(at)
            expected = below.get(at, [])
        children = node["children"]["largest"]
        assert node["children"]["count"] == len(children) == len(expected)
        assert node["children"]["edges"] == sum(child["edges"] for child in children)
        assert [child["edges"] for child in children] == sorted((child["edges"] for child in children), reverse=True)
        if not children:
            leaves.append(node["component"])
        if len(children) == 1 and node["component"] is not None:
            assert children[0]["children"]["count"] == 0  # all else that only steps down is one node
        for child in children:
            walk(child, expected)

    tree = answer(served, "hierarchy", depth=24, most=200)["node"]
    walk({**tree, "component": None}, below[None])
    assert sorted(seen) == sorted(components)
    assert set(leaves) == {str(row["id"]) for row in rows(facebook.dn_graphs)}


def test_children_are_capped_and_counted(made: Callable[..., Result]) -> None:
    cliques = [(10 * n + i, 10 * n + j) for n in range(7) for i in range(n + 3) for j in range(i)]
    with serving(made(cliques)) as served:
        children = answer(served, "hierarchy", most=2)["node"]["children"]
        assert (children["count"], children["edges"]) == (7, len(cliques))
        assert [(child["k"], child["edges"]) for child in children["largest"]] == [(7, 36), (6, 28)]
        assert all(child["children"] == {"count": 0, "edges": 0, "largest": []} for child in children["largest"])


def test_a_component_by_itself_has_the_path_to_it(served: ExplorerServer, facebook: Result) -> None:
    components = {row["component"]: row for row in rows(facebook.hierarchy)}
    siblings = [row["parent"] for row in components.values()]
    (deepest, *_) = sorted(rows(facebook.dn_graphs), key=lambda row: -row["lambda"])
    said = answer(served, "hierarchy", component=deepest["id"])
    expected, at = [], deepest["parent"]
    while at is not None:
        if components[at]["parent"] is None or siblings.count(components[at]["parent"]) > 1:
            expected.append(str(at))
        at = components[at]["parent"]
    assert [step["component"] for step in said["path"]] == expected[::-1]
    assert said["node"]["component"] == str(deepest["id"])


def test_a_vertex_and_its_groups(served: ExplorerServer, facebook: Result) -> None:
    components = {row["component"]: row for row in rows(facebook.hierarchy)}
    groups = {row["id"] for row in rows(facebook.dn_graphs)}
    for row in rows(facebook.vertices)[::400]:
        said = answer(served, "vertex", id=row["id"])
        assert (said["id"], said["lambda"], said["degree"]) == (str(row["id"]), row["lambda"], row["degree"])
        at, path = row["component"], []
        while at is not None:
            path.append(str(at))
            at = components[at]["parent"]
        assert [group["component"] for group in said["groups"]] == path
        inner = said["dn_graph"] and int(said["dn_graph"]["id"])
        assert inner == (row["component"] if row["component"] in groups else None)


def test_groups_beyond_the_most_are_counted(served: ExplorerServer, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = answer(served, "vertex", id=1912)
    assert (len(whole["groups"]), whole["larger"]) == (96, 0)
    monkeypatch.setattr(answers, "_MOST_PATH", 90)
    said = answer(served, "vertex", id=1912)
    assert (said["groups"], said["larger"]) == (whole["groups"][:90], 6)
    path = answer(served, "hierarchy", component=whole["groups"][0]["component"])["path"]
    monkeypatch.setattr(answers, "_MOST_PATH", 3)
    assert answer(served, "hierarchy", component=whole["groups"][0]["component"])["path"] == path[-3:] != path


def test_an_unknown_vertex_has_ids_that_follow(served: ExplorerServer) -> None:
    assert ask(served, "vertex", id=" 17 ")[0] == 200
    status, said = ask(served, "vertex", id=-5)
    assert (status, said["next"]) == (404, ["0", "1", "2", "3", "4"])
    assert ask(served, "vertex", id=4039) == (404, {"error": "there is no vertex 4039", "next": []})


@pytest.mark.parametrize("by", ["lambda", "vertices", "edges", "density", "triangles"])
def test_the_largest_dn_graphs(served: ExplorerServer, facebook: Result, by: str) -> None:
    expected = rows(facebook.dn_graphs)
    expected.sort(key=lambda row: (-row[by], -row["lambda"], -row["vertices"], -row["edges"], row["id"]))
    said = answer(served, "dn-graphs", by=by, most=4)
    assert said["count"] == 7
    assert [group["id"] for group in said["largest"]] == [str(row["id"]) for row in expected[:4]]
    assert said["largest"][0][by] == expected[0][by]


def test_the_list_has_some_members_of_each(served: ExplorerServer, facebook: Result) -> None:
    of: dict[str, set[str]] = {}
    for row in rows(facebook.dn_graph_members):
        of.setdefault(str(row["dn_graph"]), set()).add(str(row["vertex"]))
    for group in answer(served, "dn-graphs")["largest"]:
        some = group["members"]
        assert len(some["ids"]) == len(set(some["ids"])) == 6
        assert {*some["ids"]} < of[group["id"]]
        assert some["labels"] == [None] * 6


def test_members_to_copy_and_as_a_file(
    served: ExplorerServer, facebook: Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    best = answer(served, "dn-graphs")["largest"][0]["id"]
    expected = sorted(row["vertex"] for row in rows(facebook.dn_graph_members) if row["dn_graph"] == int(best))
    said = answer(served, "members", dn_graph=best)
    assert (said["count"], said["ids"]) == (139, [str(id) for id in expected])
    response, content = get(served, f"/members.csv?dn_graph={best}")
    assert (response.status, response.headers["Content-Type"]) == (200, "text/csv; charset=utf-8")
    assert response.headers["Content-Disposition"] == f'attachment; filename="members-{best}.csv"'
    table = pyarrow.csv.read_csv(pa.py_buffer(content))
    assert sorted(table["id"].to_pylist()) == expected
    assert sum(table["degree_inside"].to_pylist()) == 2 * 8987
    monkeypatch.setattr(members, "MOST_MEMBERS", 138)
    response, content = get(served, f"/members.csv?dn_graph={best}")
    assert (response.status, b"edgemill members" in content) == (400, True)


NAMES = {1: "Ada Berg", 2: "Bela Bergmann", 3: "Berg", 4: "Chen", 15: None}


@pytest.fixture
def named(tmp_path: Path) -> Iterator[ExplorerServer]:
    """Five vertices, of which four have a name."""
    levels = dict.fromkeys(combinations([1, 2, 3, 4], 2), 2) | {(4, 15): 0}
    names: dict[str, tuple[pa.DataType, dict[Any, Any]]] = {
        "name": (pa.string(), NAMES),
        "town": (pa.string(), {1: "Oslo, Norway"}),
    }
    with serving(made_of(tmp_path / "out", levels, attributes=names, label="name", rows_per_group=2)) as served:
        yield served


def test_vertices_by_a_part_of_their_name(named: ExplorerServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole names first, then those that begin with it; capitals do not count."""
    found = answer(named, "search", text=" berg ")
    assert [(one["id"], one["label"]) for one in found["found"]] == [
        ("3", "Berg"),
        ("1", "Ada Berg"),
        ("2", "Bela Bergmann"),
    ]
    assert ([one["whole"] for one in found["found"]], found["more"]) == ([False] * 3, False)
    assert answer(named, "search", text="Berg")["found"][0]["whole"]
    assert [(one["id"], one["lambda"], one["degree"]) for one in answer(named, "search", text="1")["found"]] == [
        ("1", 2, 3),
        ("15", 0, 1),
    ]
    status, said = ask(named, "search", text="zzz")
    assert (status, said) == (404, {"error": "no vertex has 'zzz' in its id or label", "next": []})
    status, said = ask(named, "search", text="-7")
    assert (status, said["next"]) == (404, ["1", "2", "3", "4", "15"])
    monkeypatch.setattr(search, "MOST_MATCHES", 2)
    found = answer(named, "search", text="e")
    assert (len(found["found"]), found["more"]) == (2, True)
    monkeypatch.undo()
    monkeypatch.setattr(search, "MOST_ROWS", 2)
    assert ask(named, "search", text="chen")[0] == 404  # it lies beyond the rows that are looked at
    assert answer(named, "search", text="15")["found"][0]["id"] == "15"  # a whole id is looked up


def test_labels_are_shown(named: ExplorerServer) -> None:
    assert answer(named, "result")["labelled"] is True
    (group,) = answer(named, "dn-graphs")["largest"]
    assert group["members"]["labels"] == ["Ada Berg", "Bela Bergmann", "Berg", "Chen"]
    vertices = answer(named, "drawing", dn_graph=group["id"])["vertices"]
    assert dict(zip(vertices["id"], vertices["label"], strict=True)) == {str(id): name for id, name in NAMES.items()}
    assert answer(named, "vertex", id=3)["label"] == "Berg"
    lines = get(named, f"/members.csv?dn_graph={group['id']}")[1].decode().splitlines()
    assert lines[0] == "id,degree_inside,degree,triangles,lambda,name,town"
    assert lines[1].startswith("1,3,3,")
    assert lines[1].endswith(',"Ada Berg","Oslo, Norway"')


def test_text_ids_by_a_part(made: Callable[..., Result]) -> None:
    with serving(made([("Ärger", "b"), ("b", "%_x"), ("%_x", "Ärger")], pa.string())) as served:
        for text, id in (("ärg", "Ärger"), ("%_", "%_x"), ("B", "b")):
            assert [one["id"] for one in answer(served, "search", text=text)["found"]] == [id]


def test_uuids_are_shown_as_they_are_written(tmp_path: Path) -> None:
    ids = [UUID(int=number) for number in range(3)]
    levels = dict.fromkeys(combinations([id.bytes for id in ids], 2), 1)
    with serving(made_of(tmp_path / "out", levels, id_type=pa.binary(16))) as served:
        (found,) = answer(served, "search", text=str(ids[1]))["found"]
        assert (found["id"], found["whole"]) == (str(ids[1]), True)
        assert answer(served, "vertex", id=str(ids[2]))["id"] == str(ids[2])
        (group,) = answer(served, "dn-graphs")["largest"]
        assert group["members"]["ids"] == [str(id) for id in ids]


def drawn_edges(said: dict[str, Any]) -> tuple[dict[frozenset[str], int], dict[frozenset[str], int]]:
    """Edges drawn by their ids, with λ: the DN-graph's own, and all others."""
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
        said = answer(served, "drawing", dn_graph=group["id"])
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
    """λ is made up, so that it does not go with the size."""
    sizes = {0: (5, 9), 10: (5, 10), 20: (7, 9), 30: (4, 9), 40: (4, 8), 50: (4, 9)}
    levels: dict[tuple[int, int], int] = {}
    for start, (vertices, lam) in sizes.items():
        levels |= dict.fromkeys(combinations(range(start, start + vertices), 2), lam)
    result = made_of(tmp_path / "out", levels, rows_per_file=2, rows_per_group=1)
    groups = rows(result.dn_graphs)
    for by in ORDERS:
        groups.sort(key=lambda row: (-row[by], -row["lambda"], -row["vertices"], row["id"]))
        for most in (1, 3, 9):
            found = Queries(result).largest_dn_graphs(by, most)
            assert [group.id for group in found] == [row["id"] for row in groups[:most]], by


def test_members_are_ascending_whatever_the_files(facebook: Result) -> None:
    result = Result(facebook.path)
    (group, *_) = rows(result.dn_graphs)
    known = Queries(result).members(group["id"], 10**6)
    whole = result.dn_graph_members.to_table()
    vars(result)["dn_graph_members"] = ds.dataset(whole.take(pa.array(range(len(whole))[::-1])))
    assert Queries(result).members(group["id"], 10**6) == known


def test_the_largest_of_a_level_are_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever they lie in: one large part of a small component comes before small parts of a large one."""
    path = [(at, at + 1) for at in range(100, 160)]
    levels = dict.fromkeys([*path, (160, 200), (160, 210), (300, 301)], 0)
    for start, vertices in ((200, 4), (210, 4), (301, 6)):
        levels |= dict.fromkeys(combinations(range(start, start + vertices), 2), vertices - 2)
    monkeypatch.setattr(tree, "_OPENED", 2)
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
        (group,) = answer(served, "dn-graphs")["largest"]
        said = answer(served, "drawing", dn_graph=group["id"])
    assert said["vertices"]["id"] == ["1", "2", "3", "4", "12", "10", "11"]
    assert said["vertices"]["lambda"] == [5] * 4 + [2, 1, 4]
    _, others = drawn_edges(said)
    assert others.keys() & {frozenset("13"), frozenset("24")} == {frozenset("24")}
    assert said["notices"] == [
        "3 of 4 neighbours outside are drawn, those with most edges to it.",
        "6 of 7 edges that are not its own are drawn, those of the largest λ of each neighbour.",
    ]


def test_what_is_drawn_of_many_vertices() -> None:
    """Those around the one with most edges, of its neighbours those with most first."""
    edges = [(0, 1), (1, 2), (2, 3), (2, 4), (2, 5), (4, 5), (4, 6), (5, 6), (4, 7)]
    source, target = (np.array(ends) for ends in zip(*edges, strict=True))
    assert drawing._ball(8, source, target, 4).tolist() == [2, 4, 5, 1]
    assert drawing._ball(8, source, target, 99).tolist() == [2, 4, 5, 1, 3, 6, 0, 7]


def test_few_members_of_many_are_looked_at(
    served: ExplorerServer, facebook: Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawing, "MOST_VERTICES", 5)
    monkeypatch.setattr(drawing, "MOST_MEMBERS", 30)
    (group, *_) = sorted(rows(facebook.dn_graphs), key=lambda row: -row["vertices"])
    members = sorted(row["vertex"] for row in rows(facebook.dn_graph_members) if row["dn_graph"] == group["id"])
    said = answer(served, "drawing", dn_graph=group["id"])
    assert said["members"] == 5
    assert {int(id) for id in said["vertices"]["id"][:5]} <= {*members[:30]}


def test_a_browser_that_goes_away_is_no_error(served: ExplorerServer, capsys: pytest.CaptureFixture[str]) -> None:
    for error, told in ((ConnectionResetError(), ""), (TimeoutError(), ""), (ValueError("unheard of"), "unheard of")):
        try:
            raise error
        except (OSError, ValueError):
            served.handle_error(None, ("127.0.0.1", 1))
        assert told in (said := capsys.readouterr().err)
        assert bool(said) == bool(told)


def test_what_is_too_much_to_draw_is_left_out_with_a_notice(
    served: ExplorerServer, facebook: Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    (group, *_) = sorted(rows(facebook.dn_graphs), key=lambda row: -row["vertices"])
    caps = {"VERTICES": 50, "EDGES": 100, "NEIGHBOURS": 9, "TIES": 3, "BETWEEN": 5}
    for name, most in caps.items():
        monkeypatch.setattr(drawing, f"MOST_{name}", most)
    said = answer(served, "drawing", dn_graph=group["id"])
    own, others = drawn_edges(said)
    assert (said["members"], len(own), len(said["vertices"]["id"])) == (50, 100, 59)
    assert len(others) <= 9 * 3 + 5
    assert all(k < group["lambda"] for k in others.values())
    members = {str(row["vertex"]) for row in rows(facebook.dn_graph_members) if row["dn_graph"] == group["id"]}
    assert not members & set(said["vertices"]["id"][50:])
    assert all(any(id in pair for pair in others) for id in said["vertices"]["id"][50:])
    text = "\n".join(said["notices"])
    assert "139 vertices are too many for one drawing: these are 50 of them, around vertex" in text
    assert re.search(r"100 of its [\d,]+ edges are drawn", text)
    assert re.search(r"9 of [\d,]+ neighbours outside are drawn", text)
    assert re.search(r"edges that are not its own are drawn", text)
    assert answer(served, "drawing", dn_graph=group["id"]) == said


def test_no_search_looks_at_more_rows_than_it_may(
    served: ExplorerServer, facebook: Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    (group, *_) = sorted(rows(facebook.dn_graphs), key=lambda row: -row["vertices"])
    monkeypatch.setattr(drawing, "MOST_ROWS", 20_000)
    said = answer(served, "drawing", dn_graph=group["id"])
    assert any(
        re.match(r"Neighbours were looked for in (1\d|20),\d{3} of 88,234 edges", text) for text in said["notices"]
    )
    monkeypatch.setattr(drawing, "MOST_ROWS", 1)
    said = answer(served, "drawing", dn_graph=group["id"])
    assert said["own_edges"] < group["edges"]
    assert any(
        re.match(r"Only [\d,]+ of its edges were looked at, in 500 of 88,234 rows", text) for text in said["notices"]
    )
    monkeypatch.undo()
    monkeypatch.setattr(drawing, "MOST_FOUND", 1_000)
    assert answer(served, "drawing", dn_graph=group["id"])["own_edges"] == 1_000


def spoil(result: Result, table: str, key: str, wanted: Any) -> int:
    """Damage every row group of a table that cannot hold a key; how many there were."""
    spoilt = 0
    for path in sorted((result.path / table).glob("*.parquet")):
        content = bytearray(path.read_bytes())
        footer = pq.read_metadata(path)
        for number in range(footer.num_row_groups):
            group = footer.row_group(number)
            columns = [group.column(at) for at in range(group.num_columns)]
            (ids,) = (column.statistics for column in columns if column.path_in_schema == key)
            if not ids.min <= wanted <= ids.max:
                spoilt += 1
                for column in columns:
                    at = column.data_page_offset + column.total_compressed_size - 1
                    if column.dictionary_page_offset:
                        at = column.dictionary_page_offset + column.total_compressed_size - 1
                    content[at] ^= 0xFF
        path.write_bytes(content)
    return spoilt


def test_one_vertex_and_one_dn_graph_read_the_row_groups_that_can_hold_them(facebook: Result, tmp_path: Path) -> None:
    """Proved by damage to all others, which whoever reads them must notice."""
    result = Result(shutil.copytree(facebook.path, tmp_path / "out"))
    group = max(rows(result.dn_graphs), key=lambda row: row["lambda"])
    assert spoil(result, "vertices", "id", 2345) > 5
    spoil(result, "dn_graph_members", "dn_graph", group["id"])
    queries = Queries(Result(result.path))
    vertex = queries.vertex(pa.scalar(2345))
    assert vertex is not None
    assert vertex.id == 2345
    assert len(queries.members(group["id"], 10**6)) == group["vertices"]
    with pytest.raises(InputError, match="the result is damaged"):
        queries.vertex(pa.scalar(1))


def test_edges_among_a_few_vertices_read_few_row_groups(facebook: Result, tmp_path: Path) -> None:
    result = Result(shutil.copytree(facebook.path, tmp_path / "out"))
    source, target, _, lam = (column.to_pylist() for column in result.edges.to_table().columns)
    at = len(source) // 2
    wanted = pa.array(sorted([source[at], target[at]]))
    (found,) = Queries(result).edges_among(wanted, lam[at], 10**9, 10**9).table.to_pylist()
    assert list(found.values()) == [source[at], target[at], lam[at]]
    assert Queries(result).edges_among(wanted, lam[at], 10**9, 10**9).rows < 0.1 * len(source)


def test_damage_is_told_and_not_shown(facebook: Result, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    result = Result(shutil.copytree(facebook.path, tmp_path / "out"))
    spoil(result, "vertices", "id", -1)
    with serving(Result(result.path)) as served:
        status, said = ask(served, "vertex", id=1)
        assert status == 500
        assert said["error"]
        assert "Traceback" not in capfd.readouterr().err
        assert answer(served, "dn-graphs")["count"] == 7


def test_a_result_that_another_run_replaces_is_not_mixed_with_it(facebook: Result, tmp_path: Path) -> None:
    out = shutil.copytree(facebook.path, tmp_path / "out")
    with serving(Result(out)) as served:
        assert answer(served, "vertex", id=1)["id"] == "1"
        os.link(out / "manifest.json", tmp_path / "backup")
        (out / "manifest.json").chmod(0o600)
        assert answer(served, "vertex", id=1)["id"] == "1"
        shutil.move(out, tmp_path / "old")
        assert ask(served, "vertex", id=1)[0] == 409
        shutil.copytree(facebook.path, out)
        for question in ("result", "dn-graphs", "hierarchy"):
            status, said = ask(served, question)
            assert (status, said["error"].partition(":")[0]) == (409, "another run has replaced this result")


class HTTPClientError(Exception):
    """As botocore's, which is no OSError."""


@pytest.mark.parametrize("error", [ConnectionResetError(104, "reset"), HTTPClientError("reset")], ids=repr)
def test_a_store_that_goes_away_is_told(
    facebook: Result, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], error: Exception
) -> None:
    """What is in memory is answered all the same, and nothing is taken for another run's result."""
    out = Place("memory://explored/out")
    out.files.put(f"{facebook.path}/", out.path(), recursive=True)

    def gone(*_: object, **__: object) -> None:
        raise error

    with serving(Result(out)) as served:
        monkeypatch.setattr(type(out.files), "ukey", gone)
        monkeypatch.setattr(type(out.files), "_open", gone)
        assert ask(served, "result")[0] == 200
        status, said = ask(served, "vertex", id=1)
    assert (status, said["error"]) == (500, f"cannot read {out}: {error}")
    assert capfd.readouterr().err == f"Error: cannot read {out}: {error}\n"


def test_a_hierarchy_that_runs_in_a_circle_ends(facebook: Result, monkeypatch: pytest.MonkeyPatch) -> None:
    queries = Queries(facebook)
    (root,) = (row["component"] for row in rows(facebook.hierarchy) if row["parent"] is None)
    row = queries.component(root)
    assert row is not None
    circle = {"component": root, "k": row.k, "parent": root, "vertices": row.vertices, "edges": row.edges}
    monkeypatch.setattr(look_up(facebook, "hierarchy"), "row", lambda key: circle)
    with pytest.raises(InputError, match=r"the result is damaged: component \d+ cannot hold"):
        queries.path(root)


def test_only_this_machine_is_listened_to(served: ExplorerServer) -> None:
    found = [
        connection.laddr
        for connection in psutil.Process().net_connections("inet")
        if connection.status == psutil.CONN_LISTEN and connection.laddr.port == served.server_port
    ]
    assert [address.ip for address in found] == ["127.0.0.1"]
    assert served.address == f"http://127.0.0.1:{served.server_port}/"


@pytest.mark.parametrize("path", ["/", "/explore.js", "/api/result", "/api/nothing"])
@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "[::1]:{port}", ""]
)
def test_another_host_is_refused(served: ExplorerServer, path: str, host: str) -> None:
    response, content = get(served, path, Host=host.format(port=served.server_port))
    assert response.status == 403
    assert b"88,234" not in content
    assert b"edges" not in content


def test_its_own_names_are_not_refused(served: ExplorerServer) -> None:
    for name in ("127.0.0.1", "localhost"):
        assert get(served, "/api/result", Host=f"{name}:{served.server_port}")[0].status == 200
    own = f"Host: 127.0.0.1:{served.server_port}\r\n".encode()
    for hosts in (b"", own + b"Host: evil.example\r\n", own + own):
        with socket.create_connection((server.ADDRESS, served.server_port)) as raw:
            raw.sendall(b"GET / HTTP/1.0\r\n" + hosts + b"\r\n")
            assert raw.makefile("rb").readline().split()[1] == b"403"


def test_the_port_that_browsers_leave_out(facebook: Result) -> None:
    with ExplorerServer(facebook) as served:
        port, served.server_port = served.server_port, 80  # as if it were that one
        thread = threading.Thread(target=served.serve_forever)
        thread.start()
        try:
            for host, status in {
                "127.0.0.1": 200,
                "localhost:80": 200,
                "evil.example": 403,
                f"127.0.0.1:{port}": 403,
            }.items():
                connection = http.client.HTTPConnection(server.ADDRESS, port)
                connection.request("GET", "/api/result", headers={"Host": host})
                assert connection.getresponse().status == status, host
                connection.close()
        finally:
            served.shutdown()
            thread.join()


def test_a_page_of_another_site_is_refused(served: ExplorerServer) -> None:
    for site in ("cross-site", "same-site"):
        assert get(served, "/api/result", Sec_Fetch_Site=site)[0].status == 403
    for site in ("same-origin", "none"):
        assert get(served, "/api/result", Sec_Fetch_Site=site)[0].status == 200


@pytest.mark.parametrize("method", ["HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"])
def test_nothing_but_get(served: ExplorerServer, method: str) -> None:
    response, _ = send(served, method, "/api/result", {"Origin": "http://evil.example"})
    assert (response.status, response.headers["Allow"]) == (405, "GET")
    assert "Access-Control-Allow-Origin" not in response.headers


def test_headers(served: ExplorerServer) -> None:
    for path in ("/", "/explore.js", "/api/result", "/nothing"):
        headers = get(served, path, Origin="http://evil.example")[0].headers
        policy = dict(part.split(" ", 1) for part in headers["Content-Security-Policy"].split("; "))
        assert (
            policy["default-src"]
            == policy["base-uri"]
            == policy["form-action"]
            == policy["frame-ancestors"]
            == "'none'"
        )
        assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cross-Origin-Resource-Policy"] == headers["Cross-Origin-Opener-Policy"] == "same-origin"
        assert headers["Cache-Control"] == "no-store"  # another run may have the port, and the address
        assert not [name for name in headers if name.startswith("Access-Control")]
        assert "Python" not in headers["Server"]


@pytest.mark.parametrize(
    "path",
    [
        "/manifest.json",
        "/../manifest.json",
        "/vendor/../../../../manifest.py",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/vendor/%2e%2e/style.css",
        "/..%2fserver.py",
        "/server.py",
        "/static/index.html",
        "/index.html",
        "//etc/passwd",
        "/etc/passwd",
        "/vendor/",
        "/vendor",
        "//[",
        "/\\..\\server.py",
        "/%00",
        "/api/",
        "/api/result/../../manifest.json",
        "http://127.0.0.1/style.css",
        "file:///etc/passwd",
    ],
)
def test_no_path_is_a_path_of_a_file(served: ExplorerServer, path: str) -> None:
    with socket.create_connection((server.ADDRESS, served.server_port)) as raw:
        raw.sendall(f"GET {path} HTTP/1.0\r\nHost: 127.0.0.1:{served.server_port}\r\n\r\n".encode())
        with raw.makefile("rb") as answer:
            content = answer.read()
    assert content.split()[1] == b"404"
    assert content.endswith(b'{"error":"there is no such page"}')


@pytest.mark.parametrize(
    "question",
    [
        "hierarchy?component=",
        "hierarchy?component=1.5",
        "hierarchy?component=1e3",
        "hierarchy?component=99999999999999999999",
        "hierarchy?component=9223372036854775808",
        "hierarchy?component=%D9%A1",
        "hierarchy?component=1&component=2",
        "hierarchy?depth=0",
        "hierarchy?depth=25",
        "hierarchy?depth=-1",
        "hierarchy?most=201",
        "hierarchy?most=" + "1" * 5000,
        "hierarchy?most=0000000001999",
        "hierarchy?depth=00000000010",
        "hierarchy?most=%C2%B2",
        "hierarchy?more=1",
        "hierarchy?" + "&".join(f"a{n}=1" for n in range(20)),
        "vertex",
        "vertex?id=one",
        "vertex?id=",
        "vertex?id=9223372036854775808",
        "vertex?id=%FF",
        "vertex?id=" + "9" * 5000,
        "vertex?id=1;DROP",
        "dn-graphs?by=id",
        "dn-graphs?by=__class__",
        "dn-graphs?most=0",
        "drawing",
        "drawing?dn_graph=x",
        "search",
        "search?text=",
        "search?text=%20",
        "search?text=" + "x" * 201,
        "members",
        "members?dn_graph=1.5",
        "result?x=1",
    ],
)
def test_bad_questions_are_answered_with_a_sentence(served: ExplorerServer, question: str) -> None:
    response, content = get(served, f"/api/{question}")
    assert response.status == 400
    assert 0 < len(json.loads(content)["error"]) < 300


def test_what_is_not_there(served: ExplorerServer) -> None:
    assert ask(served, "hierarchy", component=-1)[0] == 404
    assert ask(served, "drawing", dn_graph=-1)[0] == 404
    assert ask(served, "drawing", dn_graph=2**63 - 1)[0] == 404
    assert ask(served, "members", dn_graph=-1)[0] == 404
    assert get(served, "/members.csv?dn_graph=-1")[0].status == 404


def test_static_files_are_those_of_the_package(served: ExplorerServer) -> None:
    on_disk = {str(path.relative_to(STATIC)) for path in STATIC.rglob("*") if path.is_file()}
    assert {name for name, _ in server._FILES.values()} == on_disk
    for path, (name, kind) in server._FILES.items():
        response, content = get(served, path)
        assert (response.status, response.headers["Content-Type"], content) == (
            200,
            kind,
            (STATIC / name).read_bytes(),
        )


def test_vendored_files_are_those_that_were_published() -> None:
    """The builds in the packages of npm, byte for byte."""
    published = {
        "sigma.min.js": "58e30383ab428f832068d9d16a5215c65ba12430d438ed091c5703f398de9e16",
        "graphology.umd.min.js": "dc337efa23903f61e064c8e7e7f93a429e6855dccfc2458802b4ed30c621c087",
    }
    for name, expected in published.items():
        assert sha256((STATIC / "vendor" / name).read_bytes()).hexdigest() == expected
    licences = (STATIC / "vendor" / "LICENSES.txt").read_text()
    assert all(name in licences for name in ("sigma 3.0.3", "graphology 0.26.0", "graphology-utils", "events"))
    assert licences.count("Permission is hereby granted") == 4


def test_our_own_files_ask_no_other_host() -> None:
    for path in STATIC.iterdir():
        if path.is_file():
            links = re.findall(r"(?:https?:)?//[\w.-]+\.\w+[^\s\"']*", path.read_text())
            assert set(links) <= {"http://www.w3.org/2000/svg"}, path


HOSTILE = ["</script><img src=x onerror=alert(1)>", "a=b&c#d", "ä \U0001f41f", "'\"\\", "x" * 300]


def test_hostile_ids_come_back_as_they_are(made: Callable[..., Result]) -> None:
    pairs = [(a, b) for a in HOSTILE for b in HOSTILE if a < b]
    with serving(made(pairs, pa.string())) as served:
        for id in HOSTILE:
            said = answer(served, "vertex", id=id)
            assert (said["id"], said["lambda"]) == (id, 3)
        said = answer(served, "drawing", dn_graph=said["dn_graph"]["id"])
        assert sorted(said["vertices"]["id"]) == sorted(HOSTILE)
        status, said = ask(served, "vertex", id="a")
        assert (status, said["next"][0]) == (404, "a=b&c#d")


@pytest.mark.parametrize("pairs", [[], [(1, 1), (2, 2)], [(1, 2), (2, 3)]])
def test_results_without_dense_groups_are_shown_empty(
    made: Callable[..., Result], pairs: list[tuple[int, int]]
) -> None:
    with serving(made(pairs)) as served:
        assert answer(served, "dn-graphs") == {"count": 0, "largest": []}
        assert answer(served, "hierarchy")["node"]["children"]["count"] == len({b for a, b in pairs if a != b} and [1])
        if pairs:
            said = answer(served, "vertex", id=1)
            assert (said["dn_graph"], len(said["groups"])) == (None, int(pairs[0] == (1, 2)))


def test_an_object_store(facebook: Result) -> None:
    store = fsspec.filesystem("memory")
    store.put(str(facebook.path), "/explored/out", recursive=True)
    try:
        with serving(Result("memory://explored/out")) as served:
            assert answer(served, "result")["name"] == "out"
            (best, *_) = answer(served, "dn-graphs")["largest"]
            assert answer(served, "drawing", dn_graph=best["id"])["members"] == best["vertices"]
            del best["members"]
            assert answer(served, "vertex", id=1912)["dn_graph"] == best
            assert answer(served, "hierarchy", depth=3)["node"]["children"]["count"] == 1
        with serving(Result("memory://explored/out")) as served:
            store.rm("/explored/out/vertices", recursive=True)
            status, said = ask(served, "vertex", id=1912)
            assert (status, said["error"].partition(":")[0]) == (500, "cannot read memory")
            store.rm("/explored/out/manifest.json")
            assert ask(served, "vertex", id=1912)[0] == 409
    finally:
        store.rm("/explored", recursive=True)


@pytest.mark.parametrize(
    ("changes", "why"),
    [({}, "was made by an earlier release: run again"), ({"converged": False, "unsettled": 2}, "did not converge")],
)
def test_results_without_the_tables_are_refused(
    tmp_path: Path, write_result: WriteResult, changes: dict[str, Any], why: str
) -> None:
    write_result(tmp_path / "out", **changes)
    ended = CliRunner().invoke(edgemill, ["explore", str(tmp_path / "out")])
    assert ended.exit_code == 2
    assert ended.stderr == f"Error: {tmp_path}/out has no table hierarchy, as the run {why}\n"
    assert not ended.stdout


def test_a_port_that_is_taken_is_refused(facebook: Result, served: ExplorerServer) -> None:
    with pytest.raises(UsageError, match=f"port {served.server_port} cannot be had"):
        ExplorerServer(facebook, served.server_port)
    ended = CliRunner().invoke(edgemill, ["explore", str(facebook.path), "--port", "70000"])
    assert ended.exit_code == 2


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 128 + signal.SIGTERM)])
def test_the_command_serves_until_it_is_told_to_end(facebook: Result, number: signal.Signals, code: int) -> None:
    command = [sys.executable, "-m", "edgemill.pipeline", "explore", str(facebook.path)]
    # A shell that started these tests in the background has them, and their children, ignore Ctrl-C.
    command = ["env", "--default-signal=INT", *command]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            found = re.fullmatch(
                rf"{re.escape(str(facebook.path))} is at (http://127\.0\.0\.1:\d+/) until Ctrl-C\n", said
            )
            assert found, said
            with urllib.request.urlopen(found[1]) as page:
                assert b"<title>edgemill explorer</title>" in page.read()
            with urllib.request.urlopen(f"{found[1]}api/vertex?id={quote('12')}") as page:
                assert json.load(page)["id"] == "12"
        finally:
            process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (code, "")
    assert err == ("" if code == 0 else "Error: terminated\n")
