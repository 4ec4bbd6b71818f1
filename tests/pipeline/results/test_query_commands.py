"""The commands top, of and subgraph: their output, usage errors and exit codes."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgemill.pipeline import (
    Result,
    UsageError,
    edges_of,
    find_dn_graph,
    groups_of,
    top,
)
from edgemill.tasks.storage.folders import Folder
from in_process import call
from made import made


def test_the_commands_print(many: Result) -> None:
    out = str(many.path)
    rows = top(many, "size", 3).to_pylist()
    ended = call("top", out, "--by", "size", "-n", "3", "--json")
    assert [json.loads(line) for line in ended.stdout.splitlines()] == rows
    lines = call("top", out, "--by", "size", "-n", "3").stdout.splitlines()
    assert lines[0].split() == ["DN-graph", "lambda", "vertices", "edges", "density", "triangles", "parent", "members"]
    assert [int(line.split()[0]) for line in lines[1:]] == [row["id"] for row in rows]
    assert len(call("top", out).stdout.splitlines()) == 21

    (group,) = groups_of(many, 30)
    ended = call("of", out, "30", "--json")
    assert [json.loads(line) for line in ended.stdout.splitlines()] == [vars(group)]
    assert call("of", out, "30").stdout.splitlines()[0] == "vertex 30: lambda 4, degree 5, 7 triangles"
    assert "DN-graph" in call("of", out, "30", "-n", "1").stdout


def test_groups_of_several_vertices(tmp_path: Path) -> None:
    """Two cliques that share a vertex, an edge apart from them, and a vertex without edges."""
    dense, other = ({*itertools.combinations(vertices, 2)} for vertices in (range(5), range(4, 8)))
    result = made(tmp_path / "out", dict.fromkeys(dense, 3) | dict.fromkeys(other, 2) | {(8, 9): 0}, alone=[77])
    out = str(result.path)
    inner, middle = groups_of(result, 0)
    assert groups_of(result, [0, 3]) == [inner, middle] and groups_of(result, [0, 7]) == [middle]
    lines = call("of", out, "0", "7").stdout.splitlines()
    assert [line.split(":")[0] for line in lines[:2]] == ["vertex 0", "vertex 7"]
    assert [line.split()[0] for line in lines[2:]] == ["component", str(middle.component)]
    assert [json.loads(line) for line in call("of", out, "7", "0", "-n", "1", "--json").stdout.splitlines()] == [
        vars(middle)
    ]
    for arguments, facts in {
        ("0", "8"): ("No group", "no path"),
        ("0", "7", "--level", "3"): ("No group", "level 3"),
        ("0", "77"): ("Vertex 77", "no edges"),
    }.items():
        ended = call("of", out, *arguments)
        assert ended.exit_code == 0 and all(fact in ended.stdout.splitlines()[-1] for fact in facts)
        assert call("of", out, *arguments, "--json").stdout == ""
    with pytest.raises(UsageError, match="no vertex"):
        groups_of(result, [])


def test_odd_ids_on_a_terminal(odd: Result) -> None:
    lines = call("of", str(odd.path), "line\nbreak").stdout.splitlines()
    assert lines[0] == "vertex line\\x0abreak: lambda 7, degree 8, 7 triangles"
    assert [line.split()[5:] for line in lines[2:]] == [["DN-graph"], ["connected", "component"]]


def test_a_vertex_without_edges_and_a_negative_one(tmp_path: Path) -> None:
    result = made(tmp_path / "out", {(-7, -3): 0}, alone=[-9])
    assert call("of", str(result.path), "-7").stdout.splitlines()[0].startswith("vertex -7: lambda 0")
    assert groups_of(result, -9) == []
    assert re.search("no edges, .*in no group", call("of", str(result.path), "-9").stdout)
    assert top(result).num_rows == 0
    assert call("top", str(result.path), "--json").stdout == ""


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["of", "OUT", "1000"], "there is no vertex 1000 in OUT"),
        (["of", "OUT", "anna"], "'anna' is not an id of OUT: its ids are int64"),
        (["of", "OUT", "1_0"], "'1_0' is not an id of OUT: its ids are int64"),
        (["of", "OUT", str(2**70)], "is not an id of OUT"),
        (["of", "OUT", "1e9999"], "'1e9999' is not an id of OUT"),
        (["of", "OUT", "9" * 100_000], "9' is not an id of OUT"),
        (["of", "OUT"], "Missing argument 'VERTEX...'"),
        (["of", "absent", "1"], "there is no result at absent"),
        (["top", "OUT", "-n", "0"], "0 is not in the range"),
        (["top", "OUT", "--by", "colour"], "ordered by lambda, size, density, not by 'colour'"),
        (["subgraph", "OUT", "--dn-graph", "6"], "there is no DN-graph 6 in OUT: edgemill top lists some"),
        (["subgraph", "OUT", "--dn-graph", str(2**70)], "there is no DN-graph"),
        (["subgraph", "OUT", "--component", "6"], "there is no component 6 in OUT"),
        (["subgraph", "OUT"], "name one group: --dn-graph ID, --component ID or --track N"),
        (["subgraph", "OUT", "--component", "5", "--dn-graph", "5"], "name one group"),
    ],
)
def test_usage_errors_exit_2(many: Result, arguments: list[str], text: str) -> None:
    out = str(many.path)
    ended = call(*(out if word == "OUT" else word for word in arguments))
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert text.replace("OUT", out) in ended.stderr


def test_usage_errors_in_python(many: Result, odd: Result) -> None:
    with pytest.raises(UsageError, match=r"ordered.*'id'"):
        top(many, "id")
    with pytest.raises(UsageError, match=r"count.*1.*0"):
        top(many, count=0)
    with pytest.raises(UsageError, match=r"^5 .*not an id .*string"):
        groups_of(odd, 5)
    with pytest.raises(UsageError, match=r"3\.5.*int64"):
        groups_of(many, 3.5)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"a number of [\d,]+ bits .*not an id .*int64"):
        groups_of(many, 10**5000)
    with pytest.raises(UsageError, match=r"no vertex 'x+\.\.\.x+' in"):
        groups_of(odd, "x" * 100_000)
    assert groups_of(many, np.int64(30)) == groups_of(many, 30) == groups_of(many, "30")
    with pytest.raises(UsageError, match=r"component that contains others"):
        find_dn_graph(odd, groups_of(odd, "z,2")[0].component)


@pytest.mark.parametrize(
    "command", [["top"], ["of", "1"], ["subgraph", "--dn-graph", "5"], ["subgraph", "--component", "5"]]
)
@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"dense": False}, "was made by an earlier release: run again"),
        ({"dense": False, "converged": False}, "did not converge"),
    ],
)
def test_results_without_dense_groups(tmp_path: Path, command: list[str], how: dict[str, Any], why: str) -> None:
    made(tmp_path / "out", {(1, 2): 0}, **how)
    ended = call(command[0], str(tmp_path / "out"), *command[1:])
    assert ended.exit_code == 2
    assert str(tmp_path / "out") in ended.stderr
    assert why in ended.stderr


def test_in_an_object_store(many: Result) -> None:
    place = Folder("memory://asking/many")
    place.files.put(str(many.path), place.path(), recursive=True)
    try:
        result = Result(place.url)
        assert top(result) == top(many)
        assert groups_of(result, 30) == groups_of(many, 30)
        (group,) = groups_of(many, 30)
        assert edges_of(result, group).read_all() == edges_of(many, group).read_all()
        assert call("of", place.url, "30").stdout == call("of", str(many.path), "30").stdout
    finally:
        place.remove("")
