"""Attributes of vertices, from files to the table of a result, without a cluster."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import strategies
from edgemill.tasks import attributes
from edgemill.tasks.attributes import AttributeSource, BucketAttributes
from edgemill.tasks.errors import InputError
from edgemill.tasks.ids.id_types import to_internal
from edgemill.tasks.ingest.numbering import BucketIds
from edgemill.tasks.inputs.sources import refuse_changed_files
from edgemill.tasks.messages import collect
from edgemill.tasks.storage.folders import Folder
from examples import examples

KINDS = (pa.string(), pa.int16(), pa.float64(), pa.bool_(), pa.date32(), pa.timestamp("us", "UTC"), pa.decimal128(9, 2))


def bucket(number: int, ids: list[Any], id_type: pa.DataType) -> BucketIds:
    """The ids of a bucket."""
    return BucketIds(number, to_internal(pa.chunked_array([pa.array(ids, id_type)]), id_type), {})


def joined(
    source: AttributeSource, buckets: list[BucketIds], out: Path, rows_per_block: int = 3, row_group_rows: int = 2
) -> tuple[list[BucketAttributes], pa.Table]:
    """Do what a run does, in one process; returns the table that it wrote."""
    firsts = [attributes.bucket_range(own) for own in buckets]
    blocks = attributes.plan_attribute_blocks(source, rows_per_block)
    sent = [attributes.send_attributes(attributes.read_attributes(source, block), firsts) for block in blocks]
    how = attributes.AttributeTable(Folder(str(out)), "zstd", row_group_rows)
    out.mkdir()
    written = [attributes.publish_attributes(source, how, own, collect(own.bucket, sent)) for own in buckets]
    assert sum(own.file.rows for own in written) == sum(len(own) for own in buckets)
    return written, pa.concat_tables([pq.read_table(out / own.file.name, partitioning=None) for own in written])


@given(data=st.data())
@settings(max_examples=examples(40))
def test_every_vertex_has_its_row(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """With any ids in any buckets, some of them empty, and any rows in any files and blocks."""
    folder = tmp_path_factory.mktemp("attributes")
    naming = data.draw(strategies.namings(12))
    ids = sorted(naming.names)
    graph = sorted(data.draw(st.sets(st.sampled_from(ids))))
    rows = data.draw(st.permutations(sorted(data.draw(st.sets(st.sampled_from(ids))))))
    kind = data.draw(st.sampled_from([pa.string(), pa.int32()]))
    values = {
        id: None if place % 4 == 3 else place if kind == pa.int32() else f"name {place}"
        for place, id in enumerate(rows)
    }
    files = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=3)))
    folder.joinpath("rows").mkdir()
    for number, (start, stop) in enumerate(zip([0, *files], [*files, len(rows)], strict=True)):
        own = rows[start:stop]
        columns = [pa.array([values[id] for id in own], kind), pa.array(own, naming.type)]
        size = data.draw(st.integers(1, 4))
        pq.write_table(
            pa.table(columns, names=["what", "vertex"]), folder / f"rows/{number}.parquet", row_group_size=size
        )
    cuts = sorted(data.draw(st.lists(st.integers(0, len(graph)), max_size=4)))
    buckets = [
        bucket(number, graph[start:stop], naming.type)
        for number, (start, stop) in enumerate(zip([0, *cuts], [*cuts, len(graph)], strict=True))
    ]
    source = attributes.open_attributes(str(folder / "rows"), naming.type)
    written, table = joined(source, buckets, folder / "out", data.draw(st.integers(1, 5)), data.draw(st.integers(1, 4)))
    assert table.schema.types == [naming.type, kind]
    assert table.to_pydict() == {"id": graph, "what": [values.get(id) for id in graph]}
    assert sum(own.unknown for own in written) == len({*rows} - {*graph})
    assert sum(own.missing for own in written) == len({*graph} - {*rows})
    assert source.rows == len(rows)


def test_types_and_labels(tmp_path: Path) -> None:
    """Types do not change, except that string types become string."""
    columns = {
        "user": pa.array([3, 1], pa.int16()),
        "name": pa.array(["c", None]).dictionary_encode(),
        "long": pa.array(["x", "y"], pa.large_string()),
        "age": pa.array([7, 8], pa.uint8()),
        "score": pa.array([0.5, None], pa.float32()),
        "real": pa.array([True, False]),
        "born": pa.array([1, 2], pa.date32()),
        "seen": pa.array([1, 2], pa.timestamp("ms")),
        "paid": pa.array([Decimal("1.50"), None], pa.decimal128(9, 2)),
        "none": pa.nulls(2),
    }
    pq.write_table(pa.table(columns), tmp_path / "people.parquet")
    source = attributes.open_attributes(str(tmp_path / "people.parquet"), pa.int64(), id_column="user")
    assert source.label == "name"
    _, table = joined(source, [bucket(0, [1, 2, 3], pa.int64())], tmp_path / "out")
    assert [str(kind) for kind in table.schema.types] == [
        *("int64", "string", "string", "uint8", "float", "bool", "date32[day]", "timestamp[ms]", "decimal128(9, 2)"),
        "string",
    ]
    assert table["name"].to_pylist() == [None, None, "c"]
    assert table["paid"].to_pylist() == [None, None, Decimal("1.50")]
    chosen = attributes.open_attributes(
        str(tmp_path / "people.parquet"), pa.int64(), id_column="user", columns=["age", "long"]
    )
    assert (chosen.schema.names, chosen.label) == (["age", "long"], "long")
    unlabelled = attributes.open_attributes(
        str(tmp_path / "people.parquet"), pa.int64(), id_column="user", columns=["age"]
    )
    assert unlabelled.label is None


def test_row_groups_of_much_text_are_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attributes, "_GROUP_BYTES", 3000)
    table = pa.table({"id": list(range(16)), "text": [f"{number}" * 500 for number in range(16)]})
    pq.write_table(table, tmp_path / "texts.parquet")
    source = attributes.open_attributes(str(tmp_path / "texts.parquet"), pa.int64())
    (own,), found = joined(source, [bucket(0, list(range(16)), pa.int64())], tmp_path / "out", 100, 100)
    assert found.equals(table)
    assert pq.read_metadata(tmp_path / "out" / own.file.name).num_row_groups > 3


def refused(path: Path, text: str, id_type: pa.DataType, **given: Any) -> None:
    with pytest.raises(InputError, match=text):
        attributes.open_attributes(str(path), id_type, **given)


def test_invalid_attributes_are_refused_before_a_run(tmp_path: Path) -> None:
    file = tmp_path / "people.parquet"
    refused(file, "--vertices '.*people.parquet' does not exist", pa.int64())
    columns = {"user": [1], "name": ["a"], "lambda": [1], "tags": [["x"]], "other": [2]}
    pq.write_table(pa.table(columns), file)
    refused(file, "has no column 'id' or 'vertex'; it has 'user', .*: name .* with --vertex-id COLUMN", pa.int64())
    refused(file, "has no column 'users'; it has", pa.int64(), id_column="users")
    refused(file, "column 'name' is string, and the ids of the edges are int64", pa.int64(), id_column="name")
    refused(file, "column 'user' is int64, and the ids of the edges are string", pa.string(), id_column="user")
    user = {"id_column": "user"}
    refused(file, "column 'lambda' has a name that the result uses itself", pa.int64(), **user)
    refused(file, "column 'tags' is list<.*cast it, .*or choose others", pa.int64(), columns=["name", "tags"], **user)
    refused(file, "has no column 'town'; it has", pa.int64(), columns=["town"], **user)
    refused(file, "input.vertex_columns has 'user', which is the id column", pa.int64(), columns=["user"], **user)
    refused(file, "input.vertex_label is 'x', which is no attribute", pa.int64(), columns=["name"], label="x", **user)
    pq.write_table(pa.table({"id": [1]}), tmp_path / "alone.parquet")
    refused(tmp_path / "alone.parquet", "has no column besides 'id', so there are no attributes", pa.int64())
    (tmp_path / "folder").mkdir()
    pq.write_table(pa.table({"id": [1], "a": [1]}), tmp_path / "folder/1.parquet")
    pq.write_table(pa.table({"id": [1], "a": ["x"]}), tmp_path / "folder/2.parquet")
    refused(tmp_path / "folder", "column 'a' is int64 in .*1.parquet and string in .*2.parquet", pa.int64())
    (tmp_path / "people.csv").write_text("id,name\n1,a\n")
    refused(tmp_path / "people.csv", r"is csv, .* with DuckDB: COPY \(SELECT \* FROM '.*people.csv'\)", pa.int64())
    (tmp_path / "text.parquet").write_text("id,name\n")
    refused(tmp_path / "text.parquet", "text.parquet cannot be read as Parquet", pa.int64())


def test_invalid_rows_are_refused(tmp_path: Path) -> None:
    """Null ids, ids outside the type's range, and ids with several rows, in the graph or not."""
    file = tmp_path / "people.parquet"

    def fails(ids: pa.Array, text: str) -> None:
        pq.write_table(pa.table({"id": ids, "a": pa.nulls(len(ids), pa.int8())}), file, row_group_size=2)
        source = attributes.open_attributes(str(file), pa.int64())
        with pytest.raises(InputError, match=text):
            joined(source, [bucket(0, [1, 2], pa.int64()), bucket(1, [5], pa.int64())], tmp_path / f"out{len(text)}")

    fails(pa.array([1, 2, None, 3]), "people.parquet: row group 1 has 1 null ids in column 'id'")
    fails(
        pa.array([2**63 + 1], pa.uint64()),
        "people.parquet: row group 0: column 'id', uint64, has ids that are no int64",
    )
    fails(pa.array([1, 2, 3, 5, 2]), "people.parquet: the id 2 is in 2 rows of column 'id': keep one row of each")
    fails(pa.array([9, 8, 8, 9, 8, 1]), "people.parquet: the id 8 is in 3 rows of column 'id'")


@pytest.mark.parametrize("change", [lambda file: file.write_bytes(b"x" * 999), lambda file: file.unlink()])
def test_changed_files_are_refused(tmp_path: Path, change: Callable[[Path], Any]) -> None:
    file = tmp_path / "people.parquet"
    pq.write_table(pa.table({"id": [1], "a": [1]}), file)
    source = attributes.open_attributes(str(file), pa.int64())
    refuse_changed_files(source)
    change(file)
    for look in (
        lambda: refuse_changed_files(source),
        lambda: joined(source, [bucket(0, [1], pa.int64())], tmp_path / "o"),
    ):
        with pytest.raises(InputError, match=r"changed during the run|was removed"):
            look()
