"""Messages name settings as the user sets them: by flags, keywords or paths in the settings file."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import edgemill as api
from edgemill.pipeline import UsageError, mine
from edgemill.pipeline.messages.wording import did_you_mean
from edgemill.pipeline.python_api.keywords import RunKeywords
from edgemill.pipeline.settings.declared_programs import every_shipped
from edgemill.pipeline.settings.models import SECTIONS
from edgemill.pipeline.settings.setting_names import SettingOrigin, naming_keywords, with_flags, with_keywords
from edgemill.pipeline.settings.sources import KEYWORDS, SHORT_NAMES
from in_process import call
from made import made

EVERY = [f"{section}.{name}" for section, model in SECTIONS.items() for name in model.model_fields]
EVERY += [f"{name}.{key}" for name, program in every_shipped().items() for key in program.parameters]


@pytest.mark.parametrize(
    ("text", "flags", "keywords"),
    [
        ("raise partitioning.count", "raise --partitions", "raise partitions"),
        ("use cluster.device=cpu, perhaps", "use --device cpu, perhaps", 'use device="cpu", perhaps'),
        ("replace it with output.overwrite=true", "replace it with --overwrite", "replace it with overwrite=True"),
        ("set checkpoint.path=…", "give --set checkpoint.path=…", 'give checkpoint={"path": …}'),
        ("set bounding.operator", "give --set bounding.operator", "set bounding.operator"),
        ("memory (cluster.workers=…).", "memory (--workers …).", "memory (workers=…)."),
        ("use --set input.nulls=drop", "use --set input.nulls=drop", 'use nulls="drop"'),
        ("nightly.latest=false", "--set nightly.latest=false", "latest=False"),
        ("ingest.rows_per_block: no", "--set ingest.rows_per_block: no", "ingest.rows_per_block: no"),
    ],
)
def test_settings_in_messages(text: str, flags: str, keywords: str) -> None:
    assert (with_flags(text), with_keywords(text)) == (flags, keywords)


@pytest.mark.parametrize(
    ("text", "keywords"),
    [
        ("apart with --bipartite prefix, or leave it out", 'apart with bipartite="prefix", or leave it out'),
        ("with --previous /a/b-c; why", 'with previous="/a/b-c"; why'),
        ("name their column with --weight-column", "name their column with weight_column"),
        ("with --source-column and --target-column", "with source_column and target_column"),
        ("with --vertex-id COLUMN", "with vertex_id=…"),
        ("run again with --programs lambda,pagerank", 'run again with programs=["lambda", "pagerank"]'),
        ("or replace it with --overwrite", "or replace it with overwrite=True"),
        ("a vertex: --set bfs.source=ID", 'a vertex: bfs={"source": …}'),
        ("edgemill top lists some", "edgemill.top lists some"),
        ("edgemill ktruss /a/b -k 4 --list lists the components", "edgemill.ktruss_groups lists the components"),
        ("docker run --shm-size", "docker run --shm-size"),
        ("--vertices '/a/b.parquet' does not exist", "vertices '/a/b.parquet' does not exist"),
    ],
)
def test_flags_and_commands_in_messages(text: str, keywords: str) -> None:
    assert with_keywords(text) == keywords
    assert with_keywords(keywords) == keywords


def test_a_program_takes_its_settings_by_their_own_names() -> None:
    text = "damping, pagerank.damping: --set bfs.source=ID"
    assert with_keywords(text, "bfs") == "damping, pagerank.damping: source=…"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, api.Result]:
    """One of λ and one of a program alone."""
    folder = tmp_path_factory.mktemp("made")
    ranks = {"pagerank": {"pagerank": (pa.float64(), {1: 0.5, 2: 0.5})}}
    return {
        "lambda": made(folder / "lambda", {(1, 2): 1, (1, 3): 1, (2, 3): 1}),
        "ranks": made(folder / "ranks", {(1, 2): 0}, programs=ranks, searched=False),
    }


FRAME = pa.table({"src": [1, 2], "dst": [2, 3]})
OTHER = FRAME.rename_columns(["a", "b"])
WRONG: dict[str, Callable[[dict[str, api.Result], Path], object]] = {
    "mine": lambda found, out: api.mine(FRAME, bounding={"method": "band", "max_seconds": -1}),
    "mine, weights": lambda found, out: api.mine(FRAME, weight_column="w"),
    "mine, columns": lambda found, out: api.mine(pa.table({"a": [1], "b": [2], "c": [3]})),
    "mine, nulls": lambda found, out: api.mine(pa.table({"src": [1, None], "dst": [2, 3]})),
    "mine, exists": lambda found, out: api.mine(FRAME, found["lambda"].path.parent),
    "mine, vertices": lambda found, out: api.mine(FRAME, vertices=out / "none.parquet"),
    "mine, repeats": lambda found, out: api.mine(FRAME, repeats="sum"),
    "mine, attributes": lambda found, out: api.mine(FRAME, vertex_label="x"),
    "run, bfs": lambda found, out: api.run(FRAME, programs=["bfs"]),
    "run, twice": lambda found, out: api.run(FRAME, programs=["lambda", "similarty"]),
    "update": lambda found, out: api.update(found["ranks"], out / "next", insert=FRAME),
    "update, input": lambda found, out: api.update(found["lambda"], out / "next", insert=FRAME, where="a > 1"),
    "update, columns": lambda found, out: api.update(
        found["lambda"], out / "n", insert=FRAME.rename_columns(["a", "b"])
    ),
    "estimate": lambda found, out: api.estimate(FRAME, device="gpu", workers=9),
    "estimate, none": lambda found, out: api.estimate(),
    "pagerank": lambda found, out: api.pagerank(FRAME, weighted=True),
    "pagerank, value": lambda found, out: api.pagerank(FRAME, damping=7),
    "sssp": lambda found, out: api.sssp(FRAME, source=1),
    "bfs": lambda found, out: api.bfs(FRAME),
    "Result, open": lambda found, out: api.open(out / "none"),
    "Result, save": lambda found, out: found["lambda"].save(found["ranks"].path),
    "Result, edges": lambda found, out: found["ranks"].edges,
    "Result, hierarchy": lambda found, out: found["ranks"].hierarchy,
    "Result, distances": lambda found, out: found["lambda"].distances,
    "Result, attributes": lambda found, out: found["lambda"].attributes,
    "Result, lambda": lambda found, out: api.plot_lambda(found["ranks"]),
    "Result, to_networkx": lambda found, out: found["ranks"].vertices.to_networkx(),
    "top": lambda found, out: api.top(found["lambda"], "pagerank"),
    "top, none": lambda found, out: api.top(found["ranks"]),
    "find_vertex": lambda found, out: api.find_vertex(found["lambda"], 9),
    "find_group": lambda found, out: api.find_group(found["lambda"], 10**6),
    "find_dn_graph": lambda found, out: api.find_dn_graph(found["lambda"], 10**6),
    "members_of": lambda found, out: api.members_of(found["lambda"], 10**6),
    "groups_of": lambda found, out: api.groups_of(found["ranks"], 1),
    "ktruss": lambda found, out: api.ktruss(found["ranks"], 3),
    "ktruss, component": lambda found, out: api.ktruss(found["lambda"], 3, component=10**6),
    "ktruss_groups": lambda found, out: api.ktruss_groups(found["lambda"], 1),
    "find_track": lambda found, out: api.find_track(found["lambda"], 10**6),
}


@pytest.mark.parametrize("call", WRONG)
def test_functions_name_keywords_and_functions(call: str, results: dict[str, api.Result], tmp_path: Path) -> None:
    """No flag, no command, and no keyword that the function refuses."""
    with pytest.raises(api.EdgemillError) as caught:
        WRONG[call](results, tmp_path)
    told = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", [])])
    assert not re.search(r"--[a-z]|\bedgemill [a-z]+ (lists|matches)|--set", told), told
    function = call.partition(",")[0]
    named = re.findall(r"\b([a-z_]+)=", told)
    if function in every_shipped():
        assert {*named} <= {*inspect.signature(getattr(api, function)).parameters, *RunKeywords.__annotations__}, told
    elif function in ("mine", "run", "update", "estimate"):
        assert {*named} <= {*KEYWORDS, *SECTIONS, *every_shipped()}, told


def test_a_command_names_flags_where_python_names_keywords(results: dict[str, api.Result]) -> None:
    with pytest.raises(UsageError) as caught:
        api.top(results["ranks"])
    assert 'programs=["lambda", "pagerank"]' in str(caught.value)
    assert "--programs lambda,pagerank" in call("top", str(results["ranks"].path)).stderr


@pytest.mark.parametrize(
    "text",
    [
        "/data/input.path is empty",
        "input.path/part.parquet is damaged",
        "input.path.parquet is damaged",
        "column 'input.path' is missing",
        "my-input.path",
        "unknown setting cluster.gpus",
    ],
)
def test_what_is_no_setting_stays(text: str) -> None:
    assert with_flags(text) == with_keywords(text) == text


def test_every_setting_is_named_by_a_flag() -> None:
    short = {name: f"--{flag.replace('_', '-')}" for flag, name in SHORT_NAMES.items()}
    assert len(EVERY) > 40
    for name in EVERY:
        assert with_flags(f"{name}: no") == f"{short.get(name, f'--set {name}')}: no"


def test_a_setting_of_the_file_keeps_its_path_and_advice_is_a_flag() -> None:
    typed = SettingOrigin(file=True, flags=frozenset({"cluster.workers"}))
    text = "bounding.method, cluster.workers: use cluster.device=cpu"
    assert with_flags(text, typed) == "bounding.method, --workers: use --device cpu"


def test_notes_are_put_into_keywords_too() -> None:
    error = UsageError("raise partitioning.count")
    error.add_note("or set output.overwrite=true")
    with pytest.raises(UsageError) as caught, naming_keywords():
        raise error
    assert (str(caught.value), caught.value.__notes__) == ("raise partitions", ["or give overwrite=True"])


def test_the_command_names_flags(tmp_path: Path) -> None:
    paths = ("--input", "edges", "--output", "out")
    assert call("run", *paths, "--partitions", "0").stderr.startswith("Error: --partitions: must be ")
    assert call("run", *paths, "--set", "output.report=maybe").stderr.startswith("Error: --set output.report: must be ")
    config = tmp_path / "night.yaml"
    config.write_text("partitioning: {count: 0}\ncluster: {workers: 2}")
    told = call("run", str(config), *paths, "--workers", "0").stderr
    assert told.startswith("Error: partitioning.count: must be ")
    assert "; --workers: must be " in told


def test_python_names_keywords(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/other").touch()
    with pytest.raises(UsageError, match=r"^output .*/out exists: choose another, or replace it with overwrite=True$"):
        mine(tmp_path / "edges", tmp_path / "out", device="cpu")


def test_suggestions() -> None:
    known = [("nulls", "input.nulls"), ("path", "input.path"), ("path", "output.path")]
    assert did_you_mean("null", known) == "; did you mean input.nulls?"
    assert did_you_mean("paths", known) == "; did you mean input.path or output.path?"
    assert did_you_mean("colour", known) == ""


@pytest.mark.parametrize(
    "arguments",
    [["run"], ["plan", "--inptu", "x"], ["show", "none"], ["verify", "none"]],
    ids=lambda arguments: arguments[0],
)
def test_an_error_is_a_json_document_too(arguments: list[str]) -> None:
    plain, told = call(*arguments), call(*arguments, "--json")
    assert (plain.stdout, plain.exit_code, told.exit_code) == ("", 2, 2)
    assert told.stderr == plain.stderr
    document = json.loads(told.stdout)
    assert (document["exit_code"], document["notes"]) == (2, [])
    assert f"Error: {document['error']}\n" in told.stderr
