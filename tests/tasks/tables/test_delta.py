"""Delta tables: the live files of a version, and tables whose files alone do not have its rows."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

import lakes
from edgemill.tasks.errors import InputAbsent, InputError, UsageError
from edgemill.tasks.inputs.open_source import open_source
from edgemill.tasks.inputs.sources import Source
from edgemill.tasks.tables.delta import log_files

UUID = "01234567-89ab-cdef-0123-456789abcdef"


def edges(source: Source) -> list[lakes.Edge]:
    found = []
    for file in source.files:
        with fsspec.open(file.path) as stream:
            table = pq.read_table(stream, columns=["src", "dst"])
        found += list(zip(table["src"].to_pylist(), table["dst"].to_pylist(), strict=True))
    return sorted(found)


def test_the_live_files_of_the_current_and_of_a_named_version(tmp_path: Path) -> None:
    table = lakes.delta(tmp_path / "t", lakes.FIRST, lakes.SECOND)
    assert len(list(table.glob("*.parquet"))) == 2
    source = open_source(str(table))
    assert edges(source) == sorted(lakes.SECOND)
    assert source.table is not None
    assert (source.table.format, source.table.version, source.table.location) == ("delta", 1, str(table))
    assert edges(open_source(str(table), table_version=1)) == edges(source)
    assert edges(open_source(f"file://{table}/", table_version=0)) == sorted(lakes.FIRST)
    with pytest.raises(UsageError, match=r"no version 2 \(input.table_version\).* newest version is 1"):
        open_source(str(table), table_version=2)


def test_a_log_with_a_checkpoint_and_without_its_first_commits(tmp_path: Path) -> None:
    table = lakes.delta(tmp_path / "t", lakes.FIRST, lakes.FIRST, lakes.SECOND, lakes.FIRST, lakes.SECOND)
    DeltaTable(table, version=2).create_checkpoint()
    for commit in (0, 1, 2):
        (table / f"_delta_log/{commit:020}.json").unlink()
    assert edges(open_source(str(table))) == sorted(lakes.SECOND)
    assert edges(open_source(str(table), table_version=3)) == sorted(lakes.FIRST)
    assert edges(open_source(str(table), table_version=2)) == sorted(lakes.SECOND)
    with pytest.raises(UsageError, match=r"commit 1.*2"):
        open_source(str(table), table_version=1)


@pytest.mark.parametrize(
    ("names", "version", "needed"),
    [
        ("0.json 1.json 2.json", None, "0.json 1.json 2.json"),
        ("0.json 1.json 2.json", 1, "0.json 1.json"),
        ("1.json 1.checkpoint.parquet 2.json 3.json", None, "1.checkpoint.parquet 2.json 3.json"),
        ("0.json 1.json 1.checkpoint.parquet 2.json", 0, "0.json"),
        ("1.checkpoint.parquet", None, "1.checkpoint.parquet"),
        ("1.checkpoint.A.json 2.json", None, "1.checkpoint.A.json 2.json"),
        ("0.json 1.json 1.checkpoint.1.2.parquet", None, "0.json 1.json"),  # an incomplete checkpoint
        (
            "1.json 1.checkpoint.1.2.parquet 1.checkpoint.2.2.parquet",
            None,
            "1.checkpoint.1.2.parquet 1.checkpoint.2.2.parquet",
        ),
        ("0.json 0.crc 1.json _last_checkpoint 0.1.compacted.json", None, "0.json 1.json"),
    ],
)
def test_the_files_of_a_log_that_a_version_needs(names: str, version: int | None, needed: str) -> None:
    def whole(name: str) -> str:
        number, *rest = name.split(".")
        rest = [
            f"{int(part):010}" if part.isdecimal() else part.replace("A", f"{7:08}-aaaa-bbbb-cccc-{7:012}")
            for part in rest
        ]
        return ".".join([f"{int(number):020}" if number.isdecimal() else number, *rest])

    assert log_files(map(whole, names.split()), version)[1] == [whole(name) for name in needed.split()]


def test_paths_of_every_kind(tmp_path: Path) -> None:
    """Partition values are escaped in the paths of files, and paths are escaped again in the log."""
    days = ["a b", "x%y", "ü", "12:30", "a+b", "#?"]
    table = lakes.delta(tmp_path / "t", lakes.rows(lakes.FIRST, day=days), partition_by=["day"])
    source = open_source(str(table.rename(tmp_path / "moved to 100%20 #")))
    assert len(source.files) == 6
    assert edges(source) == sorted(lakes.FIRST)
    assert (source.source_column, source.target_column) == ("src", "dst")


@pytest.mark.parametrize("names", [(None, None), ("src", "dst")])
def test_a_column_that_only_paths_have(tmp_path: Path, names: tuple[str | None, str | None]) -> None:
    """The files have two other columns, dst and weight, which are not the ends of edges."""
    table = lakes.delta(tmp_path / "t", lakes.rows(lakes.FIRST, weight=[7] * 6), partition_by=["src"])
    with pytest.raises(InputError, match=r"'src'.*partition") as caught:
        open_source(str(table), *names)
    assert caught.value.exit_code == 3
    with pytest.raises(InputError, match=r"'from'.*'src'.*'dst'.*'weight'"):
        open_source(str(table), "from", "dst")


def shallow_clone(action: dict[str, dict[str, str]]) -> None:
    if "add" in action:
        action["add"]["path"] = "file:///elsewhere/a.parquet"


def climbing(folder: Path) -> None:
    def change(action: dict[str, dict[str, str]]) -> None:
        if "add" in action:
            action["add"]["path"] = "a/%2E%2E/../b.parquet"

    lakes.change_log(folder, change)


def planted(folder: Path) -> None:
    """Write a checkpoint with a path outside the folder of the copied log."""
    in_sidecar(folder, UUID, 0)
    path = next(folder.glob("_delta_log/*.checkpoint.*.json"))
    path.write_text(path.read_text().replace(f"{UUID}.parquet", "../../../planted.parquet"))


def cloned(folder: Path) -> None:
    lakes.change_log(folder, shallow_clone)


def mapped(folder: Path) -> None:
    def change(action: dict[str, dict[str, str]]) -> None:
        if "metaData" in action:
            schema = json.loads(action["metaData"]["schemaString"])
            for number, field in enumerate(schema["fields"]):
                field["metadata"] = {
                    "delta.columnMapping.id": number + 1,
                    "delta.columnMapping.physicalName": f"c{number}",
                }
            action["metaData"]["schemaString"] = json.dumps(schema)

    lakes.with_features(folder, "columnMapping", delta_columnMapping_mode="name")
    lakes.change_log(folder, change)


def unknown(folder: Path) -> None:
    lakes.with_features(folder, "catalogManaged", delta_enableInCommitTimestamps="true")


def damaged(folder: Path) -> None:
    (folder / "_delta_log" / f"{0:020}.json").write_text('{"add":')


def lost(folder: Path) -> None:
    next(folder.glob("*.parquet")).unlink()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lakes.with_deletion_vector,
            r"/t \(Delta table, version 0\) has deletion vectors, so its files still have deleted rows",
        ),
        (mapped, r"uses column mapping"),
        (cloned, r"has files outside its folder, such as file:///elsewhere/a.parquet"),
        (climbing, r"has files outside its folder"),
        (planted, r"a checkpoint refers to the sidecar '../../../planted.parquet', which is outside its folder"),
        (unknown, r"cannot be read by deltalake .*catalog"),
        (damaged, r"the log of the Delta table .* cannot be read by deltalake"),
        (lost, r"has a live file that does not exist: .*part-.*parquet.*; if it was removed as old \(VACUUM"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_tables_whose_files_alone_do_not_have_the_rows(
    tmp_path: Path, change: Callable[[Path], object], message: str
) -> None:
    table = lakes.delta(tmp_path / "t", lakes.FIRST)
    change(table)
    with pytest.raises(InputError, match=message) as caught:
        open_source(str(table))
    assert caught.value.exit_code == 3


def test_features_that_are_not_used(tmp_path: Path) -> None:
    features = [
        "deletionVectors",
        "columnMapping",
        "timestampNtz",
        "v2Checkpoint",
        "typeWidening",
        "vacuumProtocolCheck",
    ]
    table = lakes.with_features(lakes.delta(tmp_path / "t", lakes.FIRST), *features)
    assert edges(open_source(str(table))) == sorted(lakes.FIRST)


def test_rows_added_and_rows_deleted(tmp_path: Path) -> None:
    table = lakes.delta(tmp_path / "t", lakes.FIRST)
    write_deltalake(table, lakes.rows(lakes.SECOND), mode="append")
    DeltaTable(table).delete("src = 1")
    kept = [edge for edge in (*lakes.FIRST, *lakes.SECOND) if edge[0] != 1]
    assert edges(open_source(str(table))) == sorted(kept)
    DeltaTable(table).delete()
    with pytest.raises(InputAbsent, match=r"Delta table, version 3\) .*no file"):
        open_source(str(table))


def test_without_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = lakes.delta(tmp_path / "t", lakes.FIRST)
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(UsageError, match=r"pip.*'edgemill\[delta\]'"):
        open_source(str(table))


def test_a_store_that_deltalake_does_not_support(tmp_path: Path) -> None:
    table = lakes.delta(tmp_path / "t", lakes.FIRST, lakes.SECOND)
    memory = fsspec.filesystem("memory")
    memory.put(str(table), "/lake/delta", recursive=True)
    source = open_source("memory://lake/delta")
    assert edges(source) == sorted(lakes.SECOND)
    assert source.table is not None
    assert source.table.location == "memory:///lake/delta"
    memory.put(
        str(lakes.with_deletion_vector(lakes.delta(tmp_path / "d", lakes.FIRST))), "/lake/deleted", recursive=True
    )
    with pytest.raises(InputError, match="deletion vectors"):
        open_source("memory://lake/deleted")
    memory.rm("/lake", recursive=True)


def test_a_version_without_a_table(tmp_path: Path) -> None:
    pq.write_table(lakes.rows(lakes.FIRST), tmp_path / "a.parquet")
    with pytest.raises(UsageError, match=r"input.table_version is 0.*no Delta or Iceberg table"):
        open_source(str(tmp_path), table_version=0)


def test_a_checkpoint_in_parts(tmp_path: Path) -> None:
    """A version 2 checkpoint, whose actions are in several files."""
    table = lakes.delta(tmp_path / "t", lakes.FIRST, lakes.SECOND)
    DeltaTable(table).create_checkpoint()
    log = table / "_delta_log"
    whole = pq.read_table(log / f"{1:020}.checkpoint.parquet")
    half = whole.num_rows // 2
    for part, piece in enumerate((whole.slice(0, half), whole.slice(half)), 1):
        pq.write_table(piece, log / f"{1:020}.checkpoint.{part:010}.{2:010}.parquet")
    for name in (f"{1:020}.checkpoint.parquet", f"{0:020}.json", f"{1:020}.json", "_last_checkpoint"):
        (log / name).unlink()
    assert edges(open_source(str(table))) == sorted(lakes.SECOND)
    shutil.rmtree(log)
    log.mkdir()
    with pytest.raises(UsageError, match="it has no commits"):
        open_source(str(table))


def test_a_checkpoint_whose_files_are_in_sidecars(tmp_path: Path) -> None:
    table = lakes.with_features(lakes.delta(tmp_path / "t", lakes.FIRST, lakes.SECOND), "v2Checkpoint")
    in_sidecar(table, UUID, 1)
    (table / f"_delta_log/{0:020}.json").unlink()
    assert edges(open_source(str(table))) == sorted(lakes.SECOND)


@pytest.mark.parametrize("where", ["a commit", "a checkpoint", "a sidecar"])
def test_the_last_action_decides_on_a_deletion_vector(tmp_path: Path, where: str) -> None:
    """A row of a file is deleted in version 1, and restored by version 2."""
    table = lakes.with_features(lakes.delta(tmp_path / "t", lakes.FIRST), "v2Checkpoint", "deletionVectors")
    log = table / "_delta_log"
    (add,) = [action["add"] for line in (log / f"{0:020}.json").open() if "add" in (action := json.loads(line))]
    deleted = add | {"deletionVector": lakes.VECTOR}
    for version, before, after in ((1, add, deleted), (2, deleted, add)):
        removed = {name: before[name] for name in ("path", "deletionVector") if name in before}
        remove = {"remove": removed | {"dataChange": True, "deletionTimestamp": 1}}
        (log / f"{version:020}.json").write_text(f"{json.dumps(remove)}\n{json.dumps({'add': after})}")
    if where != "a commit":
        for version in (1, 2):
            DeltaTable(table, version=version).create_checkpoint()
            if where == "a sidecar":
                in_sidecar(table, f"{version}{UUID[1:]}", version)
        (log / f"{0:020}.json").unlink()
    with pytest.raises(InputError, match="deletion vectors"):
        open_source(str(table), table_version=1)
    assert edges(open_source(str(table))) == sorted(lakes.FIRST)


def in_sidecar(table: Path, name: str, version: int) -> None:
    """Write a checkpoint as version 2, with its files in a sidecar."""
    log = table / "_delta_log"
    DeltaTable(table, version=version).create_checkpoint()
    classic = log / f"{version:020}.checkpoint.parquet"
    actions = pq.read_table(classic)
    (log / "_sidecars").mkdir(exist_ok=True)
    inner = log / "_sidecars" / f"{name}.parquet"
    pq.write_table(actions.filter(actions["add"].is_valid()).select(["add", "remove"]), inner)
    told = inner.stat()
    lines: list[dict[str, Any]] = [{"checkpointMetadata": {"version": version}}]
    lines += [{"sidecar": {"path": inner.name, "sizeInBytes": told.st_size, "modificationTime": 1}}]
    for line in (log / f"{0:020}.json").read_text().splitlines():
        lines += [action for action in [json.loads(line)] if {"protocol", "metaData"} & action.keys()]
    (log / f"{version:020}.checkpoint.{name}.json").write_text("\n".join(map(json.dumps, lines)))
    classic.unlink()
    (log / "_last_checkpoint").unlink()


def test_ids_that_are_names(tmp_path: Path) -> None:
    table = lakes.delta(tmp_path / "t", [("a", "b"), ("b", "c")])
    assert open_source(str(table)).id_type in (pa.string(), pa.large_string())
