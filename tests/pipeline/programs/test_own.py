"""Programs of the user: the page, settings from the fields, runs, and the messages for what is wrong."""

from __future__ import annotations

import re
import runpy
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import edgemill as package
import runs
from edgemill.pipeline import ProgramError, Result, UsageError, load_settings, mine, update
from edgemill.pipeline.python_api.update_settings import update_settings
from edgemill.pipeline.settings import declared_programs
from edgemill.pipeline.settings.sources import as_yaml, by_name, settings_of
from in_process import call

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "own-programs.md").read_text(encoding="utf-8")
SHOWN = dict(re.findall(r"```python\n# (\w+\.py)\n(.*?)```", PAGE, re.DOTALL))
PRINTED = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
EDGES = [(1, 2), (2, 3), (3, 4), (4, 5), (1, 3), (8, 9)]
HOW: dict[str, Any] = {"device": "cpu", "output.report": False, "programs": ("reach",)}
REACH: dict[str, Any] = {"program": ("my_programs:Reach",), "reach.source": 1, "reach.most": 2}

CARRYING = """
import edgemill

class Carried(edgemill.Program):
    state = {"carried": "float64"}
    combine = "sum"
    steps = 1

    def start(self, v):
        return {"carried": v.full(0.0)}, v.full(True, "bool")

    def emit(self, v):
        return v.full(2.0)

    def message(self, source, weight, target):
        return source.value * weight

    def apply(self, v, got, t):
        return {"carried": got}, got > 0

class Along(Carried):
    along = "multiply"
    message = edgemill.Program.message
"""

KINDS = """
from dataclasses import dataclass
import edgemill

@dataclass
class Kinds(edgemill.Program):
    state = {"kinds": "float64"}
    combine = "sum"
    rate: float | None = 0.5
    words: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()
    loud: bool = False
    title: str = ""
    either: int | str = 0

    def start(self, v):
        return {"kinds": v.full(0.0)}, v.full(True, "bool")

    def emit(self, v):
        return v.full(2.0)

    def apply(self, v, got, t):
        return {"kinds": got}, got > 0
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The modules of the page."""
    made = tmp_path_factory.mktemp("own")
    for name, text in SHOWN.items():
        (made / name).write_text(text, encoding="utf-8")
    (made / "faulty.py").write_text("import no_such_package\n", encoding="utf-8")
    (made / "empty.py").write_text(
        "import edgemill\n\nclass Without(edgemill.Program):\n    pass\n\nText = 'text'\n1 / 0\n", encoding="utf-8"
    )
    (made / "parts.py").write_text(
        "import edgemill\n\nclass Without(edgemill.Program):\n    pass\n\ntext = 'text'\n", encoding="utf-8"
    )
    (made / "weighted_programs.py").write_text(CARRYING, encoding="utf-8")
    (made / "kinds_program.py").write_text(KINDS, encoding="utf-8")
    return made


