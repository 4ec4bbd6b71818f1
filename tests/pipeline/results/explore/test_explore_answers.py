"""The answers of the explorer's server."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.csv
import pytest

from edgemill.pipeline import Result
from edgemill.pipeline.explorer import api, queries
from edgemill.pipeline.explorer.server import ExplorerServer
from made import made as made_of
from serving import answer, ask, get, serving


def rows(table: Any) -> list[dict[str, Any]]:
    return list(table.to_table().to_pylist())


def test_the_page_names_the_result(served: ExplorerServer, facebook: Result) -> None:
    said = answer(served, "result")
    assert facebook.manifest.dense is not None
    assert (said["name"], said["edges"], said["lambda"], said["id_type"]) == ("out", 88_234, 95, "int64")
    assert (said["groups"], said["components"]) == (7, len(rows(facebook.hierarchy)))


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
            assert children[0]["children"]["count"] == 0  # chains without a split are one node
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
        inner = said["listed"] and int(said["listed"]["component"])
        assert inner == (row["component"] if row["component"] in groups else None)


def test_groups_beyond_the_limit_are_counted(served: ExplorerServer, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = answer(served, "vertex", id=1912)
    assert (len(whole["groups"]), whole["larger"]) == (96, 0)
    monkeypatch.setattr(api, "_MOST_PATH", 90)
    said = answer(served, "vertex", id=1912)
    assert (said["groups"], said["larger"]) == (whole["groups"][:90], 6)
    path = answer(served, "hierarchy", component=whole["groups"][0]["component"])["path"]
    monkeypatch.setattr(api, "_MOST_PATH", 3)
    assert answer(served, "hierarchy", component=whole["groups"][0]["component"])["path"] == path[-3:] != path


def test_an_unknown_vertex_has_ids_that_follow(served: ExplorerServer) -> None:
    assert ask(served, "vertex", id=" 17 ")[0] == 200
    status, said = ask(served, "vertex", id=-5)
    assert (status, said["next"]) == (404, ["0", "1", "2", "3", "4"])
    status, said = ask(served, "vertex", id=4039)
    assert (status, said["next"]) == (404, []) and said["error"].endswith("no vertex 4039")


@pytest.mark.parametrize("by", ["lambda", "vertices", "edges", "density", "triangles"])
def test_the_largest_dn_graphs(served: ExplorerServer, facebook: Result, by: str) -> None:
    expected = rows(facebook.dn_graphs)
    expected.sort(key=lambda row: (-row[by], -row["lambda"], -row["vertices"], -row["edges"], row["id"]))
    said = answer(served, "largest", by=by, most=4)
    assert said["count"] == 7
    assert [group["component"] for group in said["largest"]] == [str(row["id"]) for row in expected[:4]]
    assert said["largest"][0]["k" if by == "lambda" else by] == expected[0][by]


def test_the_list_has_some_members_of_each(served: ExplorerServer, facebook: Result) -> None:
    of: dict[str, set[str]] = {}
    for row in rows(facebook.dn_graph_members):
        of.setdefault(str(row["dn_graph"]), set()).add(str(row["vertex"]))
    for group in answer(served, "largest")["largest"]:
        some = group["members"]
        assert len(some["ids"]) == len(set(some["ids"])) == 6
        assert {*some["ids"]} < of[group["component"]]
        assert some["labels"] == [None] * 6


def test_members_to_copy_and_as_a_file(
    served: ExplorerServer, facebook: Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    best = answer(served, "largest")["largest"][0]["component"]
    expected = sorted(row["vertex"] for row in rows(facebook.dn_graph_members) if row["dn_graph"] == int(best))
    said = answer(served, "members", group=best)
    assert (said["count"], said["ids"]) == (139, [str(id) for id in expected])
    response, content = get(served, f"/members.csv?group={best}")
    assert (response.status, response.headers["Content-Type"]) == (200, "text/csv; charset=utf-8")
    assert response.headers["Content-Disposition"] == f'attachment; filename="members-{best}.csv"'
    table = pyarrow.csv.read_csv(pa.py_buffer(content))
    assert sorted(table["id"].to_pylist()) == expected
    assert sum(table["degree_inside"].to_pylist()) == 2 * 8987
    monkeypatch.setattr(api, "MOST_MEMBERS", 138)
    response, content = get(served, f"/members.csv?group={best}")
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
    """Whole names first, then names that begin with the text; case is ignored."""
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
    assert (status, said["next"]) == (404, []) and re.match("no vertex .*'zzz'.* id or label", said["error"])
    status, said = ask(named, "search", text="-7")
    assert (status, said["next"]) == (404, ["1", "2", "3", "4", "15"])
    monkeypatch.setattr(queries, "MOST_MATCHES", 2)
    found = answer(named, "search", text="e")
    assert (len(found["found"]), found["more"]) == (2, True)
    monkeypatch.undo()
    monkeypatch.setattr(queries, "MOST_ROWS", 2)
    assert ask(named, "search", text="chen")[0] == 404  # the row is beyond the limit of the search
    assert answer(named, "search", text="15")["found"][0]["id"] == "15"  # a whole id is looked up


def test_the_group_of_several_ids(named: ExplorerServer) -> None:
    """Ids with commas between them; each once, and only if all are vertices."""
    together = answer(named, "search", text=" 3, 1,3 ")
    assert [(one["id"], one["label"], one["whole"]) for one in together["found"]] == [
        ("3", "Berg", True),
        ("1", "Ada Berg", True),
    ]
    (dense,) = answer(named, "largest")["largest"]
    assert (together["group"]["component"], together["group"]["dn_graph"]) == (dense["component"], True)
    whole = answer(named, "search", text="1,15")["group"]
    assert (whole["k"], whole["vertices"], whole["dn_graph"]) == (0, 5, False)
    for text in ("1,", "1,99", "1,zzz", "3,3"):
        assert ask(named, "search", text=text)[0] == 404


def test_labels_are_shown(named: ExplorerServer) -> None:
    assert answer(named, "result")["labelled"] is True
    (group,) = answer(named, "largest")["largest"]
    assert group["members"]["labels"] == ["Ada Berg", "Bela Bergmann", "Berg", "Chen"]
    vertices = answer(named, "drawing", group=group["component"])["vertices"]
    assert dict(zip(vertices["id"], vertices["label"], strict=True)) == {str(id): name for id, name in NAMES.items()}
    assert answer(named, "vertex", id=3)["label"] == "Berg"
    lines = get(named, f"/members.csv?group={group['component']}")[1].decode().splitlines()
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
        (group,) = answer(served, "largest")["largest"]
        assert group["members"]["ids"] == [str(id) for id in ids]
