"""Updated results are those of a run over all edges: edge by edge, all tables, whatever way was taken."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import in_process
import runs
from dense_answers import check_dense
from edgemill.kernels.cpu.update import replay
from edgemill.pipeline import NotConverged, Result, UsageError, mine, update
from edgemill.pipeline.python_api.update_settings import update_settings
from edgemill.pipeline.updating import finding_lambda, groups
from edgemill.pipeline.updating import tables as updated_tables
from examples import examples

TABLES = ("edges", "vertices", "hierarchy", "dn_graphs", "dn_graph_members")
Edges = set[tuple[int, int]]
NAMES = pa.array([f"é{number:03d}" for number in range(60)])


def cliques() -> Edges:
    """Cliques of six, each joined to the next one."""
    within = {(6 * c + u, 6 * c + v) for c in range(6) for v in range(6) for u in range(v)}
    return within | {(6 * c, 6 * c + 7) for c in range(5)}


def rows(edges: Edges, text: bool = False) -> pa.Table:
    ends = [[edge[end] for edge in sorted(edges)] for end in (0, 1)]
    columns = [NAMES.take(pa.array(end, pa.int64())) if text else pa.array(end, pa.int64()) for end in ends]
    return pa.table(columns, names=["src", "dst"])


def tables(result: Result) -> list[pa.Table]:
    found = [getattr(result, name).to_table() for name in TABLES]
    return [table.drop_columns(["track"]) if "track" in table.column_names else table for table in found]


def assert_equal(result: Result, edges: Edges, text: bool = False) -> None:
    """The result is right by definition, and has these edges."""
    table = result.edges.to_table()
    assert table.select(["src", "dst"]).equals(rows(edges, text).cast(table.select(["src", "dst"]).schema))
    assert runs.flaws(result.path) == []


@pytest.fixture(scope="module", params=[False, pytest.param(True, marks=pytest.mark.slow)], ids=["integers", "strings"])
def base(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Result:
    folder = tmp_path_factory.mktemp("base")
    made = mine(rows(cliques(), request.param), folder / "run", device="cpu", report=False)
    return update(made, folder / "out", insert=rows({(0, 1)}, request.param), device="cpu")


def with_both(name: str) -> pytest.MarkDecorator:
    """Strings are no slow case of this fixture."""
    return pytest.mark.parametrize(name, [False, True], ids=["integers", "strings"], indirect=True)


def is_text(base: Result) -> bool:
    return base.manifest.input.id_type == "string"


def test_a_result_without_state_starts_with_a_full_run(base: Result) -> None:
    made = base.manifest.update
    assert made is not None and made.way == "whole" and "earlier result has no state" in made.reason
    assert (made.present, made.inserted, made.nights, made.full_run) == (1, 0, 0, base.manifest.run)
    assert_equal(base, cliques(), is_text(base))


@settings(max_examples=examples(5, 3))
@given(st.randoms(use_true_random=False), st.sampled_from(["auto", "always"]), st.sampled_from([0, 1]))
def test_a_chain_of_batches(
    tmp_path_factory: pytest.TempPathFactory, base: Result, draw: random.Random, way: str, most: int
) -> None:
    folder, result, edges, text = tmp_path_factory.mktemp("chain"), base, cliques(), is_text(base)
    for night in range(2):
        pairs = {(u, v) for v in range(draw.choice([6, 40])) for u in range(v) if draw.random() < 0.3}
        plus = set(draw.sample(sorted(pairs), min(len(pairs), draw.choice([0, 1, 3, 20]))))
        minus = set(draw.sample(sorted(edges), min(len(edges), draw.choice([0, 1, 3, 20]))))
        minus |= {edge for edge in edges if draw.choice([0, 1, 2]) == edge[1] % 30}
        before, edges = edges, (edges - minus) | plus
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(groups, "MOST_SEARCHED", most)
            patch.setattr(groups, "MOST_TOUCHED", most)
            result = update(
                result,
                folder / str(night),
                insert=rows(plus, text),
                delete=rows(minus, text),
                device="cpu",
                incremental=way,
            )
        made = result.manifest.update
        assert made is not None
        assert (made.inserted, made.deleted) == (len(edges - before), len(before - edges))
        assert (made.present, made.in_both) == (len(plus & before - minus), len(plus & minus))
        assert made.way == "changes" or way == "auto"
        assert_equal(result, edges, text)
        check_dense(result)


def grouped(result: Result) -> dict[str, int]:
    """What the log tells of the groups."""
    events = map(json.loads, (result.path / "log.jsonl").read_text().splitlines())
    return next({name: event[name] for name in ("searched", "kept")} for event in events if event["event"] == "grouped")


@pytest.mark.parametrize(
    ("plus", "minus", "kept"),
    [
        ({(6 * c + 6, v) for c in range(5) for v in (50, 51)}, set(), 6),
        (set(), {(4, 5)}, 5),
        ({(u, v) for u in range(6) for v in range(6, 12)}, set(), 4),
        ({(u, v) for u in range(50, 54) for v in range(50, u)}, set(), 6),
        (set(), {(u, v) for u in range(6) for v in range(u + 1, 8)}, 5),
        (set(), {(0, 7), (12, 19)}, 3),
    ],
    ids=["apart", "one changes", "two merge", "one appears", "one goes", "parts of the graph"],
)
def test_groups_that_did_not_change_are_kept(
    base: Result, tmp_path: Path, plus: Edges, minus: Edges, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = is_text(base)
    own: dict[str, Any] = {"insert": rows(plus, text), "delete": rows(minus, text), "device": "cpu"}
    monkeypatch.setattr(groups, "MOST_SEARCHED", 1)
    monkeypatch.setattr(groups, "MOST_TOUCHED", 1)
    made = update(base, tmp_path / "out", incremental="always", **own)
    check_dense(made)
    assert grouped(made)["kept"] == kept
    whole = update(base, tmp_path / "whole", full_every=1, **own)
    assert grouped(whole) == {"searched": whole.manifest.counts.edges, "kept": 0}
    assert [table.to_pylist() for table in tables(made)] == [table.to_pylist() for table in tables(whole)]
    assert (made.manifest.lam, made.manifest.dense) == (whole.manifest.lam, whole.manifest.dense)
    assert made.manifest.counts.triangles == whole.manifest.counts.triangles


@with_both("base")
def test_all_tables_are_those_of_a_run(base: Result, tmp_path: Path) -> None:
    text, plus, minus = is_text(base), {(1, 50), (2, 50), (50, 51)}, {(0, 1), (0, 7)}
    made = update(base, tmp_path / "out", insert=rows(plus, text), delete=rows(minus, text), incremental="always")
    run = mine(rows((cliques() - minus) | plus, text), tmp_path / "run", device="cpu", report=False)
    assert [table.to_pylist() for table in tables(made)] == [table.to_pylist() for table in tables(run)]
    assert made.manifest.lam == run.manifest.lam and made.manifest.dense == run.manifest.dense
    assert made.manifest.update is not None and made.manifest.update.nights == 1
    assert made.manifest.tracks is not None and made.manifest.tracks.continued == 6


def test_a_night_without_change_takes_all_files_over(base: Result, tmp_path: Path) -> None:
    made = update(base, tmp_path / "out", delete=rows({(3, 40)}, is_text(base)))
    assert made.manifest.update is not None and made.manifest.update.absent == 1
    assert made.manifest.update.files_kept == len(made.manifest.outputs) == 5
    for output in made.manifest.outputs:
        assert (made.path / output.path).samefile(base.path / output.path)
    assert_equal(made, cliques(), is_text(base))
    later = update(made, tmp_path / "later", delete=rows({(0, 1)}, is_text(base)), incremental="always")
    assert later.manifest.update is not None and (later.manifest.update.nights, later.manifest.update.way) == (
        2,
        "changes",
    )
    assert_equal(later, cliques() - {(0, 1)}, is_text(base))


@with_both("base")
def test_a_batch_without_change_loads_neither_kernels_nor_dask(base: Result, tmp_path: Path) -> None:
    """Every edge to insert is there, and none to delete: the whole command, with its report. A kernel sorts strings."""
    text = is_text(base)
    absent = "numba", "llvmlite", "dask", "distributed"
    for name, ends in (("plus", ([1, 3, 0], [0, 3, 1])), ("minus", ([0, 7, 40], [35, 7, 50]))):
        columns = [NAMES.take(pa.array(end)) if text else pa.array(end) for end in ends]
        pq.write_table(pa.table(columns, names=["src", "dst"]), tmp_path / f"{name}.parquet")
    command = ["update", str(base.place), "--insert", "plus.parquet", "--delete", "minus.parquet", "--output", "out"]
    ask = f"""
