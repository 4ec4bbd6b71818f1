"""Settings: their sources, their precedence, and the message for every mistake."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import pytest

from edgemill.pipeline.cluster.connecting.connect import _address as scheduler_address
from edgemill.pipeline.messages.exits import exit_code, message
from edgemill.pipeline.settings.models import ClusterSettings
from edgemill.pipeline.settings.sources import as_yaml, load_settings, make_settings
from edgemill.tasks.errors import UsageError
from in_process import call

PATHS = {"input.path": "edges", "output.path": "out"}


def test_defaults_file_flags_and_assignments_in_rising_order(tmp_path: Path) -> None:
    config = tmp_path / "run.yaml"
    config.write_text(
        "input: {path: a}\noutput: {path: b}\npartitioning: {count: 3}\n"
        "bounding: {method: peel, carrier: dask}\ncluster:\n"
    )
    settings = load_settings(config, {"input.path": "c"}, ["partitioning.count=5", "cluster.workers=2"])
    assert (settings.input.path, settings.output.path) == ("c", "b")
    assert (settings.partitioning.count, settings.cluster.workers) == (5, 2)
    assert (settings.bounding.method, settings.bounding.carrier) == ("peel", "dask")


LITERAL = ["#", "%", "|", ",", ";", ":", "!", "&", "*", "~", "-", "?", "@", "`", ">", "'", "{", "[", "]", "}", "]["]
"""Text that YAML refuses, or takes for something else."""


@pytest.mark.parametrize("text", [*LITERAL, "# no", "//", "a: b", "no", "1e5", "010", "null ", " ", "null x"])
def test_an_assigned_text_is_taken_as_it_stands(text: str) -> None:
    assert load_settings(None, PATHS, [f"input.comment={text}"]).input.comment == text


@pytest.mark.parametrize("text", [one for one in LITERAL if one != "]["])
def test_an_assigned_delimiter_is_taken_as_it_stands(text: str) -> None:
    assert load_settings(None, PATHS, [f"input.delimiter={text}"]).input.delimiter == text


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("input.comment=", ""),
        ('input.comment=""', ""),
        ("input.comment=''", ""),
        ('input.comment="#"', "#"),
        ("input.comment=null", None),
        ("input.comment='null'", "null"),
        ("input.comment=it's", "it's"),
        ('input.where="my col" = "other col"', '"my col" = "other col"'),
        ("input.where=a = 'b: c'", "a = 'b: c'"),
        ("input.complete_marker=_SUCCESS", "_SUCCESS"),
        ("input.storage_options.key=a=b", "a=b"),
        ("input.storage_options.key=0123", "0123"),
        ("input.storage_options.key=12e4567", "12e4567"),
        ("input.storage_options.key=1_000", "1_000"),
        ("input.storage_options.key=9000", 9000),
        ("input.storage_options.key=9007199254740993", 9007199254740993),
        ("input.storage_options.key=1.0", 1.0),
        ("input.storage_options.key='9000'", "9000"),
        ("input.storage_options.key=0.5", 0.5),
        ("input.storage_options.key=true", True),
        ("input.storage_options.key=no", "no"),
        ("input.storage_options.key=null", None),
        ("input.storage_options.key=2026-11-29", "2026-11-29"),
        (
            'input.storage_options.key={"endpoint_url": "http://a:1", "port": 1, "id": 007}',
            {"endpoint_url": "http://a:1", "port": 1, "id": "007"},
        ),
        ("output.overwrite=true", True),
        ("output.overwrite=Yes", True),
        ("output.overwrite=off", False),
        ("bounding.max_seconds=1.5", 1.5),
        ("bounding.max_seconds=1e-6", 1e-6),
        ("bounding.max_seconds=null", None),
        ("ingest.rows_per_block=1_000", 1000),
        ("ingest.rows_per_block=5e3", 5000),
        ("ingest.rows_per_block=1.5e3", 1500),
        ("ingest.rows_per_block=010", 10),
        ("ingest.rows_per_block=0x10", 16),
        ("ingest.rows_per_block= 10 ", 10),
        ("partitioning.count=auto", "auto"),
        ("partitioning.count=2e1", 20),
        ("cluster.workers=null", None),
        ("nightly.full_every=010", 10),
        ("programs.run=lambda, components", ("lambda", "components")),
        ("programs.run=[lambda, components]", ("lambda", "components")),
        ("programs.own=[]", ()),
        ("input.source_column=no", "no"),
        ("input.source_column=007", "007"),
        ("input.source_column=1:30", "1:30"),
        ("input.source_column={a}", "{a}"),
    ],
)
def test_an_assigned_value_is_read_by_the_type_of_its_setting(written: str, value: object) -> None:
    name = written.partition("=")[0]
    given: dict[str, object] = {"input.target_column": "b"} if name == "input.source_column" else {}
    found: Any = load_settings(None, PATHS | given, [written])
    for part in name.split("."):
        found = found[part] if isinstance(found, dict) else getattr(found, part)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("bounding: {max_seconds: 1e-6}", ("bounding", "max_seconds", 1e-6)),
        ("pagerank: {tolerance: 1e-6}", ("pagerank", "tolerance", 1e-6)),
        ("pagerank: {tolerance: 1.e-6}", ("pagerank", "tolerance", 1e-6)),
        ("ingest: {sample_rows: 1e6}", ("ingest", "sample_rows", 1_000_000)),
        ("ingest: {sample_rows: 010}", ("ingest", "sample_rows", 10)),
        ("ingest: {sample_rows: 1_000}", ("ingest", "sample_rows", 1000)),
        ("bfs: {source: 0123}", ("bfs", "source", "0123")),
        ("bfs: {source: no}", ("bfs", "source", "no")),
        ("bfs: {source: 1:30}", ("bfs", "source", "1:30")),
        ("bfs: {source: 2026-11-29}", ("bfs", "source", "2026-11-29")),
        ("bfs: {source: 1e5}", ("bfs", "source", "1e5")),
        ("pagerank: {personal: [007, on, 1_0]}", ("pagerank", "personal", ("007", "1_0", "on"))),
        ("pagerank: {personal: 007}", ("pagerank", "personal", ("007",))),
        ("nightly: {previous: 2026-11-29}", ("nightly", "previous", "2026-11-29")),
        ("cluster: {local_directory: on}", ("cluster", "local_directory", "on")),
        ("output: {overwrite: on}", ("output", "overwrite", True)),
        ("output: {overwrite: TRUE}", ("output", "overwrite", True)),
        ("input: {comment: '#'}", ("input", "comment", "#")),
        ("input: {comment: ~}", ("input", "comment", None)),
        ("input: {comment: ''}", ("input", "comment", "")),
        ("input: {vertices: v, vertex_columns: [no, 1]}", ("input", "vertex_columns", ("no", "1"))),
        ("input: {vertices: v, vertex_columns: no}", ("input", "vertex_columns", ("no",))),
        ("input: {storage_options: {key: 0123}}", ("input", "storage_options", {"key": "0123"})),
        (
            "checkpoint: {storage_options: &a {key: x}}\ninput: {storage_options: {<<: *a, secret: y}}",
            ("input", "storage_options", {"key": "x", "secret": "y"}),
        ),
    ],
)
def test_a_settings_file_is_read_by_the_types_of_the_settings(
    tmp_path: Path, text: str, value: tuple[str, str, object]
) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(text)
    given = {"input.path": "edges", "output.path": "out"}
    section, name, wanted = value
    found = getattr(getattr(load_settings(path, given), section), name)
    assert found == wanted
    assert type(found) is type(wanted)


@pytest.mark.parametrize(
    "text", ['{"address": ' + "[" * 20_000, "[" * 20_000, '{"address": 3', "[]"], ids=["deep", "list", "cut", "empty"]
)
def test_a_scheduler_file_of_other_content(tmp_path: Path, text: str) -> None:
    path = tmp_path / "scheduler.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=r"cluster\.scheduler_file: .*scheduler\.json"):
        scheduler_address(ClusterSettings(scheduler_file=str(path)))


def test_a_malformed_configuration_of_dask_is_a_mistake_in_settings(tmp_path: Path) -> None:
    (tmp_path / "dask.yaml").write_text("a: " + "[" * 2_000)
    with pytest.raises(ValueError, match="dask config") as caught:
        list(dask.config.collect_yaml([str(tmp_path)]))
    assert exit_code(caught.value) == 2
    assert "dask.yaml" in message(caught.value)


MANY = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12)
)
"""Aliases that would expand to 9^12 values."""
DEEP = [
    ("[" * 20_000, "within one another"),
    ("input: {storage_options: " + "{a: " * 20_000, "within one another"),
    ("- " * 20_000, "within one another"),
    (MANY, "aliases"),
    ("input: {storage_options: &a {b: *a}}", "aliases"),
]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        *DEEP,
        ("cluster: {workers: 1}\ncluster: {workers: 2}", "line 2, column 1: 'cluster' is given twice"),
        ("cluster: {workers: 1, workers: 2}", "line 1, column 23: 'workers' is given twice"),
        ("cluster: {workers: !!python/object:os.system x}", "tag"),
        ("cluster: {? [a] : 2}", "name"),
        ("cluster: {<<: 3}", "mappings"),
    ],
)
def test_what_a_settings_file_must_not_have(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        load_settings(path)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("setting", ["input.storage_options", "input.storage_options.a", "programs.own", "cluster"])
@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("[" * 20_000, "within one another"),
        ("{a: " * 20_000, "within one another"),
        ("[&a [x, *a]]", "aliases"),
        ("{a: 1, a: 2}", "twice"),
        ("[1", "not valid YAML"),
    ],
)
def test_assigned_lists_and_mappings_have_bounds(setting: str, value: str, message: str) -> None:
    is_list, takes = value[0] == "[", {"programs.own": "[", "input.storage_options.a": "[{"}.get(setting, "{")
    with pytest.raises(UsageError) as caught:
        load_settings(None, PATHS, [f"{setting}={value}"])
    if ("[" if is_list else "{") in takes:
        assert message in str(caught.value)
        assert f"--set {setting}" in str(caught.value)
    assert setting in str(caught.value)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    ("given", "assignments", "message"),
    [
        ({}, ["cluster.workers=1", "cluster.workers=2"], "--set cluster.workers is given twice"),
        ({"cluster.workers": 1}, ["cluster.workers=1"], "--set cluster.workers replaces cluster.workers"),
        ({"cluster.workers": 1}, ["cluster={workers: 2}"], "--set cluster replaces cluster.workers"),
        ({}, ["cluster.workers=1", "cluster={workers: 2}"], "--set cluster replaces cluster.workers"),
        ({}, ["a." * 20_000 + "b=1"], "--set takes a.b=c"),
        ({}, ["cluster.workers="], "--set cluster.workers= has no value: null is none"),
        ({}, ["output.overwrite= "], "--set output.overwrite= has no value"),
        ({}, ["pagerank.damping=0.5"], "--set pagerank.damping has no effect"),
        ({"programs.run": "components"}, ["bfs.source=1"], "programs.run=components,bfs"),
    ],
)
def test_an_assignment_without_effect(given: dict[str, object], assignments: list[str], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        load_settings(None, PATHS | given, assignments)
    assert message in str(caught.value)
    assert caught.value.exit_code == 2


def test_a_part_of_an_assigned_mapping_is_added_to_it() -> None:
    assigned = ["input.storage_options={a: 1}", "input.storage_options.b=2", "cluster={workers: 3}"]
    settings = load_settings(None, PATHS, assigned)
    assert settings.input.storage_options == {"a": 1, "b": 2}
    assert settings.cluster.workers == 3


@pytest.mark.parametrize("command", ["run", "plan", "update"])
def test_settings_of_another_command(command: str) -> None:
    arguments = ["--output", "out"] + (["base", "--insert", "a"] if command == "update" else ["--input", "a"])
    done = call(command, *arguments, "--set", "estimate.samples=100")
    assert done.exit_code == 2
    assert "--set estimate.samples" in done.output


def test_values_of_keywords_have_bounds_in_messages() -> None:
    deep: list[Any] = []
    for _ in range(20_000):
        deep = [deep]
    for value in (deep, "x" * 100_000, 10**5000):
        with pytest.raises(UsageError, match=r"bounding\.method") as caught:
            make_settings("edges", "out", bounding={"method": value})
        assert len(str(caught.value)) < 500


def test_keywords_are_short_names_or_sections(tmp_path: Path) -> None:
    settings = make_settings(tmp_path, "out", partitions=2, bounding={"method": "peel"}, cluster={"workers": 2})
    assert settings.input.path == str(tmp_path)
    assert (settings.partitioning.count, settings.bounding.method, settings.cluster.workers) == (2, "peel", 2)


def test_yaml_of_the_settings_reads_back(tmp_path: Path) -> None:
    settings = make_settings("edges", "out", partitions=2, source_column="s", target_column="t", max_seconds=2)
    config = tmp_path / "again.yaml"
    config.write_text(as_yaml(settings))
    assert load_settings(config) == settings


@pytest.mark.parametrize("section", ["input", "output"])
def test_secrets_are_in_no_dump_repr_or_message(section: str) -> None:
    options = {"key": "hunter2"}
    given: dict[str, object] = {f"{section}.path": "s3://me:hunter2@host/e", f"{section}.storage_options": options}
    settings = load_settings(None, {**PATHS, **given})
    assert getattr(settings, section).path == "s3://me:hunter2@host/e"
    assert getattr(settings, section).storage_options == options
    assert "hunter2" not in as_yaml(settings) + str(settings.model_dump()) + settings.model_dump_json()
    with pytest.raises(UsageError, match=rf"{section}\.storage_options") as caught:
        load_settings(None, PATHS | {f"{section}.storage_options": "hunter2"})
    assert "hunter2" not in f"{caught.value} {caught.value.__cause__}"


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("partitioning.count=0", "partitioning.count: must be auto or a whole number from 1 to 4096, got 0"),
        ("partitioning.count=4097", "partitioning.count: must be auto or a whole number from 1 to 4096, got 4097"),
        ("partitioning.count=true", "partitioning.count: must be auto or a whole number from 1 to 4096, got 'true'"),
        ("partitioning.count=two", "partitioning.count: must be auto or a whole number from 1 to 4096, got 'two'"),
        ("partitioning.method=hash", "unknown setting partitioning.method; did you mean bounding.method?"),
        ("bounding.metod=peel", "unknown setting bounding.metod; did you mean bounding.method?"),
        ("partitions.count=2", "unknown setting partitions; did you mean partitioning.count or partitioning?"),
        ("cluster.gpus=1", "unknown setting cluster.gpus; known: device, workers, protocol"),
        ("nulls=drop", "unknown setting nulls; did you mean input.nulls?"),
        ("cluster.nulls=drop", "unknown setting cluster.nulls; did you mean input.nulls?"),
        ("partitioning=hash", "partitioning: must be a section of settings, got 'hash'"),
        ("input.path=", "input.path: String should have at least 1 character, got ''"),
        ("cluster.workers=1.5", "cluster.workers: must be a valid integer, got 1.5"),
        ("cluster.workers='2'", "cluster.workers: must be a valid integer, got '2'"),
        ("cluster.workers=1,000", "cluster.workers: must be a valid integer, got '1,000'"),
        ("cluster.workers=1e999999999", "cluster.workers: must be a valid integer, got inf"),
        ("cluster.workers=" + "9" * 100_000, "cluster.workers: must be a valid integer, got inf"),
        ("bounding.max_seconds=nan", "bounding.max_seconds: must be a valid number, got 'nan'"),
        ("bounding.max_seconds=1:30", "bounding.max_seconds: must be a valid number, got '1:30'"),
        ("input.path=''", "input.path: String should have at least 1 character, got ''"),
        ("input.path.more=1", "input.path.more: path is a value, not a section"),
        ("input.source_column=src", "input.source_column and input.target_column must be set together"),
        ("output.overwrite=maybe", "output.overwrite: must be a valid boolean, got 'maybe'"),
        ("output.row_group_rows=0", "output.row_group_rows: must be greater than or equal to 1, got 0"),
        ("ingest.rows_per_block=many", "ingest.rows_per_block: must be a valid integer, got 'many'"),
        ("bounding.max_exchanges=0", "bounding.max_exchanges: must be greater than or equal to 1, got 0"),
        ("bounding.max_seconds=0", "bounding.max_seconds: must be greater than 0, got 0"),
        ("bounding.operator=tridn", "bounding.operator=tridn needs bounding.method=fixpoint, not auto"),
        ("cluster.device=tpu", "cluster.device: must be 'auto', 'cpu' or 'gpu', got 'tpu'"),
        ("cluster.protocol=ib", "cluster.protocol: "),
        ("cluster.workers=0", "cluster.workers: must be greater than or equal to 1, got 0"),
        ("bounding.method", "--set takes a.b=c, got 'bounding.method'"),
        ("bounding.method=[", "bounding.method: must be 'auto', 'peel', 'band' or 'fixpoint', got '['"),
    ],
)
def test_message_of_a_wrong_setting(assignment: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        load_settings(None, {} if assignment.startswith("input.path=") else PATHS, [assignment])
    assert message in str(caught.value)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"scheduler": "tcp://a:1", "scheduler_file": "f"}, "cluster.scheduler and cluster.scheduler_file exclude"),
        ({"scheduler": "tcp://a:1", "workers": 2}, "cluster.workers applies to workers started here"),
        ({"source_column": "a", "target_column": "a"}, "are the same column, 'a'"),
        ({"bounding": 3}, "bounding takes a mapping of settings, got int"),
        ({"partition": 3}, "unknown setting 'partition'; did you mean partitions or partitioning?"),
    ],
)
def test_message_of_settings_at_odds(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=r".") as caught:
        make_settings("edges", "out", **settings)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda path: None, "cannot read the settings file {path}: No such file or directory"),
        (lambda path: path.mkdir(), "cannot read the settings file {path}: Is a directory"),
        (lambda path: path.write_bytes(b"\xff\xfe\x00"), "cannot read the settings file {path}: it is not UTF-8 text"),
        (lambda path: path.write_text("input:\n  path: [a"), "the settings file {path} is not valid YAML, line 2"),
        (lambda path: path.write_text("- a"), "the settings file {path} must hold sections such as `input:`"),
        (
            lambda path: path.write_text(""),
            "input.path and output.path are required: give them, or set them in",
        ),
        (lambda path: path.write_text("cluster: {gpus: 1}"), "unknown setting cluster.gpus"),
    ],
)
def test_message_of_a_wrong_file(tmp_path: Path, write: Callable[[Path], object], message: str) -> None:
    path = tmp_path / "run.yaml"
    write(path)
    with pytest.raises(UsageError) as caught:
        load_settings(path)
    assert message.format(path=path) in str(caught.value)


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text("input: {path: [3]}\ncluster: {gpus: 1}")
    with pytest.raises(UsageError, match=r"input\.path.*cluster\.gpus.*output\.path"):
        load_settings(path)


def test_the_config_of_the_readme(pytestconfig: pytest.Config) -> None:
    settings = load_settings(pytestconfig.rootpath / "configs/laptop.yaml")
    assert (pytestconfig.rootpath / settings.input.path).is_file()
    assert settings.output.overwrite


@pytest.mark.parametrize(
    ("keyword", "setting"),
    [("where", "input.where"), ("partitions", "partitioning.count"), ("weight_column", "input.weight_column")],
)
def test_messages_show_the_beginning_of_a_long_value(keyword: str, setting: str) -> None:
    value: Any = ["9" * 100_000] if keyword == "weight_column" else "9" * 100_000
    with pytest.raises(UsageError, match=f"^{setting}: ") as caught:
        make_settings("edges", "out", **{keyword: value})
    assert len(str(caught.value)) < 1000
