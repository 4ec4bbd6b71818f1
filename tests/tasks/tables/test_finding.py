"""Tables, parts of tables, and other files. Single files of a table are never read."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fsspec
import pyarrow.parquet as pq
import pytest
from fsspec.implementations.memory import MemoryFileSystem

import lakes
from edgemill.tasks.errors import InputError, UsageError
from edgemill.tasks.inputs.open_source import open_source
from edgemill.tasks.tables.finding import table_at
from edgemill.tasks.verify.input import input_pieces, live_files


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lake = tmp_path_factory.mktemp("made") / "lake"
    parted = lakes.rows(lakes.FIRST, part=[0, 0, 0, 1, 1, 1])
    lakes.delta(lake / "delta", parted, parted, partition_by=["part"])
    lakes.iceberg(lake / "iceberg", lakes.FIRST, lakes.SECOND)
    for name in ("hudi/2026", "loose/a", "loose/_old", "of/metadata"):
        (lake / name).mkdir(parents=True)
        pq.write_table(lakes.rows(lakes.FIRST), lake / name / "edges.parquet")
    (lake / "hudi/.hoodie").mkdir()
    (lake / "hudi/.hoodie/hoodie.properties").write_text("hoodie.table.version=6\n")
    shutil.copytree(lake / "delta", lake / "loose/_old/delta")
    return lake


@pytest.fixture
def lake(made: Path, tmp_path: Path) -> Path:
    """Tables of each format, and plain files."""
    return Path(shutil.copytree(made, tmp_path / "lake"))


@pytest.fixture
def stored(lake: Path) -> Iterator[str]:
    """The same files in a store."""
    memory = fsspec.filesystem("memory")
    memory.put(str(lake), "/bucket/lake", recursive=True)
    yield "memory://bucket/lake"
    memory.rm("/bucket", recursive=True)


PARTS = [
    ("delta/part=0", "Delta"),
    ("delta/part=0/*.parquet", "Delta"),
    ("delta/*/*.parquet", "Delta"),
    ("delta/part=*", "Delta"),
    ("delta/**/*.parquet", "Delta"),
    ("delta*", "Delta"),
    ("d*/*/*.parquet", "Delta"),
    ("*/part=0/part-*", "Delta"),
    ("**/*.parquet", ""),
    ("*", ""),
    ("", ""),
    ("iceberg/data", "Iceberg"),
    ("iceberg/data/*.parquet", "Iceberg"),
    ("[i]ceberg/data/*.parquet", "Iceberg"),
    ("[i]ceberg", "Iceberg"),
    ("hudi/2026", "Hudi"),
    ("hudi/2026/edges.parquet", "Hudi"),
    ("h*/2026/*", "Hudi"),
]


@pytest.mark.parametrize(("path", "kind"), PARTS)
def test_a_part_of_a_table(lake: Path, path: str, kind: str) -> None:
    path = f"{lake}/{path}"
    with pytest.raises(UsageError, match=rf"files of the {kind}.* table {lake}/.*, some .* may be deleted"):
        open_source(path)
    with pytest.raises((UsageError, InputError), match=r"may be deleted|Is a directory"):
        list(input_pieces(path, {"source_column": "src", "target_column": "dst"}, live_files(path, None, None)))


@pytest.mark.parametrize(("path", "kind"), PARTS)
def test_a_part_of_a_table_in_a_store(stored: str, path: str, kind: str) -> None:
    with pytest.raises(UsageError, match=rf"{kind}.*memory:///bucket/lake/"):
        open_source(f"{stored}/{path}")


def test_one_file_of_a_table(lake: Path) -> None:
    for file in (*lake.glob("delta/part=0/*.parquet"), *lake.glob("iceberg/data/*.parquet")):
        with pytest.raises(UsageError, match="own folder"):
            open_source(str(file))


def test_links_to_tables(lake: Path, tmp_path: Path) -> None:
    """A link to a table is a table. A link into a table is a part of it."""
    (tmp_path / "latest").symlink_to(lake / "delta")
    (tmp_path / "inside").symlink_to(lake / "delta/part=0")
    assert open_source(str(tmp_path / "latest")).table is not None
    for path in ("inside", "inside/*.parquet"):
        with pytest.raises(UsageError, match=r"takes.*/lake/delta"):
            open_source(str(tmp_path / path))


def test_a_hudi_table_is_refused(lake: Path) -> None:
    with pytest.raises(UsageError, match="Hudi table") as caught:
        open_source(str(lake / "hudi"))
    assert caught.value.exit_code == 2
    shutil.copytree(lake / "delta/_delta_log", lake / "hudi/_delta_log")
    with pytest.raises(UsageError, match="Hudi table"):
        open_source(str(lake / "hudi"))


def test_a_delta_table_with_metadata_of_iceberg(lake: Path) -> None:
    shutil.copytree(lake / "iceberg/metadata", lake / "delta/metadata")
    source = open_source(str(lake / "delta"))
    assert source.table is not None
    assert source.table.format == "delta"


@pytest.mark.parametrize(
    "path",
    ["loose", "loose/a", "loose/a/edges.parquet", "loose/*/*.parquet", "lo*/a", "of", "of/metadata", "o*/*/*.parquet"],
)
def test_plain_files_beside_tables(lake: Path, stored: str, path: str) -> None:
    """Names that start with "_" are skipped in a folder and at the end of a glob, also if they are tables."""
    if path == "loose/*/*.parquet":
        shutil.rmtree(lake / "loose/_old/delta")
        fsspec.filesystem("memory").rm("/bucket/lake/loose/_old/delta", recursive=True)
    for root in (lake, stored):
        source = open_source(f"{root}/{path}")
        assert source.table is None
        assert {file.path.rpartition("/")[2] for file in source.files} == {"edges.parquet"}


@pytest.mark.parametrize("path", ["delta", "loose", "loose/a/*.parquet"])
def test_the_work_does_not_grow_with_the_files(stored: str, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    """Counts the calls that send requests to a store."""
    calls: Counter[str] = Counter()

    def counted(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def count(self: MemoryFileSystem, *arguments: Any, **options: Any) -> Any:
            calls[name] += 1
            return call(self, *arguments, **options)

        return count

    for name in ("info", "ls", "cat_file", "isfile", "isdir", "exists"):
        monkeypatch.setattr(MemoryFileSystem, name, counted(name, getattr(MemoryFileSystem, name)))
    table_at(f"{stored}/{path}", {})
    before = calls.copy()
    memory = fsspec.filesystem("memory")
    for number in range(50):
        memory.pipe(f"/bucket/lake/{path.partition('*')[0].rstrip('/')}/more-{number}.parquet", b"x")
    calls.clear()
    table_at(f"{stored}/{path}", {})
    assert calls == before
    assert sum(calls.values()) < 40