import sys
from edgemill.pipeline.cli import edgemill
edgemill({[*command, "--device", "cpu", "--json"]}, standalone_mode=False)
assert not sys.modules.keys() & {set(absent[2 if text else 0 :])}
"""
    subprocess.run([sys.executable, "-c", ask], cwd=tmp_path, check=True, capture_output=True)
    made = Result(tmp_path / "out")
    went = made.manifest.update
    assert went is not None and (went.reason, went.files_kept) == ("nothing has changed", 5)
    assert (went.present, went.absent, went.in_both, went.repeated) == (1, 2, 0, 1)
    assert_equal(made, cliques(), text)


def test_files_without_a_changed_row_are_taken_over(
    base: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(updated_tables, "FILE_ROWS", 10)
    text = is_text(base)
    cut = update(base, tmp_path / "cut", delete=rows({(30, 31)}, text))
    assert len(updated_tables.files_of(cut.manifest, "edges")) > 4
    made = update(cut, tmp_path / "made", insert=rows({(30, 31)}, text))
    kept = [own.path for own in updated_tables.files_of(made.manifest, "edges") if own in cut.manifest.outputs]
    assert len(kept) >= 4 and all((made.path / path).samefile(cut.path / path) for path in kept)
    assert_equal(made, cliques(), text)
    for name in ("edges", "vertices"):
        assert getattr(made, name).to_table().equals(getattr(base, name).to_table())


def test_files_of_groups_that_did_not_change_are_taken_over(
    base: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clique in the middle loses an edge. Files are cut between groups, so each has whole DN-graphs."""
    monkeypatch.setattr(updated_tables, "FILE_ROWS", 4)
    text = is_text(base)
    cut = update(base, tmp_path / "cut", delete=rows({(24, 25)}, text), incremental="always", device="cpu")
    assert len(updated_tables.files_of(cut.manifest, "dn_graph_members")) > 4
    for file in cut.dn_graph_members.get_fragments():
        assert file.to_table()["dn_graph"].unique().sort() == file.to_table()["dn_graph"].unique()
    made = update(cut, tmp_path / "made", delete=rows({(18, 19)}, text), incremental="always", device="cpu")
    for table, least in (("dn_graph_members", 3), ("hierarchy", 0), ("dn_graphs", 0)):
        files = updated_tables.files_of(made.manifest, table)
        places = {(cut.path / own.path).stat().st_ino for own in updated_tables.files_of(cut.manifest, table)}
        kept = sum((made.path / own.path).stat().st_ino in places for own in files)
        assert least <= kept < len(files), table
    check_dense(made)
    assert_equal(made, cliques() - {(18, 19), (24, 25)}, text)
    same = update(made, tmp_path / "same", insert=rows({(0, 40)}, text), incremental="always", device="cpu")
    graphs = updated_tables.files_of(same.manifest, "dn_graphs")
    assert all((same.path / own.path).samefile(made.path / own.path) for own in graphs)