@pytest.fixture(autouse=True)
def importable(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(folder)


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return runs.write_rows(tmp_path_factory.mktemp("rows") / "rows.parquet", EDGES)


@pytest.fixture(scope="module")
def result(folder: Path, rows: Path, tmp_path_factory: pytest.TempPathFactory) -> Result:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        return mine(rows, tmp_path_factory.mktemp("result") / "out", **HOW, **REACH)


def test_the_page_prints_what_it_shows(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(folder / "trying.py"))
    assert capsys.readouterr().out == PRINTED[0]
    with pytest.raises(ProgramError) as raised:
        runpy.run_path(str(folder / "trying_wrong.py"))
    assert str(raised.value) == PRINTED[1].strip()


def test_a_run_publishes_its_columns(result: Result) -> None:
    table = result.vertices.to_table().to_pydict()
    assert table["id"] == [1, 2, 3, 4, 5, 8, 9]
    assert table["reach_hops"] == [0, 1, 1, 2, -1, -1, -1]
    assert table["reach_via"] == [1, 1, 1, 3, None, None, None]
    (record,) = result.manifest.programs
    assert (record.name, record.source, record.parameters) == ("reach", "my_programs:Reach", {"source": "1", "most": 2})
    assert record.sha256 is not None and record.order == "synchronous"


def test_a_trial_gives_the_same(result: Result) -> None:
    import my_programs  # type: ignore[import-not-found]

    found = package.try_program(my_programs.Reach(source=1, most=2), EDGES)
    table = result.vertices.to_table().to_pydict()
    assert found == {name: dict(zip(table["id"], table[f"reach_{name}"], strict=True)) for name in ("hops", "via")}
    with pytest.raises(UsageError, match=r"source: no vertex .* 6"):
        package.try_program(my_programs.Reach(source=6), EDGES)


def test_a_result_is_up_to_date_until_the_module_changes(
    result: Result, rows: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = str(result.place)
    again = mine(rows, place, **HOW, **REACH)
    assert again.manifest.run == result.manifest.run
    monkeypatch.setattr(declared_programs, "_source_digest", lambda module: "another")
    with pytest.raises(UsageError, match=r"program reach, my_programs:Reach, has changed"):
        mine(rows, place, **HOW, **REACH)


def test_an_update_takes_parameters_over_but_imports_nothing(rows: Path, tmp_path: Path) -> None:
    base = mine(rows, tmp_path / "base", **{**HOW, **REACH, "programs": ("lambda",)})
    with pytest.raises(UsageError, match=r"your.*\(my_programs:Reach\)"):
        update(base, tmp_path / "out")
    then = base.manifest.settings["reach"]
    given = {"output.path": "out", "programs.own": ("my_programs:Reach",)}
    assert {name: update_settings(base, given)[f"reach.{name}"] for name in then} == then
    for also in (given | {"programs.own": "my_programs:Reach"}, given | {"programs.run": ("lambda",)}):
        assert settings_of(update_settings(base, also)).model_dump()["reach"] == then
    other = update_settings(base, given | {"programs.own": ("reach=my_programs:Other",)})
    assert not [name for name in other if name.startswith("reach.")]
    for without in ((given | {"programs.own": ()}, ()), ({"output.path": "out"}, ("programs.own",))):
        assert not [name for name in update_settings(base, *without) if name.startswith("reach.")]


def load(*assignments: str, own: tuple[str, ...] = ("my_programs:Reach",), run: str = "reach") -> Any:
    return load_settings(
        overrides={"input.path": "in", "output.path": "out", "programs.own": own, "programs.run": run},
        assignments=assignments,
    )


def test_fields_are_settings(tmp_path: Path) -> None:
    settings: Any = load("reach.source=7", "reach.most=2")
    assert settings.reach.model_dump() == {"source": "7", "most": 2}
    (tmp_path / "settings.yaml").write_text(as_yaml(settings))
    assert load_settings(tmp_path / "settings.yaml").model_dump() == settings.model_dump()
    named: Any = load("near.source=7", own=("near=my_programs:Reach", "components:Smallest"), run="near,components")
    assert named.programs.vertex_programs == ("near", "components", "smallest")
    assert [column.name for column in named.program("near").columns] == ["near_hops", "near_via"]


def test_ids_on_the_command_line_stay_text() -> None:
    settings: Any = load("reach.source=0123", "reach.most=4")
    assert settings.reach.model_dump() == {"source": "0123", "most": 4}
    for text in ("yes", "1e3", "2026-01-01", "[a: b", "null", " a", "'a'"):
        assert load(f"near.source={text}", own=("near=my_programs:Reach",), run="near").near.source == text


@pytest.mark.parametrize(
    ("text", "source", "most"),
    [("{source: 0123, most: 2e1}", "0123", 20), ("{source: no, most: 010}", "no", 10), ("{source: '7'}", "7", 3)],
)
def test_parameters_in_a_settings_file_are_read_by_their_types(
    tmp_path: Path, text: str, source: str, most: int
) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text(f"programs: {{own: my_programs:Reach, run: reach}}\nreach: {text}\n")
    settings: Any = load_settings(path, {"input.path": "in", "output.path": "out"})
    assert settings.reach.source == source
    assert settings.reach.most == most
    with pytest.raises(UsageError, match=r"reach\.most.*'no'"):
        load_settings(path, {"input.path": "in", "output.path": "out"}, ["reach.most=no"])


@pytest.mark.parametrize("name", ["reach.source", "reach.most", "bfs.source", "pagerank.personal"])
def test_values_of_great_depth_are_refused(name: str) -> None:
    deep: list[Any] = []
    for _ in range(20_000):
        deep = [deep]
    given = {"input.path": "in", "output.path": "out", "programs.own": ("my_programs:Reach",), "programs.run": "reach"}
    with pytest.raises(UsageError, match=re.escape(name)) as caught:
        settings_of(given | {name: deep})
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("rate=1e-6", 1e-6),
        ("rate=5", 5.0),
        ("rate=null", None),
        ("words=no,1e5, #", ("no", "1e5", "#")),
        ("words=['a,b', 007]", ("a,b", "007")),
        ("numbers=1,2e1,1_0", (1, 20, 10)),
        ("numbers=[1, 010]", (1, 10)),
        ("loud=yes", True),
        ("title=yes", "yes"),
        ("either=007", "007"),
        ("either=7", 7),
    ],
)
def test_parameters_of_every_type(written: str, value: object) -> None:
    found: Any = load(f"kinds.{written}", own=("kinds_program:Kinds",), run="kinds")
    assert getattr(found.kinds, written.partition("=")[0]) == value


