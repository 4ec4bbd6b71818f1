"""Members of a group: every answer against plain Python, and the output of the commands."""

from __future__ import annotations

import csv
import io
import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Any

import networkx as nx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import Result as Ended
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
import strategies
from drawn_results import drawn_result
from edgemill.pipeline import Group, InputError, Result, UsageError, group_at, groups_of, members_of, top
from examples import examples
from in_process import call
from made import Edge, made

OWN = ["id", "degree_inside", "degree", "triangles", "lambda"]


def objects(ended: Ended) -> list[dict[str, Any]]:
    assert ended.exit_code == 0, ended.output
    return [json.loads(line) for line in ended.stdout.splitlines()]


@given(rows=strategies.edge_lists(12), data=st.data())
@settings(max_examples=examples(20, 5))
def test_every_member(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, int]], data: st.DataObject
) -> None:
    """Drawn values of λ, ids, sizes of files and row groups, and levels."""
    naming, levels, result = drawn_result(tmp_path_factory.mktemp("made") / "out", rows, data, 12, 4)
    known = oracles.networkx_hierarchy(levels)
    ids: dict[frozenset[Edge], Group] = {}
    for vertex in naming.names:
        own = {group.k: group for group in groups_of(result, vertex)}
        for component in known.values():
            if vertex in component.vertices:
                ids[component.edges] = own[component.k]
        for level in range(6):
            at_level = nx.Graph(edge for edge, lam in levels.items() if lam >= level)
            found = group_at(result, vertex, level)
            if vertex not in at_level:
                assert found is None
                continue
            inside = at_level.subgraph(nx.node_connected_component(at_level, vertex))
            assert found is not None
            assert found.k >= level
            assert (found.vertices, found.edges) == (inside.number_of_nodes(), inside.number_of_edges())
            assert members_of(result, found)["id"].to_pylist() == sorted(
                inside, key=lambda vertex: (-inside.degree(vertex), vertex)
            )
    degree = Counter(itertools.chain.from_iterable(levels))
    highest = oracles.vertex_lambda(levels)
    for component in known.values():
        inside_of = Counter(itertools.chain.from_iterable(component.edges))
        rows_wanted = [
            {"id": v, "degree_inside": inside_of[v], "degree": degree[v], "triangles": 7, "lambda": highest[v]}
            for v in sorted(component.vertices, key=lambda v: (-inside_of[v], v))
        ]
        group = ids[component.edges]
        assert members_of(result, group).to_pylist() == rows_wanted
        assert members_of(result, group, 2).to_pylist() == rows_wanted[:2]
    for row in (top(result) if known else pa.table({})).to_pylist():
        with pytest.raises(UsageError, match=r"limit .*at least 1, got 0"):
            members_of(result, ids[next(e for e, own in ids.items() if own.component == row["id"])], 0)


NAMES = {1: "Ann", 2: "Bob, the 2nd", 3: None, 4: 'Di "D"', 5: "Eve\x1b[2J"}
JOINED = {1: 2.5, 2: float("nan"), 5: None}


@pytest.fixture
def people(tmp_path: Path) -> Result:
    """Two cliques that share a vertex; the larger is denser, and its vertices have attributes."""
    levels: dict[Edge, int] = dict.fromkeys(itertools.combinations(range(1, 6), 2), 3)
    levels |= dict.fromkeys(itertools.combinations((5, 6, 7), 2), 1)
    return made(
        tmp_path / "out",
        levels,
        attributes={"name": (pa.string(), NAMES), "score": (pa.float64(), JOINED)},
        label="name",
        first_id=20,
    )


def test_members_with_attributes(people: Result, tmp_path: Path) -> None:
    """The shared vertex has the most edges in the component around both."""
    (dense, around) = groups_of(people, 5)
    out, ids = str(people.path), [str(dense.component), str(around.component)]
    table = members_of(people, around)
    assert table.column_names == [*OWN, "name", "score"]
    assert table["id"].to_pylist() == [5, 1, 2, 3, 4, 6, 7]
    assert table["degree_inside"].to_pylist() == [6, 4, 4, 4, 4, 2, 2]
    assert table["name"].to_pylist() == [NAMES.get(id) for id in table["id"].to_pylist()]
    rows = objects(call("members", out, ids[0], "--json"))
    assert [(row["id"], row["name"], row["score"]) for row in rows] == [
        (1, "Ann", 2.5),
        (2, "Bob, the 2nd", None),  # JSON has no NaN
        (3, None, None),
        (4, 'Di "D"', None),
        (5, NAMES[5], None),
    ]
    assert objects(call("members", out, ids[0], "--json", "--limit", "2")) == rows[:2]
    lines = call("members", out, ids[0]).stdout.splitlines()
    assert lines[0].split() == ["vertex", "name", "score", "edges", "inside", "edges", "triangles", "lambda"]
    assert lines[1].split() == ["1", "Ann", "2.5", "4", "4", "7", "3"]
    assert lines[5].split()[:2] == ["5", "Eve\\x1b[2J"]
    files = tmp_path / "members.parquet", tmp_path / "members.csv"
    for file in files:
        assert call("members", out, ids[1], "--output", str(file)).output == ""
    assert pq.read_table(files[0]).drop(["score"]) == table.drop(["score"])
    written = list(csv.DictReader(io.StringIO(files[1].read_bytes().decode(), newline="")))
    assert [row["name"] for row in written] == [NAMES.get(id) or "" for id in table["id"].to_pylist()]
    ended = call("members", out, ids[1], "--output", str(files[0]))
    assert (ended.exit_code, "exists: choose another" in ended.output) == (2, True)
    assert call("members", out, ids[1], "--output", str(files[0]), "--overwrite", "--limit", "1").exit_code == 0
    assert pq.read_table(files[0]).num_rows == 1


