"""Messages name settings as the user sets them: by flags, keywords or paths in the settings file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from edgemill.pipeline import UsageError, mine
from edgemill.pipeline.cli import edgemill
from edgemill.pipeline.messages.setting_names import SettingOrigin, naming_keywords, with_flags, with_keywords
from edgemill.pipeline.messages.suggesting import did_you_mean
from edgemill.pipeline.settings.models import SECTIONS
from edgemill.pipeline.settings.sources import SHORT_NAMES

EVERY = [f"{section}.{name}" for section, model in SECTIONS.items() for name in model.model_fields]


def call(*arguments: str) -> Result:
    return CliRunner().invoke(edgemill, arguments)


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