def test_programs_that_use_weights(tmp_path: Path) -> None:
    edges = pa.table({"src": [1, 2], "dst": [2, 3], "w": [1.0, 3.0]})
    own = ("weighted_programs:Carried", "weighted_programs:Along")
    how: dict[str, Any] = HOW | {"programs": ("carried", "along"), "program": own}
    table = mine(edges, tmp_path / "out", weight_column="w", **how).vertices.to_table().to_pydict()
    assert table["carried"] == table["along"] == [2, 8, 6]
    with pytest.raises(UsageError, match=r"\(`along`.*'multiply'.*weighted_programs:Along\)"):
        mine(edges.drop_columns("w"), tmp_path / "other", **how)
    without = how | {"programs": ("carried",), "program": ("weighted_programs:Carried",)}
    with pytest.raises(ProgramError, match=r"`message`.*0.*`weight`"):
        mine(edges.drop_columns("w"), tmp_path / "other", **without)


@pytest.mark.parametrize(
    ("assignments", "places", "message"),
    [
        ((), ("my_programs:Reach",), "the program reach needs the id of a vertex: --set reach.source=ID"),
        (
            ("reach.source=1", "reach.mots=2"),
            ("my_programs:Reach",),
            "unknown setting reach.mots; did you mean reach.most",
        ),
        (("reach.source=1", "reach.most=a"), ("my_programs:Reach",), "reach.most: must be a valid integer, got 'a'"),
        ((), ("my_programs",), "must be module:Class or name=module:Class"),
        ((), ("my_programs:Rech",), r"has no class Rech; did you mean Reach"),
        ((), ("my_program:Reach",), "there is no module my_program for the program my_program:Reach"),
        ((), ("parts:text",), "parts:text is not a subclass of edgemill.Program"),
        ((), ("labels=components:Smallest",), "there are two programs 'labels'"),
        ((), ("input=components:Smallest",), "'input' is a section of settings|are two programs"),
        ((), ("degree=components:Smallest",), "the program degree has a column 'degree', as every result has"),
    ],
)
def test_wrong_settings_are_refused(assignments: tuple[str, ...], places: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load(*assignments, own=places, run="components" if places != ("my_programs:Reach",) else "reach")


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("faulty:Any", "program faulty:Any: its module needs no_such_package, which is not installed"),
        ("empty:Text", r"importing its module failed: ZeroDivisionError: division by zero \(empty.py, line 7: 1 / 0\)"),
        ("parts:Without", "it does not define apply, emit, start"),
    ],
)
def test_modules_that_fail_are_refused(place: str, message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        load(own=(place,), run="components")


def test_installed_programs_are_listed_and_run(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("smallest", "components:Smallest", declared_programs.GROUP)
    monkeypatch.setattr(
        "importlib.metadata.entry_points", lambda group: [point] if group == declared_programs.GROUP else []
    )
    listed = call("programs", "--program", "my_programs:Reach").output
    assert "reach.most (3)" in listed and "reach.source (required)" in listed
    assert "`component`" in listed
    assert load(own=(), run="smallest").programs.vertex_programs == ("smallest",)


def test_a_program_that_fails_ends_a_run_with_its_message(folder: Path, rows: Path, tmp_path: Path) -> None:
    text = SHOWN["wrong.py"].replace("v.in_degree.mean()", "v.degree")
    (folder / "failing.py").write_text(text, encoding="utf-8")
    command = ["run", "--input", rows, "--output", tmp_path / "out", "--device", "cpu", "--program", "failing:Spread"]
    done = call(*map(str, command), "--programs", "spread")
    assert done.exit_code == 9
    assert all(fact in done.output for fact in ("`apply`", "AttributeError"))
    assert not (tmp_path / "out" / "manifest.json").exists()


def test_workers_need_the_module(rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "late_programs.py").write_text(SHOWN["my_programs.py"], encoding="utf-8")
    with runs.cluster(n_workers=1, threads_per_worker=1) as client:
        monkeypatch.syspath_prepend(tmp_path)  # the worker has started with the path before
        (address,) = client.scheduler_info()["workers"]
        with pytest.raises(UsageError) as raised:
            mine(rows, tmp_path / "out", client=client, **HOW, **REACH | {"program": ("late_programs:Reach",)})
        assert f"worker {address}: " in str(raised.value) and "no module late_programs" in str(raised.value)
        runs.assert_nothing_left(client)


def test_workers_need_the_same_version() -> None:
    (found,) = declared_programs.find_programs(["my_programs:Reach"]).values()
    assert declared_programs.check_importable([("reach", found.place, found.sha256)]) is None
    assert "another version there" in str(declared_programs.check_importable([("reach", found.place, "0" * 64)]))


def test_the_program_of_edges_on_the_page() -> None:
    import edges_of_mine  # type: ignore[import-not-found]

    found = package.try_program(edges_of_mine.Overlap(), [(1, 2), (2, 3), (1, 3), (3, 4)])
    assert found == {"overlap": {(1, 2): 0.5, (1, 3): 0.5, (2, 3): 0.5, (3, 4): 0.0}}


DECLARED = """
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import pydantic
import edgemill


@dataclass(frozen=True)
class Marked(edgemill.Program):
    \"\"\"Whether a vertex is one of several, and how many of its neighbours are.\"\"\"

    vertices: edgemill.VertexIds = ()
    \"\"\"The vertices.\"\"\"
    times: Annotated[int, pydantic.Field(ge=1)] = 2
    \"\"\"What is multiplied.\"\"\"

    state = {"marked": "bool", "near": "float64", "scratch": "int64"}
    columns = {"marked": edgemill.Column("Whether it is."), "near": edgemill.Column("How many are.", "close_by", 0.0)}
    cost = edgemill.Cost(entry=1.0)
    combine = "sum"
    view = "either"
    steps = 1

    def start(self, v):
        return {"marked": np.isin(v.number, self.vertices), "near": v.full(0.0), "scratch": v.number}, v.full(1.0)

    def emit(self, v):
        return v.marked * float(self.times)

    def apply(self, v, got, t):
        return {"marked": v.marked, "near": got, "scratch": v.scratch}, got
"""


def test_a_program_declares_its_columns_and_cost(rows: Path, folder: Path, tmp_path: Path) -> None:
    (folder / "declaring.py").write_text(DECLARED, encoding="utf-8")
    how: dict[str, Any] = HOW | {"programs": "marked", "program": "declaring:Marked"}
    result = mine(rows, tmp_path / "out", **how | {"marked": {"vertices": [1, 3, 9]}})
    assert result.vertices.to_table().select(["id", "marked_marked", "close_by"]).to_pydict() == {
        "id": [1, 2, 3, 4, 5, 8, 9],
        "marked_marked": [True, False, True, False, False, False, True],
        "close_by": [2, 4, 2, 2, None, 2, None],
    }
    assert "marked_scratch" not in result.vertices.schema.names
    (record,) = result.manifest.programs
    assert record.meanings == {"marked_marked": "Whether it is.", "close_by": "How many are."}
    assert record.parameters == {"vertices": ["1", "3", "9"], "times": 2}
    listed = call("programs", "--program", "declaring:Marked").output
    assert all(fact in listed for fact in ("marked.times", "(2)"))
    assert "close_by" in listed
    plan = package.make_plan(settings_of(by_name(rows, tmp_path / "other", **how)))
    assert plan.programs is not None and plan.programs.all_seconds["marked"] == pytest.approx(12, rel=0.1)
    other = by_name(rows, tmp_path / "other", **how | {"program": "near=declaring:Marked", "programs": "near"})
    assert [column.name for column in settings_of(other).program("near").columns] == ["near_marked", "near_near"]
    with pytest.raises(UsageError, match=r"marked\.times.*1.*0"):
        mine(rows, tmp_path / "other", **how | {"marked": {"times": 0}})
    with pytest.raises(package.InputError, match=r"marked\.vertices.*'6'"):
        mine(rows, tmp_path / "other", **how | {"marked": {"vertices": "6"}})


def test_a_program_of_edgemill_can_be_one_of_the_user(tmp_path: Path) -> None:
    """With the same parameters it has the same values, in columns that have its new name."""
    edges = pa.table({"src": [1, 2, 3, 3, 4, 8], "dst": [2, 3, 1, 4, 5, 9], "w": [1.0, 2.0, 0.5, 1.0, 0.0, 1.0]})
    shipped = declared_programs.every_shipped()
    given: dict[str, Any] = {}
    for name, program in shipped.items():
        for one in (name, f"own_{name}"):
            given |= {f"{one}.{vertex}": 1 for vertex in program.vertices}
    how: dict[str, Any] = {"device": "cpu", "report": False, "weight_column": "w", "directed": True}
    how |= {"programs": ("lambda", *shipped), "program": [f"own_{name}={own.place}" for name, own in shipped.items()]}
    result = mine(edges, tmp_path / "out", **how, **given)
    again = {name: settings_of(by_name("a", "b", **how, **given)).program(f"own_{name}") for name in shipped}
    for which, table in (("columns", result.vertices.to_table()), ("edge_columns", result.edges.to_table())):
        for name, program in shipped.items():
            for one, other in zip(getattr(program, which), getattr(again[name], which), strict=True):
                assert table[one.name].equals(table[other.name]), other.name
    records = {record.name: record for record in result.manifest.programs}
    assert records["own_bfs"].source == shipped["bfs"].place and records["bfs"].source is None
    assert runs.flaws(tmp_path / "out") == []


def test_strong_components_by_the_name_of_its_class(rows: Path, tmp_path: Path) -> None:
    place = "strong=edgemill.tasks.programs.shipped:StrongComponents"
    table = mine(rows, tmp_path / "out", program=place, programs="strong", device="cpu").vertices.to_table()
    assert table.select(["id", "strong"]).to_pydict() == {
        "id": [1, 2, 3, 4, 5, 8, 9],
        "strong": [1, 1, 1, 1, 1, 8, 8],
    }
    with pytest.raises(UsageError, match="class StrongComponent"):
        load(own=(place[:-1],), run="strong")


SUPPORTS = """
import edgemill

class Corners(edgemill.Program):
    state = {"twice": "float64"}
    combine = "sum"
    along = "multiply"
    view = "either"
    by_support = True
    steps = 1

    def start(self, v):
        return {"twice": v.full(0.0)}, v.full(1.0)

    def emit(self, v):
        return v.full(1.0)

    def apply(self, v, got, t):
        return {"twice": got}, got

class Unweighted(Corners):
    along = ""
"""


@pytest.mark.parametrize("directed", [False, True])
def test_weights_can_be_supports(folder: Path, tmp_path: Path, directed: bool) -> None:
    """The supports of the edges of a vertex sum to twice its triangles. Directions and other weights do not matter."""
    (folder / "supports.py").write_text(SUPPORTS, encoding="utf-8")
    ends = [(1, 2), (2, 1), (2, 3), (3, 1), (3, 4), (4, 1), (4, 5)]
    edges = pa.table({"src": [a for a, _ in ends], "dst": [b for _, b in ends], "w": [9.0] * len(ends)})
    how: dict[str, Any] = {"device": "cpu", "report": False, "directed": directed, "repeats": "max"}
    how |= {"programs": ("lambda", "corners", "pagerank", "again"), "pagerank": {"weighted": True}}
    how |= {"program": ("supports:Corners", "again=supports:Corners"), "weight_column": "w"}
    table = mine(edges, tmp_path / "out", **how).vertices.to_table().to_pydict()
    assert table["again"] == [4, 2, 4, 2, 0] and [2 * count for count in table["triangles"]] == table["again"]
    import supports  # type: ignore[import-not-found]

    found = package.try_program(supports.Corners(), ends, directed=directed)
    assert found == {"twice": {1: 4, 2: 2, 3: 4, 4: 2, 5: 0}}
    with pytest.raises(ProgramError, match=r"`by_support`.*used"):
        package.try_program(supports.Unweighted(), ends)
    with pytest.raises(UsageError, match=r"weighs.*--programs"):
        load(own=("supports:Corners",), run="corners")


def test_an_update_runs_programs_of_the_user(rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In its process, with the values of a run of the whole; those of an earlier version of the module do not count."""
    how: dict[str, Any] = HOW | REACH | {"programs": ("lambda", "reach")}
    base = mine(rows, tmp_path / "base", **how)
    more = pa.table({"src": [5, 3], "dst": [8, 9]})
    made = update(base, tmp_path / "out", insert=more, program=("my_programs:Reach",), device="cpu")
    assert made.manifest.update is not None
    whole = mine(runs.write_rows(tmp_path / "all.parquet", [*EDGES, (5, 8), (3, 9)]), tmp_path / "whole", **how)
    assert made.vertices.to_table().equals(whole.vertices.to_table())
    (record,) = made.manifest.programs
    assert (record.source, record.sha256) == ("my_programs:Reach", whole.manifest.programs[0].sha256)
    monkeypatch.setattr(declared_programs, "_source_digest", lambda module: "another")
    again = update(made, tmp_path / "again", program=("my_programs:Reach",), device="cpu")
    assert again.manifest.programs[0].sha256 == "another" and again.manifest.programs[0].begun == "nothing"
