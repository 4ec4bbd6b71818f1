"""Changes between two results, against plain Python; results that cannot be compared; files after errors."""

from __future__ import annotations

import io
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from distributed import Client
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from rich.table import Table

import fates
import oracles
import runs
import strategies
from edgemill.pipeline import Diff, InputError, Result, UsageError, diff, mine
from edgemill.pipeline.cli.show import changes_table
from edgemill.pipeline.compare import dn_graphs
from edgemill.pipeline.compare import edges as edge_changes
from edgemill.pipeline.compare.diff import RowChanges
from edgemill.pipeline.compare.edges import aligned_blocks
from edgemill.pipeline.messages.terminal import print_whole
from edgemill.pipeline.queries.group_tables import dn_graphs_table
from edgemill.tasks.storage.folders import Folder
from edgemill.tasks.tracks import Fates
from examples import examples
from in_process import call
from made import Edge, made

Levels = dict[Edge, int]


def clique(*members: Any) -> list[Edge]:
    return list(itertools.combinations(sorted(members), 2))


def change_of(old: int | None, new: int | None) -> str:
    if old is None or new is None:
        return "appeared" if old is None else "vanished"
    return "rose" if new > old else "fell" if new < old else "unchanged"


def tallied(names: list[str], old: int, new: int, reshaped: int | None = None) -> RowChanges:
    counts = {name: names.count(name) for name in ("unchanged", "appeared", "vanished", "rose", "fell")}
    return RowChanges(old, new, **counts, reshaped=reshaped)


def naive_edges(old: Levels, new: Levels) -> tuple[RowChanges, list[tuple[Any, ...]]]:
    rows = [
        (*edge, change_of(old.get(edge), new.get(edge)), old.get(edge), new.get(edge)) for edge in sorted(old | new)
    ]
    changes = tallied([str(row[2]) for row in rows], len(old), len(new))
    return changes, [row for row in rows if row[2] != "unchanged"]


Graph = tuple[int, frozenset[Edge]]


def naive_dn_graphs(old: Levels, new: Levels) -> tuple[RowChanges, set[tuple[Any, ...]]]:
    """Compares every pair. Values are λ, vertices and edges of both, and the number of common vertices."""
    graphs = [oracles.maximal_dn_graphs(levels) for levels in (old, new)]

    def members(graph: Graph) -> set[Any]:
        return {vertex for edge in graph[1] for vertex in edge}

    def sizes(graph: Graph | None) -> tuple[int | None, int | None, int | None]:
        return (None, None, None) if graph is None else (graph[0], len(members(graph)), len(graph[1]))

    pairs: list[tuple[Graph | None, Graph | None]] = [
        (one, other)
        for one, other in itertools.product(*graphs)
        if len(members(one) & members(other)) / len(members(one) | members(other)) > 0.5
    ]
    for side in (0, 1):
        partnered = [pair[side] for pair in pairs]
        assert len(set(partnered)) == len(partnered), "two partners"
    pairs += [(one, None) for one in graphs[0] if one not in [pair[0] for pair in pairs]]
    pairs += [(None, other) for other in graphs[1] if other not in [pair[1] for pair in pairs]]
    rows = []
    for one, other in pairs:
        change = change_of(one and one[0], other and other[0])
        common = len(members(one) & members(other)) if one and other else 0
        if one and other and change == "unchanged" and (members(one) != members(other) or len(one[1]) != len(other[1])):
            change = "reshaped"
        rows.append((change, *itertools.chain(*zip(sizes(one), sizes(other), strict=True)), common))
    names = [str(row[0]) for row in rows]
    changes = tallied(names, len(graphs[0]), len(graphs[1]), names.count("reshaped"))
    return changes, {row for row in rows if row[0] != "unchanged"}