@pytest.mark.parametrize("damage", ["flip", "remove"])
def test_a_lost_state_costs_time_alone(base: Result, tmp_path: Path, damage: str) -> None:
    text = is_text(base)
    first = update(base, tmp_path / "first", delete=rows({(0, 1)}, text))
    place = first.path / "state" / "lam"
    place.unlink() if damage == "remove" else place.write_bytes(bytes(place.stat().st_size))
    made = update(first, tmp_path / "made", insert=rows({(0, 1)}, text))
    assert made.manifest.update is not None and made.manifest.update.way == "whole"
    assert "the state in" in made.manifest.update.reason
    assert_equal(made, cliques(), text)


def test_a_full_run_is_due(base: Result, tmp_path: Path) -> None:
    made = update(base, tmp_path / "out", full_every=1)
    assert made.manifest.update is not None and "nightly.full_every" in made.manifest.update.reason
    assert_equal(made, cliques(), is_text(base))


PROGRAMS = ("lambda", "pagerank", "components", "coreness", "bfs")


@pytest.fixture(scope="module", params=[False, pytest.param(True, marks=pytest.mark.slow)], ids=["integers", "strings"])
def with_programs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Result:
    """A result whose components are two, the second one a triangle."""
    text = bool(request.param)
    own: dict[str, Any] = {"programs": PROGRAMS, "bfs": {"source": "é000" if text else "0"}, "incremental": "auto"}
    edges = rows(cliques() | {(50, 51), (50, 52), (51, 52)}, text)
    return mine(edges, tmp_path_factory.mktemp("programs") / "run", device="cpu", report=False, **own)


