"""Attributes of vertices: look-up by id, and the stage of a run that joins them."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.dataframe
import duckdb
import networkx as nx
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from distributed import Client
from hypothesis import given, settings
from hypothesis import strategies as st

import strategies
from edgemill.pipeline import (
    InputError,
    Result,
    UsageError,
    attributes_of,
    groups_of,
    labels_of,
    members_of,
    mine,
    update,
)
from edgemill.pipeline.output.manifest import write_manifest
from edgemill.pipeline.queries.attributes import attribute_columns, label_column
from edgemill.tasks.verify.result import verify
from examples import examples
from in_process import call
from made import made
from runs import assert_nothing_left, write_rows


@given(data=st.data())
@settings(max_examples=examples(20, 5))
def test_attributes_are_looked_up(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Rows have the order of the requested ids, with repeated and unknown ids, for any row groups."""
    naming = data.draw(strategies.namings(9))
    names = sorted(naming.names)
    name = data.draw(st.dictionaries(st.sampled_from(names), st.text(max_size=3), max_size=9))
    size = data.draw(st.dictionaries(st.sampled_from(names), st.integers(-5, 5), max_size=9))
    known = names[:7]
    result = made(
        tmp_path_factory.mktemp("made") / "out",
        dict.fromkeys(itertools.combinations(known[:4], 2), 2),
        id_type=naming.type,
        alone=known,
        rows_per_file=data.draw(st.integers(1, 9)),
        rows_per_group=data.draw(st.integers(1, 9)),
        attributes={"name": (pa.string(), name), "size": (pa.int16(), size)},
        label=data.draw(st.sampled_from(["name", "size"])),
    )
    asked: list[Any] = data.draw(st.lists(st.sampled_from(names), max_size=12))
    values = {
        column: [held.get(id) if id in known else None for id in asked]
        for column, held in (("name", name), ("size", size))
    }
    assert attribute_columns(result) == ["name", "size"]
    for given_ids in (asked, pa.array(asked, naming.type), pa.chunked_array([asked], naming.type)):
        assert attributes_of(result, given_ids).to_pydict() == values
    assert attributes_of(result, asked, ["size"]).to_pydict() == {"size": values["size"]}
    label = label_column(result)
    assert label is not None
    assert labels_of(result, asked) == [None if value is None else str(value) for value in values[label]]


def test_result_without_attributes(tmp_path: Path) -> None:
    result = made(tmp_path / "out", {(1, 2): 0})
    assert labels_of(result, [2, 7]) == [None, None]
    assert (attribute_columns(result), label_column(result)) == ([], None)
    assert attributes_of(result, [2, 7]).num_columns == 0
    named = made(tmp_path / "named", {(1, 2): 0}, attributes={"name": (pa.string(), {1: "a"})}, label="name")
    assert labels_of(named, ["1", 2]) == ["a", None]
    with pytest.raises(UsageError, match=r"'anna'.*int64"):
        labels_of(named, [1, "anna"])
    with pytest.raises(UsageError, match=r"no table attributes: .* vertices=…"):
        _ = Result(result.path).attributes


ROWS = [*itertools.combinations(["ann", "bob", "cyd", "dan"], 2), ("dan", "eve"), ("x", "y")]


def people(path: Path, **columns: list[Any]) -> Path:
    given: dict[str, list[Any]] = {
        "user": ["eve", "ann", "zoe", "dan", "yan"],
        "name": ["Eve E.", "Ann & <Co>", "Zoe", None, "Yan"],
        "age": [1, 2, 3, 4, 5],
    }
    pq.write_table(pa.table(given | columns), path, row_group_size=2)
    return path