@given(rows=st.tuples(strategies.edge_lists(14), strategies.edge_lists(14)), data=st.data())
@settings(max_examples=examples(40, 8))
def test_every_change(
    tmp_path_factory: pytest.TempPathFactory, rows: tuple[list[tuple[int, int]], ...], data: st.DataObject
) -> None:
    """Drawn values of λ, ids, and sizes of files, row groups and blocks."""
    folder = tmp_path_factory.mktemp("diff")
    naming = data.draw(strategies.namings(14))
    levels: list[Levels] = []
    for graph in (rows[0], data.draw(st.sampled_from([rows[0], rows[1], rows[0] + rows[1]]))):
        edges = oracles.simple_edges((naming.names[u], naming.names[v]) for u, v in graph)
        levels.append(oracles.networkx_lambda(edges))
        if data.draw(st.booleans()):
            levels[-1] |= {edge: data.draw(st.integers(0, 3)) for edge in sorted(edges)}
    cut = st.integers(1, 9)
    old, new = (
        made(
            folder / name,
            levels[number],
            id_type=naming.type,
            alone=naming.names[: data.draw(st.integers(0, 14))],
            rows_per_file=data.draw(cut),
            rows_per_group=data.draw(cut),
            first_id=data.draw(st.integers(-50, 50)),
        )
        for number, name in enumerate(("old", "new"))
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(edge_changes, "BLOCK_ROWS", data.draw(cut))
        patch.setattr(dn_graphs, "_PENDING_ROWS", data.draw(st.sampled_from([0, 1 << 20])))
        found = diff(old, new, folder / "changes")
        assert diff(old, new) == found
    counts, changed = naive_edges(levels[0], levels[1])
    assert found.edges == counts
    table = pq.read_table(folder / "changes" / "edges.parquet")
    assert table.schema.names == ["src", "dst", "change", "lambda_old", "lambda_new"]
    assert pq.read_metadata(folder / "changes" / "edges.parquet").num_row_groups <= 1
    assert [tuple(row.values()) for row in table.to_pylist()] == changed
    counts, others = naive_dn_graphs(levels[0], levels[1])
    assert found.dn_graphs == counts
    table = pq.read_table(folder / "changes" / "dn_graphs.parquet")
    plain = table.drop(["id_old", "id_new", "fate", "merged_into", "split_from", "track_old", "track_new"])
    assert {tuple(row.values()) for row in plain.to_pylist()} == others
    told, ended, began = fates.fates(fates.groups_of(old), fates.groups_of(new))
    assert found.groups == told
    for row in table.to_pylist():
        if row["id_new"] is None:
            assert (row["fate"], row["merged_into"], row["split_from"]) == (*ended.pop(row["id_old"]), None)
        elif row["id_old"] is None:
            assert (row["fate"], row["split_from"], row["merged_into"]) == (*began.pop(row["id_new"]), None)
        else:
            growth = row["vertices_new"] - row["vertices_old"]
            assert row["fate"] == ("grown" if growth > 0 else "shrunk" if growth < 0 else "kept")
    assert not ended and not began
    order = [
        (
            -max(row["lambda_old"] or 0, row["lambda_new"] or 0),
            *((row[id] is None, row[id]) for id in ("id_new", "id_old")),
        )
        for row in table.to_pylist()
    ]
    assert order == sorted(order)
    for side, end in ((old, "old"), (new, "new")):
        known = {row["id"]: row for row in side.dn_graphs.to_table().to_pylist()}
        for row in table.to_pylist():
            own = known.get(row[f"id_{end}"], {})
            names = ("lambda", "vertices", "edges", "track")
            assert [row[f"{name}_{end}"] for name in names] == [own.get(name) for name in names]
    assert json.loads((folder / "changes" / "diff.json").read_text()) == found.as_dict()


def test_two_nights(tmp_path: Path, client: Client) -> None:
    """One clique grows, one loses an edge, one splits, one appears, one is unchanged."""
    old = clique(*range(6)) + clique(*range(10, 15)) + clique(*range(20, 24)) + clique(*range(40, 44))
    new = clique(*range(7)) + clique(*range(10, 15))[1:] + clique(*range(30, 33)) + clique(*range(40, 44))
    sides = []
    for name, edges, partitions in (("old", old, 1), ("new", new, 3)):
        rows = runs.write_rows(tmp_path / f"{name}.parquet", edges)
        sides.append(mine(rows, tmp_path / name, client=client, partitions=partitions))
    found = diff(sides[0], sides[1], tmp_path / "changes")
    assert found.edges == RowChanges(old=37, new=39, unchanged=6, appeared=9, vanished=7, rose=15, fell=9)
    assert found.dn_graphs == RowChanges(old=4, new=4, unchanged=1, appeared=1, vanished=1, rose=1, fell=1, reshaped=0)
    rows = pq.read_table(tmp_path / "changes" / "dn_graphs.parquet").to_pylist()
    assert [(row["change"], row["lambda_old"], row["lambda_new"], row["vertices_common"]) for row in rows] == [
        ("rose", 4, 5, 6),
        ("fell", 3, 2, 5),
        ("vanished", 2, None, 0),
        ("appeared", None, 1, 0),
    ]
    ended = call("diff", str(tmp_path / "old"), str(tmp_path / "new"))
    assert (ended.exit_code, ended.stderr) == (0, "")
    assert [line.split() for line in ended.stdout.splitlines()] == [
        ["edges", "DN-graphs"],
        ["old", "37", "4"],
        ["new", "39", "4"],
        ["unchanged", "6", "1"],
        ["appeared", "9", "1"],
        ["vanished", "7", "1"],
        ["rose", "15", "1"],
        ["fell", "9", "1"],
        ["reshaped", "0"],
        ["continued", "3"],
        ["grown", "1"],
        ["shrunk", "0"],
        ["born", "1"],
        ["died", "1"],
        ["merged", "0"],
        ["split", "0"],
    ]
    ended = call("diff", str(tmp_path / "old"), str(tmp_path / "new"), "--json")
    assert json.loads(ended.stdout) == found.as_dict()


@pytest.mark.parametrize("columns", [30, 80])
def test_no_digit_is_cut_off(columns: int) -> None:
    """At any width of the terminal."""

    def printed(table: Table) -> list[str]:
        written = io.StringIO()
        print_whole(Console(width=columns, file=written), table)
        return written.getvalue().splitlines()

    many = RowChanges(*[10**13] * 8)
    lines = printed(changes_table(Diff("old", "new", many, many, Fates(*[10**13] * 7), None, ())))
    assert [line.split()[1:] for line in lines[1:]] == [["10,000,000,000,000"] * 2] * 8 + [["10,000,000,000,000"]] * 7
    assert max(map(len, lines)) <= 60
    row = dict.fromkeys(("id", "lambda", "vertices", "edges", "triangles", "parent"), 10**15) | {"density": 0.5}
    (_, line) = printed(dn_graphs_table([row]))
    big = f"{10**15:,}"
    assert line.split() == [str(10**15), *[big] * 3, "0.5000", big, str(10**15)]


def test_half_in_common_is_not_the_same(tmp_path: Path) -> None:
    """A group that splits in equal halves does not continue. One that keeps more than half does, with the same λ."""
    half = (
        made(tmp_path / "one", dict.fromkeys(clique(*range(6)), 4)),
        made(tmp_path / "two", dict.fromkeys(clique(0, 1, 2) + clique(3, 4, 5), 4), first_id=90),
    )
    assert diff(*half).dn_graphs == RowChanges(1, 2, unchanged=0, appeared=2, vanished=1, rose=0, fell=0, reshaped=0)
    more = made(tmp_path / "three", dict.fromkeys(clique(*range(4)), 4))
    assert diff(half[0], more).dn_graphs == RowChanges(
        1, 1, unchanged=0, appeared=0, vanished=0, rose=0, fell=0, reshaped=1
    )
    fewer_edges = made(tmp_path / "four", dict.fromkeys(clique(*range(6))[1:], 4))
    assert diff(half[0], fewer_edges).dn_graphs == diff(half[0], more).dn_graphs


@given(
    keys=st.tuples(*[st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), unique=True, max_size=30)] * 2),
    cuts=st.tuples(st.integers(1, 7), st.integers(1, 7)),
)
@settings(max_examples=examples(200))
def test_aligned_blocks(keys: tuple[list[tuple[int, int]], ...], cuts: tuple[int, int]) -> None:
    """Every row comes once and in order, equal keys come in one pair, and no side is read ahead of its block."""
    open_batches = [0, 0]

    def batches(side: int) -> Iterator[pa.RecordBatch]:
        rows = sorted(keys[side])
        yield pa.record_batch({"s": pa.array([], pa.int64()), "t": pa.array([], pa.int64())})
        for start in range(0, len(rows), cuts[side]):
            part = rows[start : start + cuts[side]]
            open_batches[side] += 1
            yield pa.record_batch({"s": [row[0] for row in part], "t": [row[1] for row in part]})

    seen: tuple[list[tuple[int, int]], ...] = ([], [])
    before = (-1, -1)
    for blocks in aligned_blocks(batches(0), batches(1), keys=2):
        rows = [
            [] if block is None else list(zip(block["s"].to_pylist(), block["t"].to_pylist(), strict=True))
            for block in blocks
        ]
        assert rows[0] or rows[1]
        assert min(rows[0] + rows[1]) > before
        before = max(rows[0] + rows[1])
        for side in (0, 1):
            seen[side].extend(rows[side])
            assert open_batches[side] <= len(seen[side]) // cuts[side] + 1
    assert seen == (sorted(keys[0]), sorted(keys[1]))


