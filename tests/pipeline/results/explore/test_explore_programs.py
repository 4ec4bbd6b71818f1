"""The explorer's answers about groups of programs: communities and groups of cores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest

import runs
from edgemill.pipeline import Result, edges_of, group_at, groups_of, member_ids, top
from edgemill.pipeline.explorer import api, drawing, tree
from edgemill.pipeline.explorer.server import ExplorerServer
from edgemill.pipeline.queries.groups import find_group
from edgemill.pipeline.results.lookup import Group
from serving import answer, ask, get, serving

PROGRAMS = ("leiden", "core_groups")


@pytest.fixture(scope="module")
def communities(with_programs: Result) -> Iterator[ExplorerServer]:
    with serving(with_programs) as served:
        yield served


def rows(result: Result, program: str) -> dict[int, dict[str, Any]]:
    return {row["id"]: row for row in result.table(result.groups_table(program)).to_table().to_pylist()}


def edges(result: Result, group: Group) -> dict[frozenset[str], int]:
    found = edges_of(result, group).read_all().to_pydict()
    ends = zip(found["src"], found["dst"], strict=True)
    return dict(zip((frozenset(map(str, pair)) for pair in ends), found["lambda"], strict=True))


def drawn(said: dict[str, Any]) -> list[tuple[frozenset[str], int]]:
    """Drawn edges by their ids, with λ."""
    ids, own = said["vertices"]["id"], said["edges"]
    pairs = [frozenset((ids[s], ids[t])) for s, t in zip(own["source"], own["target"], strict=True)]
    return list(zip(pairs, own["lambda"], strict=True))


def test_the_kinds_of_groups(communities: ExplorerServer, served: ExplorerServer, with_programs: Result) -> None:
    said = answer(communities, "result")
    assert (said["kinds"], said["groups"]) == (["lambda", *PROGRAMS], 7)
    said = answer(communities, "result", groups="leiden")
    listed = len(top(with_programs, groups="leiden", count=50))
    assert (said["groups"], said["components"]) == (listed, len(rows(with_programs, "leiden")))
    assert said["orders"] == ["vertices", "edges", "density"]
    assert answer(served, "result")["kinds"] == ["lambda"]
    for question in ("result", "largest", "hierarchy"):
        assert ask(served, question, groups="leiden") == (400, {"error": "groups is one of lambda"})
    assert ask(communities, "largest", groups="labels")[1]["error"] == "groups is one of lambda, leiden, core_groups"
    assert ask(communities, "largest", groups="leiden", by="lambda")[0] == 400


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize(("by", "order"), [("vertices", "size"), ("density", "density")])
def test_the_largest(communities: ExplorerServer, with_programs: Result, program: str, by: str, order: str) -> None:
    expected = top(with_programs, order, 4, program).to_pylist()
    said = answer(communities, "largest", groups=program, by=by, most=4)
    assert [(int(own["component"]), own["k"]) for own in said["largest"]] == [(row["id"], row["k"]) for row in expected]
    for own, row in zip(said["largest"], expected, strict=True):
        assert (own["vertices"], own["edges"], own["triangles"]) == (row["vertices"], row["edges"], None)
        assert own["density"] == pytest.approx(row["density"])
        members = member_ids(with_programs, find_group(with_programs, row["id"], program)).to_pylist()
        assert own["members"] == {"ids": list(map(str, members[:6])), "labels": [None] * 6}
    every = answer(communities, "largest", groups=program, by="edges")["largest"]
    assert [own["edges"] for own in every] == sorted((own["edges"] for own in every), reverse=True)


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_group_is_in_the_hierarchy_once(
    communities: ExplorerServer, with_programs: Result, program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree, "_EXPANDED", 10**6)
    known = rows(with_programs, program)
    parents = [row["parent"] for row in known.values()]
    seen: list[int] = []

    def walk(node: dict[str, Any]) -> None:
        if node["component"] is not None:
            outer, at = int(node["component"]), int(node.get("to", node)["component"])
            assert node["edges"] == known[outer]["edges"]
            while at != outer:
                seen.append(at)
                at = known[at]["parent"]
            seen.append(outer)
        for child in node["children"]["largest"]:
            walk(child)

    walk(answer(communities, "hierarchy", groups=program, depth=24, most=200)["node"])
    assert sorted(seen) == sorted(known)
    inner = max(known.values(), key=lambda row: row["k"])
    said = answer(communities, "hierarchy", groups=program, component=inner["id"])
    above, at = [], inner["parent"]
    while at is not None:
        if known[at]["parent"] is None or parents.count(known[at]["parent"]) > 1:
            above.append(str(at))
        at = known[at]["parent"]
    assert [step["component"] for step in said["path"]] == above[::-1]


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_drawing_is_the_group_and_its_neighbours(
    communities: ExplorerServer, with_programs: Result, program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Groups of the list and a group around one."""
    for name in ("MOST_NEIGHBOURS", "MOST_TIES"):
        monkeypatch.setattr(drawing, name, 10**6)
    lam = {frozenset(map(str, pair)): value for pair, value in runs.column(with_programs, "lambda").items()}
    listed = top(with_programs, "size", 3, program)["id"].to_pylist()
    around = rows(with_programs, program)[listed[-1]]["parent"]
    for group in (find_group(with_programs, id, program) for id in {*listed, around}):
        if group.vertices > drawing.MOST_VERTICES or group.edges > drawing.MOST_EDGES:
            continue
        members = {str(id) for id in member_ids(with_programs, group).to_pylist()}
        said = answer(communities, "drawing", groups=program, group=group.component)
        found, own = drawn(said), said["own_edges"]
        assert set(said["vertices"]["id"][: said["members"]]) == members
        assert dict(found[:own]) == edges(with_programs, group) and own == group.edges
        assert dict(found[own:]) == {pair: value for pair, value in lam.items() if len(pair & members) == 1}
        assert (said["group"]["component"], said["notices"]) == (str(group.component), [])
        highest = {id: max(value for pair, value in found[:own] if id in pair) for id in members}
        assert dict(zip(said["vertices"]["id"], said["vertices"]["lambda"], strict=True)).items() >= highest.items()