def test_run_with_attributes(tmp_path: Path, client: Client) -> None:
    """Attributes are published, reported, verified, part of the fingerprint, and shown with vertices."""
    rows = write_rows(tmp_path / "rows.parquet", ROWS, pa.string())
    file, out = people(tmp_path / "people.parquet"), tmp_path / "out"
    given: dict[str, Any] = {"vertices": file, "vertex_id": "user", "partitions": 3, "client": client}
    result = mine(rows, out, **given)
    assert_nothing_left(client)
    record = result.manifest.input.vertices
    assert record is not None
    assert (record.id_column, record.columns, record.label) == ("user", ["name", "age"], "name")
    assert (record.rows, record.unknown, record.missing) == (5, 2, 4)
    ids = result.vertices.to_table()["id"].to_pylist()
    assert result.attributes.to_table().to_pydict() == {
        "id": ids,
        "name": [{"ann": "Ann & <Co>", "eve": "Eve E."}.get(id) for id in ids],
        "age": [{"eve": 1, "ann": 2, "dan": 4}.get(id) for id in ids],
    }
    assert labels_of(result, ["eve", "dan", "ann"]) == ["Eve E.", None, "Ann & <Co>"]
    assert verify(out, rows).ok
    events = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    assert [event["unknown"] for event in events if event["event"] == "attributes_joined"] == [2]
    finished = [event["stage"] for event in events if event["event"] == "stage_finished"]
    assert finished.index("triangulate") < finished.index("attributes") < finished.index("bound")
    group = groups_of(result, "ann")[0]
    assert members_of(result, group)["name"].to_pylist() == ["Ann & <Co>", None, None, None]
    ended = call("top", str(out), "--members", "--json")
    assert json.loads(ended.stdout)["labels"] == ["Ann & <Co>", None, None, None]

    before = result.manifest.run
    assert mine(rows, out, **given).manifest.run == before
    changes: list[tuple[dict[str, Any], str]] = [
        ({"vertex_id": None, "vertices": None}, "it has attributes of vertices, and none are given now"),
        ({"input.vertex_columns": ["age"]}, "its attributes were name, age, and are age now"),
        ({"input.vertex_label": "age"}, "its label of vertices was name, and is age now"),
        ({"vertex_id": "name", "input.vertex_columns": ["age"]}, "were in column user, and are in name now"),
    ]
    for change, text in changes:
        with pytest.raises(UsageError, match="exists") as refused:
            mine(rows, out, **{**given, **change})
        assert text in "".join(refused.value.__notes__)
    people(file, age=[1, 2, 3, 4, 6], name=["a"] * 5)
    with pytest.raises(UsageError, match="exists") as refused:
        mine(rows, out, **given)
    assert str(file) in "".join(refused.value.__notes__)
    assert mine(rows, out, overwrite=True, **given).manifest.run != before


def test_flags_and_messages(tmp_path: Path) -> None:
    rows, file = write_rows(tmp_path / "rows.parquet", ROWS, pa.string()), people(tmp_path / "people.parquet")
    arguments = ["run", "--input", str(rows), "--vertices", str(file), "--vertex-id", "user"]
    ended = call(*arguments, "--output", str(tmp_path / "out"), "--set", "input.vertex_columns=name")
    assert ended.exit_code == 0, ended.output
    assert all(fact in ended.stderr for fact in ("--vertices", "2 of 5 rows", "4 vertices"))
    assert Result(tmp_path / "out").attributes.schema.names == ["id", "name"]
    assert ended.stdout.count("Ann & <Co>, bob, cyd, dan") == 1
    shown = call("show", str(tmp_path / "out")).stdout
    assert re.search(r"name \(5 rows; 2 rows .*other ids, 4 vertices without", shown)
    (group,) = json.loads(call("show", str(tmp_path / "out"), "--json").stdout)["groups"]
    assert (group["first_members"][0], group["first_labels"][0]) == ("ann", "Ann & <Co>")
    people(file, user=["eve", "ann", "eve", "dan", "eve"])
    ended = call(*arguments, "--output", str(tmp_path / "next"))
    assert (ended.exit_code, (tmp_path / "next").exists()) == (3, False)
    assert all(fact in ended.stderr for fact in (str(file), "'eve'", "'user'"))
    ended = call("run", "--input", str(rows), "--output", str(tmp_path / "next"), "--vertex-id", "user")
    assert (ended.exit_code, "--vertices" in ended.stderr) == (2, True)
    ended = call(*arguments, "--output", str(tmp_path / "next"), "--set", "input.vertex_columns=[name, name]")
    assert (ended.exit_code, "one or more columns, each once" in ended.stderr) == (2, True)
    ended = call(*arguments, "--output", str(file / "out"))
    assert (ended.exit_code, all(fact in ended.stderr for fact in ("--output", f"{file}/out", str(file)))) == (2, True)


def without_last(table: pa.Table) -> pa.Table:
    return table.slice(0, len(table) - 1)


def other_id(table: pa.Table) -> pa.Table:
    return table.set_column(0, "id", pa.array(["ann", "bert", *table["id"].to_pylist()[2:]]))


