"""Iceberg tables: the live files of a snapshot, and tables whose files alone do not have its rows."""

from __future__ import annotations

import gzip
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.manifest import DataFileContent, FileFormat
from pyiceberg.table import Table
from pyiceberg.types import LongType

import lakes
from edgemill.tasks.errors import InputAbsent, InputError, UsageError
from edgemill.tasks.inputs.open_source import open_source
from edgemill.tasks.inputs.sources import Source
from edgemill.tasks.tables.iceberg import newest_metadata


def edges(source: Source) -> list[lakes.Edge]:
    found = []
    for file in source.files:
        table = pq.ParquetFile(file.path).read(columns=["src", "dst"])
        found += list(zip(table["src"].to_pylist(), table["dst"].to_pylist(), strict=True))
    return sorted(found)


def snapshots(table: Table) -> list[int]:
    """Ids of snapshots with rows, oldest first."""
    return [one.snapshot_id for one in table.snapshots() if one.summary and one.summary["total-records"] != "0"]


def test_the_live_files_of_the_current_and_of_a_named_snapshot(tmp_path: Path) -> None:
    table = lakes.iceberg(tmp_path / "t", lakes.FIRST, lakes.SECOND)
    assert len(list(tmp_path.glob("t/data/*.parquet"))) == 2
    source = open_source(str(tmp_path / "t"))
    assert edges(source) == sorted(lakes.SECOND)
    first, second = snapshots(table)
    assert source.table is not None
    assert (source.table.format, source.table.version) == ("iceberg", second)
    assert source.table.location == str(tmp_path / "t")
    assert edges(open_source(str(tmp_path / "t"), table_version=first)) == sorted(lakes.FIRST)
    with pytest.raises(UsageError, match=rf"no snapshot 5 \(input.table_version\).* newest .*{second}"):
        open_source(str(tmp_path / "t"), table_version=5)


def test_a_file_of_metadata_says_which_table(tmp_path: Path) -> None:
    table = lakes.iceberg(tmp_path / "t", lakes.FIRST)
    then = lakes.metadata_of(table)
    table.overwrite(lakes.rows(lakes.SECOND))
    source = open_source(str(then))
    assert edges(source) == sorted(lakes.FIRST)
    assert source.table is not None
    assert source.table.location == str(tmp_path / "t")


def test_rows_added_and_rows_deleted(tmp_path: Path) -> None:
    """Pyiceberg rewrites files without the deleted rows."""
    table = lakes.iceberg(tmp_path / "t", lakes.FIRST)
    table.append(lakes.rows(lakes.SECOND))
    table.delete("src == 1")
    kept = [edge for edge in (*lakes.FIRST, *lakes.SECOND) if edge[0] != 1]
    assert edges(open_source(str(tmp_path / "t"))) == sorted(kept)
    table.delete("src > 0")
    with pytest.raises(InputAbsent, match="Iceberg table"):
        open_source(str(tmp_path / "t"))


def test_without_a_snapshot(tmp_path: Path) -> None:
    lakes.iceberg(tmp_path / "t", lakes.FIRST)
    first = next(tmp_path.glob("t/metadata/00000-*.metadata.json"))
    with pytest.raises(InputAbsent, match="snapshot yet"):
        open_source(str(first))


def test_partitions_by_values(tmp_path: Path) -> None:
    """Iceberg files have all columns, also partition columns, so src may be one."""
    table = lakes.rows(lakes.FIRST, day=["a b", "x%y", "ü", "12:30", "a+b", "#?"])
    made = lakes.iceberg(tmp_path / "t", table.slice(0, 2))
    with made.update_spec() as update:
        update.add_identity("day").add_identity("src")
    made.append(table.slice(2))
    assert len(list(tmp_path.glob("t/data/*/*/*.parquet"))) == 4
    assert edges(open_source(str(tmp_path / "t"))) == sorted(lakes.FIRST)


@pytest.mark.parametrize(
    ("content", "file_format", "message"),
    [
        (DataFileContent.POSITION_DELETES, FileFormat.PARQUET, "has position deletes .*deletes.parquet"),
        (DataFileContent.POSITION_DELETES, FileFormat.PUFFIN, "has position deletes .*deletes.puffin"),
        (DataFileContent.EQUALITY_DELETES, FileFormat.PARQUET, "has equality deletes .*deletes.parquet"),
    ],
    ids=["positions", "vector", "equality"],
)
def test_delete_files_are_refused(
    tmp_path: Path, content: DataFileContent, file_format: FileFormat, message: str
) -> None:
    table = lakes.iceberg(tmp_path / "t", lakes.FIRST)
    lakes.add_deletes(table, content, file_format)
    with pytest.raises(InputError, match=rf"4711\) {message}") as caught:
        open_source(str(tmp_path / "t"))
    assert caught.value.exit_code == 3
    assert edges(open_source(str(tmp_path / "t"), table_version=snapshots(table)[0])) == sorted(lakes.FIRST)


def renamed(table: Table) -> None:
    for before, after in (("src", "old"), ("dst", "src"), ("old", "dst")):
        with table.update_schema() as update:
            update.rename_column(before, after)


def added_anew(table: Table) -> None:
    """Files still have a column with this name, but the table has other values."""
    with table.update_schema(allow_incompatible_changes=True) as update:
        update.delete_column("src")
    with table.update_schema() as update:
        update.add_column("src", LongType())


@pytest.mark.parametrize("change", [renamed, added_anew])
def test_columns_with_other_names_in_the_files(tmp_path: Path, change: Callable[[Table], None]) -> None:
    change(lakes.iceberg(tmp_path / "t", lakes.FIRST))
    with pytest.raises(InputError, match=r"'src'.*renamed"):
        open_source(str(tmp_path / "t"), "src", "dst")