CHANGES: dict[str, tuple[Edges, Edges, str]] = {
    "unreached leaves": ({(50, 55), (51, 56)}, set(), "kept kept"),
    "joined": ({(0, 50)}, set(), "kept nothing"),
    "far away": ({(50, 55)}, {(51, 52)}, "nothing kept"),
    "a component goes": (set(), {(50, 51), (50, 52), (51, 52)}, "nothing kept"),
    "cut": ({(6, 20)}, {(0, 7)}, "nothing nothing"),
}
"""Edges that come and go, and where the components and distances begin then."""


@pytest.mark.parametrize(
    ("plus", "minus", "begun"),
    [
        pytest.param(*case, id=name, marks=[pytest.mark.slow] if name == "a component goes" else [])
        for name, case in CHANGES.items()
    ],
)
def test_programs(with_programs: Result, tmp_path: Path, plus: Edges, minus: Edges, begun: str) -> None:
    check_programs(with_programs, tmp_path, plus, minus, begun)


@pytest.mark.parametrize("with_programs", [True], ids=["strings"], indirect=True)
def test_programs_of_strings(with_programs: Result, tmp_path: Path) -> None:
    check_programs(with_programs, tmp_path, *CHANGES["joined"])


def check_programs(with_programs: Result, tmp_path: Path, plus: Edges, minus: Edges, begun: str) -> None:
    """The values of programs are those of a run over the new edges, wherever they begin."""
    text = is_text(with_programs)
    made = update(with_programs, tmp_path / "out", insert=rows(plus, text), delete=rows(minus, text), device="cpu")
    assert made.manifest.update is not None and runs.flaws(made.path) == []
    found = {own.name: own for own in made.manifest.programs}
    assert f"{found['components'].begun} {found['bfs'].begun}" == begun
    assert (found["pagerank"].begun, found["coreness"].begun) == ("earlier", "nothing")
    after = (cliques() | {(50, 51), (50, 52), (51, 52)} | plus) - minus
    own: dict[str, Any] = {"programs": PROGRAMS, "bfs": {"source": "é000" if text else "0"}}
    run = mine(rows(after, text), tmp_path / "run", device="cpu", report=False, **own)
    assert made.manifest.programs[0].columns == run.manifest.programs[0].columns
    for one, other in zip(tables(made), tables(run), strict=True):
        if "pagerank" in one.column_names:
            apart = np.abs(one["pagerank"].to_numpy() - other["pagerank"].to_numpy()).sum()
            assert apart < 2 * 1e-9 * 0.85 / 0.15
            one, other = (table.drop_columns(["pagerank"]) for table in (one, other))
        assert one.to_pylist() == other.to_pylist()