def other_name(table: pa.Table) -> pa.Table:
    return table.rename_columns(["id", "title", "age"])


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (without_last, "attributes: 6 rows, but there are 7 vertices"),
        (other_id, "attributes/part-00000.parquet: row 1 has the id 'bert', not 'bob'"),
        (other_name, "attributes/part-00000.parquet has columns ['id', 'title', 'age'], not ['id', 'name', 'age']"),
    ],
)
def test_verify_finds_changed_attributes(tmp_path: Path, change: Callable[[pa.Table], pa.Table], text: str) -> None:
    rows, file = write_rows(tmp_path / "rows.parquet", ROWS, pa.string()), people(tmp_path / "people.parquet")
    result = mine(rows, tmp_path / "out", vertices=str(file), vertex_id="user")
    (path,) = (result.path / "attributes").iterdir()
    pq.write_table(change(pq.read_table(path)), path)
    content = path.read_bytes()
    now = {
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "rows": pq.read_metadata(path).num_rows,
    }
    outputs = [
        output.model_copy(update=now) if output.path.startswith("attributes/") else output
        for output in result.manifest.outputs
    ]
    (result.path / "manifest.json").unlink()
    write_manifest(result.path, result.manifest.model_copy(update={"outputs": outputs}))
    failed = [check for check in verify(tmp_path / "out").checks if not check.ok]
    assert [(check.name, check.detail) for check in failed] == [("attributes", text)]


CLUBS: dict[str, list[Any]] = {
    "id": [0, 1, 2, 3],
    "name": ["a", "b", None, "d"],
    "club": ["x", "x", "y", "y"],
    "size": [1, 2, 3, 4],
}
CLIQUE = list(itertools.combinations(range(4), 2))


def frames() -> dict[str, Any]:
    table = pa.table(CLUBS)
    pandas_frame, polars_frame = pd.DataFrame(CLUBS), pl.DataFrame(CLUBS)
    return {
        "pandas": pandas_frame.astype({"club": "category"}),
        "polars": polars_frame.with_columns(pl.col("club").cast(pl.Categorical)),
        "polars, lazy": polars_frame.lazy(),
        "Arrow": table,
        "batches": table.to_reader(),
        "dataset": ds.dataset(table),
        "DuckDB": duckdb.from_arrow(table),
        "Dask": dask.dataframe.from_pandas(pandas_frame, npartitions=2),  # type: ignore[no-untyped-call]
    }


@pytest.mark.parametrize("kind", frames())
def test_a_frame_of_attributes(kind: str, client: Client, tmp_path: Path) -> None:
    edges = write_rows(tmp_path / "edges.parquet", CLIQUE)
    result = mine(edges, client=client, vertices=frames()[kind])
    assert result.attributes.to_arrow().to_pydict() == CLUBS
    assert labels_of(result, [0, 2, 3]) == ["a", None, "d"]
    assert_nothing_left(client)


def test_a_run_with_a_frame_of_attributes_again(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same frame makes the same result; another one does not; an update takes a frame, too, and needs one."""
    edges, frame = write_rows(tmp_path / "edges.parquet", CLIQUE), pd.DataFrame(CLUBS)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    first = mine(edges, tmp_path / "out", client=client, vertices=frame, report=False)
    assert mine(edges, tmp_path / "out", client=client, vertices=frame.copy(), report=False).manifest == first.manifest
    with pytest.raises(UsageError, match="exists"):
        mine(edges, tmp_path / "out", client=client, vertices=frame.assign(size=7), report=False)
    batch = {"insert": pa.table({"src": [3], "dst": [9]}), "client": client}
    with pytest.raises(UsageError, match=r"came from a frame, which is not kept: .* as vertices$"):
        update(first, tmp_path / "next", **batch)
    after = update(first, tmp_path / "next", vertices=frame, **batch)
    assert after.attributes.to_arrow()["name"].to_pylist() == [*CLUBS["name"], None]
    assert not list(temporary.glob("edgemill-*"))


@pytest.mark.parametrize(
    ("frame", "told"),
    [
        (7, "vertices cannot be a builtins.int: give a path, or a table"),
        (nx.path_graph(3), "vertices cannot be a networkx.Graph"),
        (pd.DataFrame({"x": [1]}), "the pandas.DataFrame of vertices has no column 'id' or 'vertex'"),
        (pa.table({"id": ["a"], "size": [1]}), "the pyarrow.Table of vertices: column 'id' is string"),
    ],
)
def test_a_frame_that_has_no_attributes(frame: Any, told: str, tmp_path: Path) -> None:
    edges = write_rows(tmp_path / "edges.parquet", CLIQUE)
    with pytest.raises((UsageError, InputError)) as caught:
        mine(edges, vertices=frame)
    assert str(caught.value).startswith(told) and "--" not in str(caught.value) and "/tmp" not in str(caught.value)