def test_a_table_that_is_not_sorted(tmp_path: Path) -> None:
    one = pa.record_batch({"s": [1, 2]})
    for other in (one, pa.record_batch({"s": [2, 3]}), pa.record_batch({"s": [0]})):
        with pytest.raises(InputError, match=r"a table .*is not sorted"):
            list(aligned_blocks([one, other], [], keys=1))


def test_what_cannot_be_compared(tmp_path: Path) -> None:
    levels = dict.fromkeys(clique(1, 2, 3), 1)
    old = made(tmp_path / "old", levels)
    others: dict[str, tuple[Result, str]] = {
        "narrow": (made(tmp_path / "narrow", levels, id_type=pa.int32()), "the type of ids is int64 in one, int32"),
        "names": (made(tmp_path / "names", levels, names=("src", "to")), "the target column is dst in one, to in"),
        "source": (made(tmp_path / "source", levels, names=("from", "dst")), "the source column is src in one, from"),
        "open": (made(tmp_path / "open", levels, dense=False, converged=False), "open did not converge"),
    }
    for name, (other, text) in others.items():
        with pytest.raises(UsageError, match=text):
            diff(old, other)
        ended = call("diff", str(tmp_path / "old"), str(tmp_path / name), "--output", str(tmp_path / "changes"))
        assert ended.exit_code == 2
        assert text in ended.stderr
    assert call("diff", str(tmp_path / "old"), str(tmp_path / "absent")).exit_code == 2
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["names", "narrow", "old", "open", "source"]