def test_other_programs_and_parameters(with_programs: Result, tmp_path: Path) -> None:
    """They begin from nothing, and no file of vertices is taken over."""
    other: dict[str, Any] = {"programs": ("lambda", "pagerank"), "pagerank": {"damping": 0.5}, "device": "cpu"}
    made = update(with_programs, tmp_path / "out", insert=rows({(0, 1)}, is_text(with_programs)), **other)
    assert [own.begun for own in made.manifest.programs] == ["nothing"]
    assert made.vertices.schema.names[-2:] == ["component", "pagerank"] and runs.flaws(made.path) == []
    last = update(made, tmp_path / "last", programs=("lambda",), device="cpu")
    assert last.manifest.programs == [] and last.vertices.schema.names[-1] == "component"


def test_a_run_over_all_edges_keeps_tracks_too(with_programs: Result, tmp_path: Path) -> None:
    """Here the program `betweenness` is in the way of an update."""
    text, own = is_text(with_programs), {"programs": ("lambda", "betweenness"), "device": "cpu", "report": False}
    edges = cliques() | {(50, 51), (50, 52), (51, 52)} | {(52, 53), (51, 53), (50, 53)}
    run: dict[str, Any] = own | {"previous": str(with_programs.path)}
    for made in (
        update(with_programs, tmp_path / "batch", insert=rows(edges, text), **own),  # type: ignore[arg-type]
        mine(rows(edges, text), tmp_path / "run", **run),
    ):
        tracks, then = made.manifest.tracks, with_programs.manifest.tracks
        assert made.manifest.update is None and tracks is not None and then is not None
        assert tracks.previous is not None and tracks.previous.run == with_programs.manifest.run
        assert (tracks.continued, tracks.new, tracks.next) == (then.next - 1, 0, then.next)


def test_what_cannot_be_right_is_refused(base: Result, tmp_path: Path) -> None:
    other = pa.table({"src": pa.array([1.5]), "dst": pa.array([2.5])})
    wrong = rows({(0, 1)}, not is_text(base))
    unlike = pa.table({"from": [1], "to": [2]})
    cases: list[tuple[Callable[[], Any], str]] = [
        (
            lambda: update(base, tmp_path / "out", insert=wrong),
            "its ids are .*, and those of .*: cast them to that type",
        ),
        (lambda: update(base, tmp_path / "out", insert=other), "double"),
        (lambda: update(base, tmp_path / "out", insert=unlike), "src"),
        (lambda: update(base, tmp_path / "out", where="a > 1"), "input.where|where is for a whole input"),
        (lambda: update(base, base.path), "overwrite|inside|exists"),
        (lambda: update(tmp_path / "none", tmp_path / "out"), "no such folder"),
    ]
    for call, message in cases:
        with pytest.raises(Exception, match=message) as raised:
            call()
        assert type(raised.value).__module__ == "edgemill.tasks.errors"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["path", "where", "source_column", "directed", "weight_column", "least_rows"])
def test_settings_of_a_whole_input_are_refused(base: Result, tmp_path: Path, name: str) -> None:
    """Also with --set, whose values are read later."""
    arguments = ["update", str(base.path), "--output", str(tmp_path / "out"), "--set", f"input.{name}=1"]
    ended = in_process.call(*arguments)
    assert ended.exit_code == 2 and "is for a whole input" in ended.output


