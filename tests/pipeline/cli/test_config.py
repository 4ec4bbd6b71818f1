"""Settings: their sources, their precedence, and the message for every mistake."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from edgemill.pipeline.settings.sources import as_yaml, load_settings, make_settings
from edgemill.tasks.errors import UsageError

PATHS = {"input.path": "edges", "output.path": "out"}


def test_defaults_file_flags_and_assignments_in_rising_order(tmp_path: Path) -> None:
    config = tmp_path / "run.yaml"
    config.write_text("input: {path: a}\noutput: {path: b}\npartitioning: {count: 3, method: hash}\ncluster:\n")
    settings = load_settings(config, {"partitioning.count": 4, "input.path": "c"}, ["partitioning.count=5"])
    assert (settings.input.path, settings.output.path) == ("c", "b")
    assert (settings.partitioning.count, settings.partitioning.method) == (5, "hash")
    assert settings.bounding.method == "auto"


def test_assignments_are_yaml() -> None:
    assigned = ["output.overwrite=true", "bounding.max_seconds=1.5", "ingest.rows_per_block=1_000", "cluster.workers="]
    settings = load_settings(None, PATHS, [*assigned, "input.storage_options.key=a=b"])
    assert settings.output.overwrite is True
    assert settings.bounding.max_seconds == 1.5
    assert settings.ingest.rows_per_block == 1000
    assert settings.cluster.workers is None
    assert settings.input.storage_options == {"key": "a=b"}


def test_keywords_are_short_names_or_sections(tmp_path: Path) -> None:
    settings = make_settings(tmp_path, "out", partitions=2, bounding={"method": "band"}, cluster={"workers": 2})
    assert settings.input.path == str(tmp_path)
    assert (settings.partitioning.count, settings.bounding.method, settings.cluster.workers) == (2, "band", 2)


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
        ("partitioning.count=true", "partitioning.count: must be auto or a whole number from 1 to 4096, got True"),
        ("partitioning.count=two", "partitioning.count: must be auto or a whole number from 1 to 4096, got 'two'"),
        ("partitioning.method=metis", "partitioning.method: must be 'auto', 'range' or 'hash', got 'metis'"),
        *(
            (f"partitioning.method={method}", f"partitioning.method: must be 'auto', 'range' or 'hash', got '{method}'")
            for method in ("vertices", "bfs", "streaming", "triangles", "multilevel")
        ),
        ("partitioning.metod=hash", "unknown setting partitioning.metod; did you mean partitioning.method?"),
        ("partitions.count=2", "unknown setting partitions; did you mean partitioning.count or partitioning?"),
        ("cluster.gpus=1", "unknown setting cluster.gpus; known: device, workers, protocol"),
        ("nulls=drop", "unknown setting nulls; did you mean input.nulls?"),
        ("cluster.nulls=drop", "unknown setting cluster.nulls; did you mean input.nulls?"),
        ("partitioning=hash", "partitioning: must be a section of settings, got 'hash'"),
        ("input.path=", "input.path: must be a valid string, got None"),
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
        ("bounding.method=[", "--set bounding.method is not valid YAML, line 1, column 2"),
    ],
)
def test_message_of_a_wrong_setting(assignment: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        load_settings(None, PATHS, [assignment])
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
    path.write_text("input: {path: 3}\ncluster: {gpus: 1}")
    with pytest.raises(
        UsageError, match=r"input\.path: .*; unknown setting cluster\.gpus; .*; output\.path is required"
    ):
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