def test_top_with_members(people: Result) -> None:
    out = str(people.path)
    lines = call("top", out).stdout.splitlines()
    assert lines[0].split()[-1] == "members"
    assert lines[1].endswith("Ann, Bob, the 2nd, 3, …")
    assert call("top", out, "--members").stdout.splitlines()[1].endswith('3, Di "D", Eve\\x1b[2J')
    assert call("top", out, "--members", "1").stdout.splitlines()[1].rstrip().endswith(" Ann, …")
    assert call("top", out, "--members", "0").stdout.splitlines()[0].split()[-1] == "parent"
    (plain,) = objects(call("top", out, "--json"))
    (row,) = objects(call("top", out, "--json", "--members"))
    assert row == {**plain, "members": [1, 2, 3, 4, 5], "labels": [NAMES[id] for id in range(1, 6)]}
    (row,) = objects(call("top", out, "--json", "--members", "2"))
    assert row == {**plain, "members": [1, 2], "labels": ["Ann", "Bob, the 2nd"]}


def test_many_members_on_a_terminal(tmp_path: Path) -> None:
    """Ids are printed without separators. Standard error says how many are left out."""
    ids = [10**12 + number for number in range(25)]
    result = made(tmp_path / "out", dict.fromkeys(itertools.combinations(ids, 2), 23), first_id=7)
    ended = call("members", str(result.path), "7")
    assert [line.split()[0] for line in ended.stdout.splitlines()] == ["vertex", *map(str, ids[:20])]
    assert all(fact in ended.stderr for fact in ("20 of 25 members", "--limit 25"))
    ended = call("members", str(result.path), "7", "--limit", "25")
    assert (len(ended.stdout.splitlines()), ended.stderr) == (26, "")
    assert len(objects(call("members", str(result.path), "7", "--json"))) == 25


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["members", "OUT", "6"], "there is no component 6 in "),
        (["members", "OUT", "anna"], "'anna' is not a valid integer"),
        (["members", "OUT", "20", "--limit", "0"], "0 is not in the range"),
        (["members", "OUT", "20", "--format", "csv"], "--format and --overwrite need --output FILE"),
        (["members", "OUT", "20", "--output", "x.graphml"], "members are a table: write .parquet or .csv"),
        (["members", "OUT", "20", "--output", "x.csv", "--json"], "--json prints to standard output"),
        (["of", "OUT", "5", "--level", "1", "-n", "2"], "--level selects one group: leave out --count"),
        (["of", "OUT", "5", "--level", "-1"], "-1 is not in the range"),
        (["top", "OUT", "--members", "9" * 5_000], "is not a number; write --members after OUT"),
        (["top", "--members", "OUT"], "'OUT' is not a number; write --members after OUT"),
    ],
)
def test_usage_errors(people: Result, arguments: list[str], text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(people.path.parent)
    (people.path.parent / "OUT").symlink_to(people.path)
    ended = call(*arguments)
    assert ended.exit_code == 2
    assert text in ended.output.replace("\n", " ")
    assert not list(people.path.parent.glob("x.*"))


def test_a_group_at_a_level(people: Result) -> None:
    out = str(people.path)
    dense, around = groups_of(people, 5)
    assert objects(call("of", out, "5", "--level", "3", "--json")) == [vars(dense)]
    assert objects(call("of", out, "5", "--level", "2", "--json")) == [vars(dense)]
    assert objects(call("of", out, "5", "--level", "0", "--json")) == [vars(around)]
    lines = call("of", out, "4", "--level", "1").stdout.splitlines()
    assert lines[0].startswith('vertex 4 (Di "D"): lambda 3')
    assert [line.split()[0] for line in lines[1:]] == ["component", str(around.component)]
    last = call("of", out, "6", "--level", "2").stdout.splitlines()[-1]
    assert all(fact in last for fact in ("no group", "level 2", "lambda is 1"))
    assert objects(call("of", out, "6", "--level", "2", "--json")) == []
    with pytest.raises(UsageError, match=r"level .*at least 0, got -1"):
        group_at(people, 5, -1)


def test_damaged_tables_of_members(people: Result) -> None:
    """A member that is missing in the table of vertices, and an edge that leaves the group."""
    group = groups_of(people, 1)[0]

    def other_end(rows: pa.Table) -> pa.Table:
        return rows.set_column(1, "dst", pa.array([9, *rows["dst"].to_pylist()[1:]]))

    def without_two(rows: pa.Table) -> pa.Table:
        return rows.slice(2)

    for table, change in (("vertices", without_two), ("edges", other_end)):
        path = next((people.path / table).iterdir())
        whole = path.read_bytes()
        pq.write_table(change(pq.read_table(path)), path)
        damaged = Result.unpublished(people.place, people.manifest)
        with pytest.raises(InputError, match=r"damaged: .*not (in the table of vertices|a member of it)"):
            members_of(damaged, group)
        path.write_bytes(whole)
