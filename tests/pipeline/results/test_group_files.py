"""The edges of a group as files, and the files that a command may write."""

from __future__ import annotations

import csv
import io
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import networkx as nx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from edgemill.pipeline import (
    Result,
    UsageError,
    edges_of,
    find_dn_graph,
    groups_of,
    member_ids,
    top,
)
from edgemill.pipeline.output.new_path import new_file, new_folder
from edgemill.pipeline.queries import group_files
from edgemill.tasks.storage.folders import Folder
from in_process import call
from made import made
from runs import EDGE_COLUMNS


def read_back(content: bytes, form: str) -> list[tuple[Any, ...]]:
    """The rows of the edges, sorted. All values are text, except from Parquet."""
    if form == "parquet":
        return [tuple(row.values()) for row in pq.read_table(io.BytesIO(content)).to_pylist()]
    if form == "csv":
        header, *rows = csv.reader(io.StringIO(content.decode(), newline=""))
        assert header == ["src", "dst", *EDGE_COLUMNS]
        return sorted((source, target, *map(int, values)) for source, target, *values in rows)
    graph = nx.read_graphml(io.BytesIO(content))
    return sorted((*sorted(edge[:2]), *(edge[2][name] for name in EDGE_COLUMNS)) for edge in graph.edges(data=True))


@pytest.mark.parametrize("form", ["parquet", "csv", "graphml"])
def test_a_group_as_a_file(odd: Result, tmp_path: Path, form: str) -> None:
    dense = top(odd).to_pylist()[0]["id"]
    inside = find_dn_graph(odd, dense)
    whole = groups_of(odd, "z,2")[0]
    for option, group in (("--dn-graph", inside), ("--component", inside), ("--component", whole)):
        rows = sorted(tuple(row.values()) for row in edges_of(odd, group).read_all().to_pylist())
        arguments = ["subgraph", str(odd.path), option, str(group.component)]
        file = tmp_path / f"group.{form}"
        for more in (["--output", str(file)], ["--output", str(file), "--overwrite", "--format", form]):
            ended = call(*arguments, *more)
            assert (ended.exit_code, ended.output) == (0, "")
            assert read_back(file.read_bytes(), form) == rows
        piped = call(*arguments, "--format", form)
        assert piped.exit_code == 0
        assert piped.stdout_bytes == file.read_bytes()
        file.unlink()
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["odd"]


def test_graphml_has_all_vertices_and_integers_read_back(many: Result, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_files, "NODES", 2)
    graph = top(many, count=1).to_pylist()[0]
    ended = call("subgraph", str(many.path), "--dn-graph", str(graph["id"]), "--format", "graphml")
    read = nx.read_graphml(io.BytesIO(ended.stdout_bytes), node_type=int)
    assert sorted(read) == member_ids(many, find_dn_graph(many, graph["id"])).to_pylist()
    assert ended.stdout.count("<node id=") == graph["vertices"]
    assert (len(read), read.number_of_edges(), read.is_directed()) == (graph["vertices"], graph["edges"], False)


@pytest.mark.parametrize("letter", ["\x00", "\x0c", "\x1f", "\ufffe", "\uffff"])
def test_characters_that_xml_cannot_hold(tmp_path: Path, letter: str) -> None:
    levels = {(f"a{letter}", "b"): 1, (f"a{letter}", "c"): 1, ("b", "c"): 1}
    result = made(tmp_path / "out", levels, id_type=pa.string())
    file = tmp_path / "group.graphml"
    ended = call("subgraph", str(result.path), "--dn-graph", "5", "--output", str(file))
    assert ended.exit_code == 2
    assert repr(f"a{letter}") in ended.stderr
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize(
    ("name", "form"),
    [
        (None, "csv"),
        ("x.CSV", "csv"),
        ("x.Parquet", "parquet"),
        ("a.graphml", "graphml"),
        ("a.csv.gz", "csv"),
        ("", "csv"),
    ],
)
def test_formats_by_suffix(name: str | None, form: str) -> None:
    assert group_files.format_of(name) == form


def test_columns_that_csv_has_to_quote(tmp_path: Path) -> None:
    names = ('a,"b"', "to\nline")
    made(tmp_path / "out", {(1, 2): 1, (1, 3): 1, (2, 3): 1}, names=names, first_id=0)
    ended = call("subgraph", str(tmp_path / "out"), "--component", "0")
    header, *rows = csv.reader(io.StringIO(ended.stdout_bytes.decode(), newline=""))
    assert (header, len(rows)) == ([*names, *EDGE_COLUMNS], 3)


def test_parquet_is_not_written_to_a_terminal(many: Result) -> None:
    terminal, screen = os.openpty()
    command = [sys.executable, "-m", "edgemill.pipeline", "subgraph", str(many.path), "--dn-graph", "5"]
    ended = subprocess.run([*command, "--format", "parquet"], stdout=screen, stderr=subprocess.PIPE, text=True)
    os.close(screen)
    os.close(terminal)
    assert ended.returncode == 2
    assert "--output" in ended.stderr