@pytest.mark.parametrize("name", ["change", "lambda_old", "lambda_new"])
def test_columns_named_as_those_of_changes(tmp_path: Path, name: str) -> None:
    old, new = (
        made(tmp_path / side, dict.fromkeys(clique(*vertices), 1), names=("src", name))
        for side, vertices in (("old", (1, 2, 3)), ("new", (2, 3, 4)))
    )
    ended = call("diff", str(old.path), str(new.path), "--output", str(tmp_path / "changes"))
    assert ended.exit_code == 2
    assert all(fact in ended.stderr for fact in (f"'{name}'", str(new.path)))
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["new", "old"]


def test_results_of_earlier_releases(tmp_path: Path) -> None:
    """Only edges are compared, and a notice says so."""
    levels = dict.fromkeys(clique(1, 2, 3), 1)
    made(tmp_path / "old", levels, dense=False)
    made(tmp_path / "new", levels | {(3, 4): 0})
    ended = call("diff", str(tmp_path / "old"), str(tmp_path / "new"), "--output", str(tmp_path / "changes"), "--json")
    assert ended.exit_code == 0
    text = f"{tmp_path / 'old'} has no DN-graphs, as an earlier release made it: only edges are compared"
    assert ended.stderr == f"Notice: {text}\n"
    found = json.loads(ended.stdout)
    assert (found["edges"]["appeared"], found["dn_graphs"], found["notices"]) == (1, None, [text])
    assert {entry.name for entry in (tmp_path / "changes").iterdir()} == {"edges.parquet", "diff.json"}
    shown = call("diff", str(tmp_path / "new"), str(tmp_path / "old")).stdout
    assert "edges" in shown
    assert "DN-graphs" not in shown
    assert "reshaped" not in shown