def test_members_that_are_not_drawn_are_no_neighbours(
    communities: ExplorerServer, with_programs: Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawing, "MOST_VERTICES", 40)
    monkeypatch.setattr(drawing, "MOST_MEMBERS", 300)
    (row,) = top(with_programs, "size", 1, "leiden").to_pylist()
    members = list(map(str, member_ids(with_programs, find_group(with_programs, row["id"], "leiden")).to_pylist()))
    said = answer(communities, "drawing", groups="leiden", group=row["id"])
    assert said["members"] == 40
    assert {*said["vertices"]["id"][:40]} <= {*members[:300]}
    assert not {*said["vertices"]["id"][40:]} & {*members}
    assert "548 vertices are too many for one drawing" in said["notices"][0]


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_vertex_and_its_groups(communities: ExplorerServer, with_programs: Result, program: str) -> None:
    listed = {row["id"] for row in top(with_programs, None, 10**6, program).to_pylist()}
    none = 0
    for vertex in with_programs.vertices.to_table()["id"].to_pylist()[::150]:
        said = answer(communities, "vertex", groups=program, id=vertex)
        around = groups_of(with_programs, vertex, groups=program)
        assert [int(group["component"]) for group in said["groups"]] == [group.component for group in around]
        of_list = [group.component for group in around if group.component in listed]
        assert ([int(said["listed"]["component"])] if said["listed"] else []) == of_list
        none += not of_list
    assert (none > 0) == (program == "core_groups")  # communities cover all vertices


def test_the_group_of_several_vertices(communities: ExplorerServer, with_programs: Result) -> None:
    for program in PROGRAMS:
        for ids in ([1912, 107], [1912, 2206, 3437], [0, 1]):
            said = answer(communities, "search", groups=program, text=", ".join(map(str, ids)))
            first = groups_of(with_programs, ids, 1, program)[0]
            assert (said["group"]["component"], said["group"]["k"]) == (str(first.component), first.k)
            assert not said["group"]["dn_graph"]
    lam = answer(communities, "search", text="1912, 107")["group"]
    cores = answer(communities, "search", text="1912, 107", groups="core_groups")["group"]
    assert (lam["k"], cores["k"]) == (11, 70)


def test_members_to_copy_and_as_a_file(
    communities: ExplorerServer, with_programs: Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = group_at(with_programs, 107, 1, "leiden")
    assert group is not None
    expected = member_ids(with_programs, group).to_pylist()
    said = answer(communities, "members", groups="leiden", group=group.component)
    assert (said["count"], said["ids"]) == (len(expected), list(map(str, expected)))
    where = f"/members.csv?groups=leiden&group={group.component}"
    table = pyarrow.csv.read_csv(pa.py_buffer(get(communities, where)[1]))
    assert sorted(table["id"].to_pylist()) == expected
    assert sum(table["degree_inside"].to_pylist()) == 2 * group.edges
    monkeypatch.setattr(api, "MOST_MEMBERS", 10)
    response, content = get(communities, where)
    assert (response.status, f"{group.component} --groups leiden --output FILE" in content.decode()) == (400, True)
    assert ask(communities, "members", groups="leiden", group=-1) == (404, {"error": "there is no such group"})