def test_a_file_that_appears_meanwhile_stays(tmp_path: Path) -> None:
    file, folder = tmp_path / "file", tmp_path / "folder"
    with pytest.raises(UsageError, match="choose another"), new_file(file) as made_file:
        made_file.write(b"ours")
        file.write_text("theirs")
    with pytest.raises(UsageError, match="choose another"), new_folder(folder, ["a"]) as made_folder:
        (made_folder / "a").touch()
        folder.mkdir()
    assert (file.read_text(), list(folder.iterdir())) == ("theirs", [])
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "folder"]


def test_a_folder_that_cannot_be_replaced_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, rename = tmp_path / "folder", os.rename
    with new_folder(folder, ["a"]) as made_folder:
        (made_folder / "a").write_text("earlier")

    def fails(old: Path, new: Path) -> None:
        if new == folder and not str(old).endswith(".old"):
            raise OSError(5, "Input/output error")
        rename(old, new)

    monkeypatch.setattr(os, "rename", fails)
    with pytest.raises(OSError, match="Input/output"), new_folder(folder, ["a"], overwrite=True) as made_folder:
        (made_folder / "a").write_text("later")
    assert (folder / "a").read_text() == "earlier"
    assert [entry.name for entry in tmp_path.iterdir()] == ["folder"]


def test_a_link_into_the_result_is_refused(many: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "link").symlink_to(many.path)
    monkeypatch.setenv("HOME", str(many.path))
    for name in (tmp_path / "link" / "group.csv", "~/group.csv"):
        ended = call("subgraph", str(many.path), "--dn-graph", "5", "--output", str(name))
        assert (ended.exit_code, "inside" in ended.stderr) == (2, True)


def test_existing_files_stay(many: Result, tmp_path: Path) -> None:
    file = tmp_path / "group.csv"
    file.write_text("mine")
    group = str(top(many, count=1)["id"][0])
    arguments = ["subgraph", str(many.path), "--dn-graph", group, "--output"]
    for place, text in {
        file: f"{file} exists: ",
        tmp_path: "is a folder: name a file",
        tmp_path / "absent" / "group.csv": "cannot write",
        many.path / "group.csv": "is inside the result",
        "nowhere://bucket/group.csv": "nowhere://bucket/group.csv cannot be opened",
    }.items():
        ended = call(*arguments, str(place))
        assert ended.exit_code == 2
        assert text in ended.stderr
    assert (file.read_text(), [entry.name for entry in tmp_path.iterdir()]) == ("mine", ["group.csv"])
    assert call(*arguments, str(file), "--overwrite").exit_code == 0
    assert file.read_text().startswith(",".join(["src", "dst", *EDGE_COLUMNS]) + "\n")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    ended = call(*arguments, str(pipe), "--overwrite")
    assert (ended.exit_code, pipe.is_fifo()) == (2, True)
    assert str(pipe) in ended.stderr and "a device or a pipe" in ended.stderr


@pytest.mark.parametrize(
    "arguments",
    [["subgraph", "OUT", "--dn-graph", "5"], pytest.param(["top", "OUT"], marks=pytest.mark.slow), ["--help"]],
)
def test_a_full_disk(many: Result, arguments: list[str]) -> None:
    """With buffered and with unbuffered output."""
    words = (str(many.path) if word == "OUT" else word for word in arguments)
    command = [sys.executable, "-m", "edgemill.pipeline", *words]
    held = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, env=held)
    assert ended.returncode == 7
    assert re.fullmatch("Error: no room .*disk: No space left on device\n", ended.stderr)


def test_a_group_is_written_to_an_object_store(many: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is whole or absent. It is written to the local disk first, where nothing stays."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    place, group = Folder("memory://groups"), str(top(many, count=1)["id"][0])
    files, arguments = place.files, ["subgraph", str(many.path), "--dn-graph", group]
    url, target = f"{place.url}/in/group.csv", place.path("in/group.csv")
    try:
        assert call(*arguments, "--output", url).exit_code == 0
        assert files.cat_file(target) == call(*arguments).stdout_bytes
        files.pipe_file(target, b"mine")
        for output, text in {url: "exists: choose another", f"{place.url}/in": f"{place.url}/in is a folder: "}.items():
            ended = call(*arguments, "--output", output)
            assert ended.exit_code == 2
            assert text in ended.stderr
        with pytest.raises(ZeroDivisionError), new_file(url, overwrite=True) as file:
            file.write(b"half")
            raise ZeroDivisionError
        with new_file(url, overwrite=True) as file:
            file.write(b"whole")
            file.flush()
            assert files.cat_file(target) == b"mine"
        assert files.cat_file(target) == b"whole"
        assert call(*arguments, "--output", url, "--overwrite").exit_code == 0
        assert files.cat_file(target) == call(*arguments).stdout_bytes
        files.put(str(many.path), place.path("out"), recursive=True)
        ended = call(arguments[0], f"{place.url}/out", *arguments[2:], "--output", f"{place.url}/out/group.csv")
        assert (ended.exit_code, "inside" in ended.stderr) == (2, True)
        assert files.find(place.path("in")) == [target]
    finally:
        place.remove("")
    assert not list(tmp_path.iterdir())