def test_attributes_may_be_given(base: Result, tmp_path: Path) -> None:
    ids = NAMES if is_text(base) else pa.array(range(60))
    pq.write_table(pa.table({"id": ids, "name": NAMES}), tmp_path / "names.parquet")
    taken = update_settings(base, {"input.vertices": "names.parquet", "input.nulls": "drop"}, ("input.vertex_label",))
    assert taken["input.vertices"] == "names.parquet" and taken["input.nulls"] == "drop"
    made = update(base, tmp_path / "out", vertices=tmp_path / "names.parquet", report=False, device="cpu")
    assert made.manifest.input.vertices is not None and made.manifest.input.vertices.columns == ["name"]


def test_directed_programs_are_refused(tmp_path: Path) -> None:
    base = mine(
        rows(cliques()), tmp_path / "base", programs=("lambda", "pagerank"), directed=True, device="cpu", report=False
    )
    with pytest.raises(UsageError, match=r"not keep the directions .*pagerank .*: run the"):
        update(base, tmp_path / "out", insert=rows({(0, 50)}))


def test_weights_are_refused_where_programs_may_need_them(tmp_path: Path) -> None:
    edges = rows(cliques()).append_column("cost", pa.array([1.0] * len(cliques())))
    own: dict[str, Any] = {"weight_column": "cost", "device": "cpu", "report": False}
    base = mine(edges, tmp_path / "base", programs=("lambda", "sssp"), **own | {"sssp": {"source": "0"}})
    with pytest.raises(UsageError, match="may need"):
        update(base, tmp_path / "out", insert=rows({(0, 50)}))
    made = update(mine(edges, tmp_path / "alone", **own), tmp_path / "out", insert=rows({(0, 50)}), device="cpu")
    assert_equal(made, cliques() | {(0, 50)})


@with_both("with_programs")
def test_all_edges_go_and_come_back(with_programs: Result, tmp_path: Path) -> None:
    text, edges = is_text(with_programs), cliques() | {(50, 51), (50, 52), (51, 52)}
    own: dict[str, Any] = {"device": "cpu", "programs": ("lambda", "pagerank", "components")}
    empty = update(with_programs, tmp_path / "empty", delete=rows(edges, text), **own)
    assert_equal(empty, set(), text)
    assert empty.manifest.counts.vertices == empty.vertices.to_table().num_rows == 0
    made = update(empty, tmp_path / "made", insert=rows(edges, text), **own)
    assert_equal(made, edges, text)
    shown = " ".join(in_process.call("show", str(made.path)).output.split())
    assert re.search("input earlier result and .* changes; columns src, dst", shown) and "from Python" not in shown