def test_columns_of_an_old_snapshot(tmp_path: Path) -> None:
    table = lakes.iceberg(tmp_path / "t", lakes.FIRST)
    with table.update_schema() as update:
        update.rename_column("src", "from").add_column("weight", LongType())
    table.append(pa.table({"from": [5], "dst": [6], "weight": [7]}))
    with pytest.raises(InputError, match=r"'src'.*'from'.*'dst'.*'weight'"):
        open_source(str(tmp_path / "t"), "src", "dst")
    assert edges(open_source(str(tmp_path / "t"), table_version=snapshots(table)[0])) == sorted(lakes.FIRST)


def test_added_files_without_field_ids(tmp_path: Path) -> None:
    """They have no field ids: the table maps their names."""
    table = lakes.iceberg(tmp_path / "t", lakes.FIRST)
    pq.write_table(lakes.rows(lakes.SECOND), tmp_path / "loose.parquet")
    table.add_files([f"file://{tmp_path}/loose.parquet"])
    assert edges(open_source(str(tmp_path / "t"))) == sorted([*lakes.FIRST, *lakes.SECOND])
    added_anew(table)
    with pytest.raises(InputError, match="'src'"):
        open_source(str(tmp_path / "t"), "src", "dst")


@pytest.mark.parametrize(
    ("names", "hint", "newest"),
    [
        ("00000-a 00001-b 00010-c 00002-d", None, "00010-c"),
        ("v1 v2 v10", "2", "v10"),  # a hint may be outdated
        ("00001-a 00001-b", "00001-a", "00001-a"),
        ("00001-a 00001-b", "00001-a.metadata.json", "00001-a"),
        ("anything", None, "anything"),
    ],
)
def test_the_newest_metadata(names: str, hint: str | None, newest: str) -> None:
    files = ["snap-1.avro", "version-hint.text", *(f"{name}.metadata.json" for name in names.split())]
    assert newest_metadata(files, hint) == f"{newest}.metadata.json"


@pytest.mark.parametrize(
    ("names", "hint", "why"),
    [
        ("00001-a 00001-b", None, "00001-a.metadata.json and 00001-b.metadata.json have the same number"),
        ("00001-a 00001-b", "00001-c", "have the same number"),
        ("v3 00001-b", "3", "numbered in different ways"),
        ("some other", None, "numbered in different ways"),
        ("00001-a 00002-b", "00001-a", "names 00001-a.metadata.json, and 00002-b.metadata.json is newer"),
    ],
)
def test_ambiguous_metadata(tmp_path: Path, names: str, hint: str | None, why: str) -> None:
    files = [f"{name}.metadata.json" for name in names.split()]
    with pytest.raises(ValueError, match=why):
        newest_metadata(files, hint)
    (tmp_path / "metadata").mkdir()
    for name in files:
        (tmp_path / "metadata" / name).touch()
    if hint is not None:
        (tmp_path / "metadata/version-hint.text").write_text(hint)
    with pytest.raises(UsageError, match=rf"{why}.*catalog"):
        open_source(str(tmp_path))


def test_compressed_metadata_and_a_hint(tmp_path: Path) -> None:
    table = lakes.iceberg(tmp_path / "t", lakes.FIRST)
    content = lakes.metadata_of(table).read_bytes()
    for file in tmp_path.glob("t/metadata/*.metadata.json"):
        file.unlink()
    (tmp_path / "t/metadata/v1.gz.metadata.json").write_bytes(gzip.compress(content))
    (tmp_path / "t/metadata/version-hint.text").write_text("1")
    assert edges(open_source(str(tmp_path / "t"))) == sorted(lakes.FIRST)


def test_a_table_that_was_moved(tmp_path: Path) -> None:
    lakes.iceberg(tmp_path / "t", lakes.FIRST)
    memory = fsspec.filesystem("memory")
    memory.put(str(tmp_path / "t"), "/lake/iceberg", recursive=True)
    with pytest.raises(InputError, match=r"memory:///lake/iceberg.*file:///"):
        open_source("memory://lake/iceberg")
    memory.rm("/lake", recursive=True)
    shutil.move(tmp_path / "t", tmp_path / "u")
    with pytest.raises(InputError, match="such file"):
        open_source(str(tmp_path / "u"))


def test_damaged_metadata(tmp_path: Path) -> None:
    lakes.iceberg(tmp_path / "t", lakes.FIRST)
    manifest = next(tmp_path.glob("t/metadata/*-m0.avro"))
    manifest.write_bytes(manifest.read_bytes()[:200])
    with pytest.raises(InputError, match="pyiceberg"):
        open_source(str(tmp_path / "t"))
    (tmp_path / "t/metadata/00099-a.metadata.json").write_text("{")
    with pytest.raises(InputError, match="pyiceberg"):
        open_source(str(tmp_path / "t"))


def test_a_missing_live_file(tmp_path: Path) -> None:
    lakes.iceberg(tmp_path / "t", lakes.FIRST)
    next(tmp_path.glob("t/data/*.parquet")).unlink()
    with pytest.raises(InputError, match="live file"):
        open_source(str(tmp_path / "t"))


def test_without_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lakes.iceberg(tmp_path / "t", lakes.FIRST)
    monkeypatch.setitem(sys.modules, "pyiceberg", None)
    with pytest.raises(UsageError, match=r"pip.*'edgemill\[iceberg\]'"):
        open_source(str(tmp_path / "t"))
