"""Paths of one run that must not overlap, in all spellings; those that do end with exit code 2."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import Result

import in_process
from edgemill.pipeline.settings.overlap import check_locations, refuse_input_overlap, refuse_within
from edgemill.pipeline.settings.sources import make_settings
from edgemill.tasks.errors import UsageError
from edgemill.tasks.generate import generate
from edgemill.tasks.storage.folders import folder_at


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    generate("clique", str(tmp_path / "rows"), files=1, seed=1, vertices=4)
    (tmp_path / "link").symlink_to("rows")
    return tmp_path / "rows"


def call(command: str, given: str, out: str) -> Result:
    return in_process.call(command, "--input", given, "--output", out)


SPELT = ["{}", "{}/", "file://{}", "file:{}", "local://{}", "local:{}", "LOCAL://{}", "simplecache::file://{}"]
SPELT += ["{}/../rows"]


@pytest.mark.parametrize("source", SPELT)
@pytest.mark.parametrize("place", [spelt for spelt in SPELT if "::" not in spelt])
def test_an_output_in_the_input(rows: Path, source: str, place: str) -> None:
    for folder in (rows, rows.with_name("link")):
        given, out = folder_at(source.format(folder)), folder_at(place.format(rows) + "/deep/out")
        with pytest.raises(UsageError, match="is inside the input"):
            refuse_input_overlap(given, out)
        with pytest.raises(UsageError, match="is inside it"):
            refuse_input_overlap(
                folder_at(source.format(folder) + "/part-00000.parquet"), folder_at(place.format(rows))
            )
        refuse_input_overlap(given, folder_at(place.format(rows).rstrip("/") + "-of-others"))


@pytest.mark.parametrize(
    ("source", "out", "why"),
    [
        ("s3://b/edges", "s3a://b/edges/out", "is inside the input"),
        ("s3://b/edges", "S3://b//edges/./out", "is inside the input"),
        ("s3://b/edges/day=*/x", "s3://b/edges/day=1/out", "is inside the input"),
        ("s3://b/edges/*.parquet", "s3://b/edges/out", None),
        ("s3://b/edges/*.parquet", "s3a://b/edges", "is inside it"),
        ("s3://b/edges", "s3://b", "is inside it"),
        ("s3://b*/edges", "s3://bb/out", None),
        ("s3://b/edges", "s3://b/edges-of-others", None),
        ("simplecache::s3://b/edges", "s3://b/edges/out", "is inside the input"),
        ("https://b/edges?x=*", "s3://b/edges/out", None),
        ("memory://b/edges", "s3://b/edges/out", None),
        ("b/edges", "s3://b/edges/out", None),
    ],
)
def test_in_a_store(source: str, out: str, why: str | None) -> None:
    if why is None:
        refuse_input_overlap(folder_at(source), folder_at(out))
        return
    with pytest.raises(UsageError, match=why):
        refuse_input_overlap(folder_at(source), folder_at(out))


def test_a_file_in_a_result(tmp_path: Path) -> None:
    for result in (f"local://{tmp_path}/out", f"{tmp_path}/out"):
        with pytest.raises(UsageError, match="is inside the result"):
            refuse_within(folder_at(f"file:{tmp_path}//out/page.html"), [folder_at(result)])
    with pytest.raises(UsageError, match="is inside the result"):
        refuse_within(folder_at("s3a://b/out/page.html"), [folder_at("s3://b/out")])


@pytest.mark.parametrize("setting", ["checkpoint.path", "cluster.local_directory"])
def test_a_checkpoint_or_spill_folder_in_the_output(tmp_path: Path, setting: str) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    for given in (f"{tmp_path}/out", f"{tmp_path}/link/out/kept", f"local://{tmp_path}/out/kept"):
        with pytest.raises(UsageError, match=f"{setting} .* is inside output.path"):
            check_locations(make_settings("edges", f"{tmp_path}/out", **{setting: given}))
    check_locations(make_settings("edges", f"{tmp_path}/out", **{setting: str(tmp_path)}))


def test_a_run_into_its_own_input(rows: Path) -> None:
    ended = call("run", f"local://{rows}", f"{rows}/out")
    assert (ended.exit_code, "is inside the input" in ended.stderr) == (2, True)
    assert [path.name for path in rows.iterdir()] == ["part-00000.parquet"]


UNUSABLE = {
    "data:,abc": "is a data: URL",
    "data:application/octet-stream;base64,UEFSMQ==": "is a data: URL",
    "s3://": "names no file or folder",
    "a\0b": "has a NUL character",
    "dir://x": "cannot be opened",
    "tar://{}": "cannot be opened",
    "generic://x": "cannot be opened",
    "reference://x": "cannot be opened",
    "nosuch://x": "Protocol not known",
}


@pytest.mark.parametrize("command", ["run", "plan"])
@pytest.mark.parametrize("given", UNUSABLE)
def test_an_invalid_input_path(tmp_path: Path, command: str, given: str) -> None:
    ended = call(command, given.format(tmp_path), f"{tmp_path}/out")
    assert (ended.exit_code, UNUSABLE[given] in ended.stderr) == (2, True), ended.stderr


@pytest.mark.parametrize("given", [*UNUSABLE, "simplecache::file:///tmp/x"])
def test_an_invalid_output_path(rows: Path, given: str) -> None:
    ended = call("run", str(rows), given.format(rows))
    assert ended.exit_code == 2, ended.stderr
    assert ended.stderr.startswith("Error: ")
    for path in (Path.cwd() / "s3:", Path.cwd() / "data:,abc"):
        assert not path.exists()


@pytest.mark.parametrize(
    "command",
    [
        ["run", "--input", "rows", "--output", "/tmp/out"],
        ["run", "--input", "/tmp/rows", "--output", "out"],
        ["plan", "--input", "rows", "--output", "out"],
        ["show", "out"],
        ["status", "out"],
        ["report", "out"],
        ["verify", "out"],
        ["top", "out"],
        ["of", "out", "1"],
        ["diff", "out", "other"],
        ["explore", "out"],
        ["subgraph", "out", "--dn-graph", "1"],
        ["generate", "star", "--leaves", "5", "--output", "rows"],
    ],
    ids=lambda command: " ".join(command[:3]),
)
def test_in_a_working_directory_that_was_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    ended = in_process.call(*command)
    monkeypatch.chdir(tmp_path)
    assert (ended.exit_code, "working directory, which was removed" in ended.stderr) == (2, True), ended.stderr
    assert ended.stderr.count("\n") == 1


def test_rows_are_generated_on_a_disk(tmp_path: Path) -> None:
    made = in_process.call("generate", "star", "--leaves", "5", "--output", f"file://{tmp_path}/rows")
    assert (made.exit_code, len(list((tmp_path / "rows").iterdir()))) == (0, 1)
    refused = in_process.call("generate", "star", "--leaves", "5", "--output", "s3://bucket/rows")
    assert (refused.exit_code, "a folder on a disk" in refused.stderr) == (2, True)