@pytest.mark.parametrize("what", ["a limit", "directions", "attributes"])
def test_what_a_night_without_change_does_not_take_over(tmp_path: Path, what: str) -> None:
    """Values of programs that a limit ended or that depend on directions, and attributes of vertices."""
    runs.write_rows(tmp_path / "in.parquet", sorted(cliques()))
    pq.write_table(pa.table({"id": list(range(36)), "name": [f"n{v}" for v in range(36)]}), tmp_path / "names.parquet")
    ranked, joined = {"programs": ("lambda", "pagerank")}, {"programs": ("lambda", "components")}
    cases: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "a limit": ({"programs": {"run": joined["programs"], "max_supersteps": 1}}, joined),
        "directions": (ranked | {"directed": True}, ranked),
        "attributes": ({"vertices": str(tmp_path / "names.parquet")}, {}),
    }
    then, now = cases[what]
    own: dict[str, Any] = {"device": "cpu", "report": False}
    try:
        mine(tmp_path / "in.parquet", tmp_path / "base", incremental="auto", **then, **own)
    except NotConverged:
        assert what == "a limit"
    made = mine(tmp_path / "in.parquet", tmp_path / "made", previous=str(tmp_path / "base"), **now, **own)
    assert made.manifest.update is not None and made.manifest.converged
    run = mine(tmp_path / "in.parquet", tmp_path / "run", **now, **own)
    paths = [{output.path for output in one.manifest.outputs} for one in (made, run)]
    assert paths[0] == paths[1] and runs.flaws(made.path) == []
    assert made.vertices.to_table().to_pylist() == run.vertices.to_table().to_pylist()


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    whole, plus, minus = sorted(cliques()), [(0, 50), (1, 50), (0, 50)], [(50, 60), (4, 5)]
    for name, edges in (("a", whole), ("plus", plus), ("minus", minus), ("b", [*cliques() - {(4, 5)}, *plus[:2]])):
        runs.write_rows(tmp_path / f"{name}.parquet", edges)

    def command(*arguments: str) -> dict[str, Any]:
        ended = in_process.call(*arguments, "--device", "cpu", "--set", "output.report=false", "--json")
        assert ended.exit_code == 0, ended.output
        document: dict[str, Any] = json.loads(ended.stdout)
        return document

    command("run", "--input", "a.parquet", "--output", "base", "--set", "nightly.incremental=auto")
    assert Path("base/state/index.json").exists()
    batch = command(
        *("update", "base", "--insert", "plus.parquet", "--delete", "minus.parquet"),
        *("--output", "batch", "--set", "nightly.incremental=always"),
    )
    day = command("run", "--input", "b.parquet", "--previous", "base", "--output", "day")
    made = Result("batch").manifest.update
    assert made is not None and (made.repeated, made.absent, made.way) == (1, 1, "changes")
    assert day["counts"] == batch["counts"] | {"rows": day["counts"]["rows"], "duplicates": 0}
    assert [table.to_pylist() for table in tables(Result("day"))] == [t.to_pylist() for t in tables(Result("batch"))]
    assert runs.flaws(tmp_path / "day", tmp_path / "b.parquet") == []
    again = command("run", "--input", "b.parquet", "--previous", "base", "--output", "day")
    assert again["nothing_to_do"]
    events = [json.loads(line)["event"] for line in Path("day/log.jsonl").read_text().splitlines()]
    assert events.index("update_planned") < events.index("state_written") < events.index("run_finished")


def test_a_folder_of_states_holds_those_of_two_nights(base: Result, tmp_path: Path) -> None:
    result, states = base, tmp_path / "states" / "here"
    for night in range(3):
        edges = rows({(0, 1 + night)}, is_text(base))
        before, result = result, update(result, tmp_path / str(night), delete=edges, state=str(states))
        assert result.manifest.update is not None and "state" not in result.manifest.update.reason
        assert not (result.path / "state").exists()
    assert {place.name for place in states.iterdir()} == {before.manifest.run, result.manifest.run}


def test_an_update_whose_lists_take_too_much_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though updates are asked for whatever they cost, the edges that are left are peeled, here all of them."""
    monkeypatch.setattr(sys.modules[replay.__module__], "ENTRIES", 1)
    monkeypatch.setattr(finding_lambda, "LEAST_ROOM", 50)
    monkeypatch.setattr(finding_lambda, "MOST_LISTED", 1)
    clique = {(u, v) for v in range(12) for u in range(v)}
    base = mine(rows(clique - {(0, 1)}), tmp_path / "base", device="cpu", nightly={"incremental": "auto"}, report=False)
    how: dict[str, Any] = {"device": "cpu", "report": False, "nightly": {"incremental": "always"}}
    result = update(base, tmp_path / "out", insert=rows({(0, 1)}), **how)
    assert_equal(result, clique)
    made = result.manifest.update
    assert made is not None
    assert made.way == "changes"
    assert rest_peeled(result) == [(9, len(clique), len(clique))]


def rest_peeled(result: Result) -> list[tuple[int, int, int]]:
    lines = [json.loads(line) for line in (result.path / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    return [(line["level"], line["edges"], line["of"]) for line in lines if line["event"] == "rest_peeled"]