def test_existing_folders_stay(tmp_path: Path) -> None:
    levels = dict.fromkeys(clique(1, 2, 3), 1)
    old, new = (made(tmp_path / name, levels) for name in ("old", "new"))
    other, changes = tmp_path / "other", tmp_path / "changes"
    other.mkdir()
    (other / "mine").touch()
    for output, overwrite, text in (
        (other, False, "exists: choose another, or replace it with overwrite=True"),
        (other, True, "has another file, mine, so overwrite=True does not replace it"),
        (other / "mine", True, "exists and is not a folder"),
        (tmp_path / "old", True, "is inside the result"),
        (tmp_path / "new" / "changes", False, "is inside the result"),
        (tmp_path / "absent" / "changes", False, "cannot write"),
        ("nowhere://bucket/changes", False, "nowhere://bucket/changes cannot be opened"),
    ):
        with pytest.raises(UsageError, match=text):
            diff(old, new, output, overwrite)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["new", "old", "other"]
    arguments = ["diff", str(old.path), str(new.path), "--output", str(changes)]
    assert [call(*arguments, *more).exit_code for more in ([], [], ["--overwrite"])] == [0, 2, 0]
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["changes", "new", "old", "other"]
    assert pq.read_table(changes / "edges.parquet").num_rows == 0


def test_a_failure_keeps_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    levels = dict.fromkeys(clique(1, 2, 3), 1)
    old, new = (made(tmp_path / name, levels | more) for name, more in (("old", {}), ("new", {(3, 4): 0})))
    diff(old, old, tmp_path / "changes")
    kept = (tmp_path / "changes" / "diff.json").read_text()
    part = next((old.path / "vertices").iterdir())
    content = bytearray(part.read_bytes())
    footer = pq.read_metadata(part)
    start = footer.row_group(0).column(0).dictionary_page_offset
    content[start : start + 40] = bytes(40)
    part.write_bytes(content)
    with pytest.raises(InputError, match="damaged"):
        diff(Result(old.path), new, tmp_path / "changes", overwrite=True)
    assert (tmp_path / "changes" / "diff.json").read_text() == kept
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["changes", "new", "old"]


def test_counts_that_do_not_agree(tmp_path: Path) -> None:
    """Rows read are compared with the counts of the manifests."""
    old, new = (made(tmp_path / name, {(1, 2): 0, (2, 3): 0}) for name in ("old", "new"))
    counts = old.manifest.counts.model_copy(update={"edges": 3})
    old.manifest = old.manifest.model_copy(update={"counts": counts})
    with pytest.raises(InputError, match=r"damaged: .*3 and 2 rows"):
        diff(old, new)


def test_more_changes_than_rows(tmp_path: Path) -> None:
    old, new = (made(tmp_path / name, {(1, 2): lam, (2, 3): lam}) for name, lam in (("old", 0), ("new", 1)))
    for side in (old, new):
        counts = side.manifest.counts.model_copy(update={"edges": 1})
        side.manifest = side.manifest.model_copy(update={"counts": counts})
    with pytest.raises(InputError, match=r"damaged.*1.*1"):
        diff(old, new)


