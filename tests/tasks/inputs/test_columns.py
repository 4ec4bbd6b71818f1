"""Columns of an input: found by their usual names, there twice, in the names of folders, encrypted, of two kinds."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

from edgemill.tasks.attributes import open_attributes
from edgemill.tasks.errors import EdgemillError, InputError
from edgemill.tasks.ingest.reading import read_rows
from edgemill.tasks.inputs.formats.form import Form, Weights
from edgemill.tasks.inputs.open_source import open_source
from edgemill.tasks.inputs.sources import Source, plan_blocks

Write = Callable[[pa.Table, Path], object]


def write_ipc(table: pa.Table, path: Path) -> None:
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table)


def write_stream(table: pa.Table, path: Path) -> None:
    with pa.ipc.new_stream(str(path), table.schema) as writer:
        writer.write_table(table)


WRITERS: dict[str, Write] = {
    "a.parquet": pq.write_table,
    "a.arrow": write_ipc,
    "a.arrows": write_stream,
    "a.csv": arrow_csv.write_csv,
}


def named(*names: str) -> pa.Table:
    """A column of integers for each name: 1, 2, …"""
    return pa.table([[at] for at in range(1, len(names) + 1)], names=list(names))


def rows(source: Source) -> list[tuple[Any, Any]]:
    found = [read_rows(source, block) for block in plan_blocks(source, 9)]
    return [pair for own in found for pair in zip(own.source.tolist(), own.target.tolist(), strict=True)]


@pytest.mark.parametrize("file", WRITERS)
@pytest.mark.parametrize(
    ("names", "ends", "others"),
    [
        (["weight", "Source", "Target"], ("Source", "Target"), None),
        (["when", "to", "from"], ("from", "to"), None),
        (["FROM", "To", "when"], ("FROM", "To"), None),
        (["SRC", "Dst", "x"], ("SRC", "Dst"), None),
        ([":START_ID", "since", ":END_ID", ":TYPE"], (":START_ID", ":END_ID"), None),
        ([":START_ID(Person)", "since", ":END_ID(Person)"], (":START_ID(Person)", ":END_ID(Person)"), None),
        (["who:start_id", "x", "whom:End_Id"], ("who:start_id", "whom:End_Id"), None),
        (["v", "u", "key"], ("u", "v"), None),
        (["node_1", "node_2", "x"], ("node_1", "node_2"), None),
        (["source", "destination", "x"], ("source", "destination"), None),
        (["~id", "~from", "~to"], ("~from", "~to"), None),
        (["from", "to", "src", "dst"], ("src", "dst"), "and not 'from' and 'to'"),
        (["u", "v", "Target", "Source"], ("Source", "Target"), "and not 'u' and 'v'"),
        (["SRC", "src", "dst"], ("src", "dst"), ""),
        (["src", "dst", "weight"], ("src", "dst"), ""),
        (["source", "target", "weight"], ("source", "target"), ""),
    ],
)
def test_usual_names_of_ends(
    tmp_path: Path, file: str, names: list[str], ends: tuple[str, str], others: str | None
) -> None:
    """`others` is what the note says of further pairs; "" stands for no note."""
    WRITERS[file](named(*names), tmp_path / file)
    source = open_source(str(tmp_path))
    assert (source.source_column, source.target_column) == ends
    assert rows(source) == [(names.index(ends[0]) + 1, names.index(ends[1]) + 1)]
    if others == "":
        assert source.notes == ()
    else:
        (note,) = source.notes
        assert all(part in note for part in (*map(repr, ends), others or "by their names:", "--source-column"))


@pytest.mark.parametrize("names", [("SRC", "Src", "dst"), ("from", "dst", "x"), ("SRC", "Src", "DST", "Dst")])
def test_names_that_do_not_tell(tmp_path: Path, names: tuple[str, ...]) -> None:
    pq.write_table(named(*names), tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"tell.*a\.parquet"):
        open_source(str(tmp_path))


def test_two_sets_of_ids_of_neo4j(tmp_path: Path) -> None:
    pq.write_table(named(":START_ID(Person)", ":END_ID(Film)"), tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"Person.*--bipartite"):
        open_source(str(tmp_path))
    assert open_source(str(tmp_path), form=Form(bipartite="refuse")).bipartite == "refuse"


@pytest.mark.parametrize("name", ["id", "ID", "Id", "vertex", "Node", "person:ID(Person)", ":ID", "~id"])
def test_usual_names_of_ids_of_vertices(tmp_path: Path, name: str) -> None:
    pq.write_table(named(name, "size"), tmp_path / "a.parquet")
    source = open_attributes(str(tmp_path), pa.int64())
    assert (source.id_column, source.schema.names) == (name, ["size"])


TWICE: dict[str, tuple[list[str], Form]] = {
    "where": (["src", "dst", "x", "x"], Form(where="x > 2")),
    "where among others": (["src", "dst", "y", "x", "x"], Form(where="y > 2 and not x is null")),
    "weight": (["src", "dst", "x", "x"], Form(weights=Weights("x"))),
    "end": (["x", "src", "dst", "x"], Form()),
}


@pytest.mark.parametrize("file", WRITERS)
@pytest.mark.parametrize("use", TWICE)
def test_a_column_that_is_there_twice(tmp_path: Path, file: str, use: str) -> None:
    names, form = TWICE[use]
    WRITERS[file](named(*names), tmp_path / file)
    ends: tuple[str | None, str | None] = ("x", "dst") if use == "end" else (None, None)
    with pytest.raises(InputError, match=rf"{tmp_path}/{file}.*2.*'x'"):
        open_source(str(tmp_path), *ends, form=form)


@pytest.mark.parametrize("file", ["a.parquet", "a.arrow", "a.arrows"])
def test_columns_that_are_there_twice_and_not_read(tmp_path: Path, file: str) -> None:
    WRITERS[file](named("x", "src", "y", "dst", "x"), tmp_path / file)
    assert rows(open_source(str(tmp_path), form=Form(where="y = 3"))) == [(2, 4)]


@pytest.mark.parametrize("columns", [{"id_column": "x"}, {"columns": ["x"]}, {}])
@pytest.mark.parametrize("first", [True, False])
def test_columns_of_vertices_that_are_there_twice(tmp_path: Path, columns: dict[str, Any], first: bool) -> None:
    if not first:
        pq.write_table(named("id", "x"), tmp_path / "a.parquet")
    pq.write_table(named("id", "x", "x"), tmp_path / "b.parquet")
    with pytest.raises(InputError, match=r"b\.parquet.*2.*'x'"):
        open_attributes(str(tmp_path), pa.int64(), **columns)


@pytest.mark.parametrize(
    ("names", "ends", "form", "column"),
    [
        (["dst", "x"], (None, None), Form(), "src"),
        (["a", "b"], ("src", "a"), Form(), "src"),
        (["a", "b"], (None, None), Form(weights=Weights("src")), "src"),
    ],
)
@pytest.mark.parametrize("file", ["a.parquet", "a.csv", "part-0.c000.snappy.parquet"])
@pytest.mark.parametrize("is_glob", [False, True])
def test_a_column_in_the_names_of_folders(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    names: list[str],
    ends: tuple[str | None, str | None],
    form: Form,
    column: str,
    file: str,
    is_glob: bool,
) -> None:
    """The command in the message writes them into the rows."""
    monkeypatch.chdir(tmp_path)
    for value in (1, 2):
        folder = tmp_path / "it's" / f"src={value}"
        folder.mkdir(parents=True)
        WRITERS["a.csv" if file == "a.csv" else "a.parquet"](named(*names), folder / file)
    with pytest.raises(InputError, match=rf"'{column}'.*{column}=…") as caught:
        open_source(str(tmp_path / "it's" / "*" / "*" if is_glob else tmp_path / "it's"), *ends, form=form)
    duckdb.sql(str(caught.value).partition("with DuckDB: ")[2])
    assert sorted(pq.read_table("edges.parquet")["src"].to_pylist()) == [1, 2]


@pytest.mark.parametrize("is_glob", [False, True])
def test_an_end_in_the_names_of_folders_and_the_other_alone_in_files(tmp_path: Path, is_glob: bool) -> None:
    (tmp_path / "src=1").mkdir()
    pq.write_table(named("dst"), tmp_path / "src=1" / "a.parquet")
    with pytest.raises(InputError, match=r"'src'.*src=…"):
        open_source(str(tmp_path / "*" / "*" if is_glob else tmp_path))


@pytest.mark.parametrize("how", [{"id_column": "day"}, {"columns": ["day", "x"]}])
def test_a_column_of_vertices_in_the_names_of_folders(tmp_path: Path, how: dict[str, Any]) -> None:
    (tmp_path / "day=1").mkdir()
    pq.write_table(named("id", "x"), tmp_path / "day=1" / "a.parquet")
    with pytest.raises(InputError, match=r"'day'.*folders"):
        open_attributes(str(tmp_path), pa.int64(), **how)


@pytest.mark.parametrize("file", [file for file in WRITERS if not file.endswith(".csv")])  # in CSV all are text then
def test_two_kinds_of_ids_name_both_files(tmp_path: Path, file: str) -> None:
    WRITERS[file](pa.table({"src": [1], "dst": [2]}), tmp_path / file)
    WRITERS[file](pa.table({"src": ["x"], "dst": ["y"]}), tmp_path / f"b{file}")
    with pytest.raises(InputError) as caught:
        open_source(str(tmp_path))
    assert all(part in str(caught.value) for part in (f"{tmp_path}/{file}", f"{tmp_path}/b{file}", "'src'"))


class _Kms(pe.KmsClient):  # type: ignore[misc]  # pyarrow has no types
    """Keys that anybody can read."""

    def wrap_key(self, key: bytes, _: str) -> bytes:
        return base64.b64encode(key)

    def unwrap_key(self, key: bytes, _: str) -> bytes:
        return base64.b64decode(key)


def write_encrypted(path: Path, columns: list[str], plaintext_footer: bool) -> None:
    table = pa.table({"src": [1, 2], "dst": [2, 3], "w": [0.5, 1.0], "name": ["a", "b"], "id": [1, 2]})
    how = pe.EncryptionConfiguration("footer", column_keys={"key": columns}, plaintext_footer=plaintext_footer)
    keys = pe.CryptoFactory(lambda _: _Kms()).file_encryption_properties(pe.KmsConnectionConfig(), how)
    with pq.ParquetWriter(path, table.schema, encryption_properties=keys) as writer:
        writer.write_table(table)


def read_all(path: Path, form: Form = Form()) -> object:  # noqa: B008  it is frozen
    return rows(open_source(str(path), form=form))


@pytest.mark.parametrize("name", ["a.parquet", "a.txt", "a"])
@pytest.mark.parametrize(
    ("columns", "plaintext_footer", "form"),
    [
        (["src"], False, Form()),
        (["src", "dst"], True, Form()),
        (["dst"], True, Form()),
        (["w"], True, Form(weights=Weights("w"))),
        (["w"], True, Form(where="w > 0.5")),
    ],
)
def test_an_encrypted_file(tmp_path: Path, name: str, columns: list[str], plaintext_footer: bool, form: Form) -> None:
    write_encrypted(tmp_path / name, columns, plaintext_footer)
    with pytest.raises(EdgemillError, match=rf"{tmp_path}/{name} is encrypted") as caught:
        read_all(tmp_path / name, form)
    assert caught.value.exit_code == 3
    assert "damaged" not in str(caught.value)


def test_a_file_whose_other_columns_are_encrypted(tmp_path: Path) -> None:
    write_encrypted(tmp_path / "a.parquet", ["name"], True)
    assert read_all(tmp_path / "a.parquet", Form(where="w > 0.5")) == [(2, 3)]