def test_vertices_without_a_group_are_not_common(tmp_path: Path) -> None:
    """The id of a DN-graph can be 0, which is not null."""
    old, new = (
        made(tmp_path / name, dict.fromkeys(clique(1, 2, 3), 1), alone=[7, 8, 9], first_id=0) for name in ("old", "new")
    )
    assert old.dn_graphs.to_table()["id"].to_pylist() == [0]
    unchanged = RowChanges(1, 1, unchanged=1, appeared=0, vanished=0, rose=0, fell=0, reshaped=0)
    assert diff(old, new).dn_graphs == unchanged


def test_in_an_object_store(tmp_path: Path) -> None:
    old = made(tmp_path / "old", dict.fromkeys(clique(1, 2, 3), 1))
    new = made(tmp_path / "new", dict.fromkeys(clique(1, 2, 4), 1))
    place = Folder("memory://diff/new")
    place.files.put(str(new.path), place.path(), recursive=True)
    try:
        found = diff(old, Result(place.url), tmp_path / "changes")
        assert found == Diff(str(old.path), place.url, *list(vars(diff(old, new)).values())[2:])
        assert call("diff", str(old.path), place.url, "--json").exit_code == 0
    finally:
        place.remove("")


def test_changes_are_written_to_an_object_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """diff.json is written last. If a file cannot be written, the earlier one stays; a failed copy leaves nothing."""
    levels = dict.fromkeys(clique(1, 2, 3), 1)
    old, new = (made(tmp_path / name, levels | more) for name, more in (("old", {}), ("new", {(3, 4): 0})))
    bare = made(tmp_path / "bare", levels, dense=False)
    place = Folder("memory://changes")
    changes, put, copy = place.subfolder("found"), type(place.files).put_file, type(place.files).cp_file
    try:
        diff(old, new, tmp_path / "changes")
        diff(old, new, changes.url)
        assert changes.names() == sorted(entry.name for entry in (tmp_path / "changes").iterdir())
        for name in changes.names():
            assert changes.read(name) == (tmp_path / "changes" / name).read_bytes()
        with pytest.raises(UsageError, match="memory://changes/found exists"):
            diff(old, new, changes)
        diff(old, bare, changes, overwrite=True)
        assert changes.names() == ["diff.json", "edges.parquet"]
        changes.write("mine", b"")
        with pytest.raises(UsageError, match=r"another file, mine, .*overwrite=True"):
            diff(old, new, changes, overwrite=True)
        with pytest.raises(UsageError, match="mine exists"):
            diff(old, new, changes.subfolder("mine"), overwrite=True)
        changes.remove("mine")
        there: list[list[str]] = []

        def put_file(self: Any, local: str, path: str, *more: Any) -> None:
            if path.endswith("diff.json") and (refused == "put" or path == changes.path("diff.json")):
                raise OSError("no more")
            put(self, local, path, *more)

        def cp_file(self: Any, source: str, path: str, **more: Any) -> None:
            there.append([name for name in changes.names() if not name.startswith(".edgemill-")])
            if path.endswith("diff.json"):
                raise OSError("no more")
            copy(self, source, path, **more)

        monkeypatch.setattr(type(place.files), "put_file", put_file)
        monkeypatch.setattr(type(place.files), "cp_file", cp_file)
        refused = "put"
        with pytest.raises(UsageError, match=r"memory://changes/found/diff.json.*more"):
            diff(old, new, changes, overwrite=True)
        assert (changes.names(), there) == (["diff.json", "edges.parquet"], [])
        refused = "copy"
        with pytest.raises(UsageError, match=r"memory://changes/found/diff.json.*more"):
            diff(old, new, changes, overwrite=True)
        assert changes.names() == []
        assert there == [[], ["edges.parquet"], ["dn_graphs.parquet", "edges.parquet"]]
    finally:
        place.remove("")
