"""Results as Delta tables: read back by deltalake over several nights, on a disk and in an S3 server."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import Result as Ended
from deltalake import DeltaTable

import lakes
import runs
import strategies
from edgemill.pipeline import Result, UsageError, mine
from edgemill.pipeline.nightly import delta
from edgemill.pipeline.nightly.delta import commit, create, declared
from edgemill.pipeline.output.manifest import write_manifest
from edgemill.tasks.storage.folders import Folder
from in_process import call
from made import made
from s3_servers import s3_server

TABLES = ("edges", "vertices", "hierarchy", "dn_graphs", "dn_graph_members")
DELTA: dict[str, Any] = {"device": "cpu", "output.report": False, "output.format": "delta"}
Options = dict[str, str] | None


def write_day(folder: Path, day: str, sizes: list[int]) -> None:
    """Edges of cliques of these sizes."""
    rows = [(10 * c + u, 10 * c + v) for c, size in enumerate(sizes) for u, v in combinations(range(size), 2)]
    (folder / "edges" / day).mkdir(parents=True)
    runs.write_rows(folder / "edges" / day / "part.parquet", rows)


def night(folder: Path, out: str, day: str, *more: str) -> Ended:
    paths = ["--input", f"{folder}/edges/{{date}}", "--output", f"{out}/{{date}}", "--date", day]
    plain = ["--device", "cpu", "--set", "output.report=false", "--output-format", "delta"]
    return call("run", *paths, *plain, *more)


def lines_of(ended: Ended) -> list[str]:
    return [line.rstrip() for line in ended.stdout.splitlines()]


def read(root: str, name: str, options: Options = None, version: int | None = None) -> pa.Table:
    table = DeltaTable(f"{root}/{name}", storage_options=options, version=version)
    rows = table.to_pyarrow_table()
    return rows.sort_by([(rows.column_names[0], "ascending"), (rows.column_names[1], "ascending")])


def own(result: Result, name: str) -> pa.Table:
    rows = getattr(result, name).to_table()
    return rows.sort_by([(rows.column_names[0], "ascending"), (rows.column_names[1], "ascending")])


def check(root: str, result: Result, options: Options = None, version: int | None = None) -> None:
    """Every Delta table has the rows of the result."""
    for name in TABLES:
        assert read(root, name, options, version).to_pylist() == own(result, name).to_pylist(), name


def test_nights_on_a_disk(tmp_path: Path) -> None:
    """Each night is a version. The last two can be read, even if the result of a night was removed."""
    out, root = str(tmp_path / "out"), str(tmp_path / "out/current")
    before: Result | None = None
    for number, (day, sizes) in enumerate({"18": [5, 4], "19": [5, 6], "20": [3]}.items()):
        write_day(tmp_path, f"2026-11-{day}", sizes)
        few = "--set", "nightly.least_share=null"
        ended = night(tmp_path, out, f"2026-11-{day}", "--set", "nightly.keep=1", *few)
        assert (ended.exit_code, ended.stderr) == (0, "")
        assert f"delta       {root}, version {number}" in lines_of(ended)
        check(root, Result(f"{out}/latest"))
        versions = [DeltaTable(f"{root}/{name}").version() for name in TABLES]
        assert versions == [number] * 5
        if before is not None:
            check(root, before, version=number - 1)
        shutil.copytree(f"{out}/2026-11-{day}", tmp_path / f"kept-{day}")
        before = Result(tmp_path / f"kept-{day}")
    assert sorted(os.listdir(out)) == ["2026-11-20", "current", "latest"]
    (told,) = DeltaTable(f"{root}/edges").history(1)
    assert (told["edgemill.run"], told["edgemill.day"]) == (Result(f"{out}/latest").manifest.run, "2026-11-20")
    files = [name for name in os.listdir(f"{root}/edges") if name.endswith(".parquet")]
    runs_there = {name.partition("-part")[0] for name in files}
    assert runs_there == {Result(f"{tmp_path}/kept-{day}").manifest.run for day in ("19", "20")}
    assert "tmp" not in Path(f"{root}/edges/_delta_log/{0:020}.json").read_text().replace(str(tmp_path), "")


def test_no_byte_is_copied_on_a_disk(tmp_path: Path) -> None:
    write_day(tmp_path, "2026-11-18", [5])
    assert night(tmp_path, str(tmp_path / "out"), "2026-11-18").exit_code == 0
    result = Result(tmp_path / "out/latest")
    for output in result.manifest.outputs:
        table, _, name = output.path.partition("/")
        linked = tmp_path / "out/current" / table / f"{result.manifest.run}-{name}"
        assert linked.samefile(result.path / output.path)


@pytest.fixture(scope="module")
def s3() -> Iterator[dict[str, Any]]:
    with s3_server() as options:
        yield options


@pytest.mark.slow
def test_nights_in_an_object_store(tmp_path: Path, s3: dict[str, Any]) -> None:
    keys = {
        "AWS_ACCESS_KEY_ID": s3["key"],
        "AWS_SECRET_ACCESS_KEY": s3["secret"],
        "AWS_ENDPOINT_URL": s3["client_kwargs"]["endpoint_url"],
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "us-east-1",
    }
    how = ["--set", f"output.storage_options={json.dumps(s3)}"]
    out, root = "s3://bucket/nights", "s3://bucket/nights/current"
    for version, (day, sizes) in enumerate({"2026-11-18": [5, 4], "2026-11-19": [6, 3]}.items()):
        write_day(tmp_path, day, sizes)
        ended = night(tmp_path, out, day, *how)
        assert (ended.exit_code, ended.stderr) == (0, "")
        assert f"delta       {root}, version {version}" in lines_of(ended)
        check(root, Result(f"{out}/{day}", s3), keys)
    check(root, Result(f"{out}/2026-11-18", s3), keys, version=0)
    ended = night(tmp_path, out, "2026-11-19", *how)
    assert ended.stdout.startswith("nothing to do") and "delta " not in ended.stdout
    assert DeltaTable(f"{root}/edges", storage_options=keys).version() == 1


@pytest.mark.slow
def test_an_older_day_that_is_mined_again_does_not_replace_the_newest(tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    for day, sizes in {"2026-11-18": [5], "2026-11-19": [4]}.items():
        write_day(tmp_path, day, sizes)
        assert night(tmp_path, out, day).exit_code == 0
    shutil.rmtree(tmp_path / "edges/2026-11-18")
    write_day(tmp_path, "2026-11-18", [7])
    assert night(tmp_path, out, "2026-11-18", "--overwrite").exit_code == 0
    check(f"{out}/current", Result(f"{out}/2026-11-19"))
    assert DeltaTable(f"{out}/current/edges").version() == 1


def test_a_run_without_a_series(tmp_path: Path) -> None:
    """OUT.delta, or a named folder. A result that replaces another is the next version; a repeated run makes none."""
    first = runs.write_rows(tmp_path / "first.parquet", combinations(range(5), 2))
    second = runs.write_rows(tmp_path / "second.parquet", combinations("abcd", 2), pa.string())
    result = mine(first, tmp_path / "out", **DELTA)
    check(f"{tmp_path}/out.delta", result)
    mine(first, tmp_path / "out", **DELTA)
    assert DeltaTable(tmp_path / "out.delta/edges").version() == 0
    result = mine(second, tmp_path / "out", overwrite=True, **DELTA)  # ids have another type
    check(f"{tmp_path}/out.delta", result)
    assert DeltaTable(tmp_path / "out.delta/edges").version() == 1
    mine(
        second, tmp_path / "out", **DELTA | {"output.delta_path": str(tmp_path / "tables")}
    )  # up to date: nothing is mined
    check(f"{tmp_path}/tables", result)


def test_a_repeated_run_completes_an_interrupted_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No table has an incomplete version, and tables that were committed keep their version."""
    out = str(tmp_path / "out")
    write_day(tmp_path, "2026-11-18", [5, 4])
    made_commits: list[str] = []

    def fail(folder: Folder, name: str, content: bytes) -> bool:
        if len(made_commits) == 2:
            raise UsageError(f"cannot write {folder}/{name}: no")
        made_commits.append(name)
        return create(folder, name, content)

    with monkeypatch.context() as patch:
        patch.setattr(delta, "create", fail)
        ended = night(tmp_path, out, "2026-11-18")
    assert ended.exit_code == 2
    assert f"{out}/2026-11-18" in ended.stderr
    assert len([name for name in TABLES if (tmp_path / "out/current" / name / "_delta_log").exists()]) == 2
    assert night(tmp_path, out, "2026-11-18").exit_code == 0
    check(f"{out}/current", Result(f"{out}/2026-11-18"))
    assert [DeltaTable(f"{out}/current/{name}").version() for name in TABLES] == [0] * 5


def test_the_second_of_two_writers_tries_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A newer night commits first: the older night adds no version after it."""
    out = str(tmp_path / "out")
    for day, sizes in {"2026-11-18": [5], "2026-11-19": [4]}.items():
        write_day(tmp_path, day, sizes)
    late: list[str] = []

    def first_the_other(folder: Folder, name: str, content: bytes) -> bool:
        if not late:
            late.append(name)
            assert night(tmp_path, out, "2026-11-19").exit_code == 0
        return create(folder, name, content)

    monkeypatch.setattr(delta, "create", first_the_other)
    assert night(tmp_path, out, "2026-11-18").exit_code == 0
    check(f"{out}/current", Result(f"{out}/2026-11-19"))
    assert {DeltaTable(f"{out}/current/{name}").version() for name in TABLES} == {0}


@pytest.mark.slow
def test_a_checkpoint_of_the_log(tmp_path: Path) -> None:
    """Deltalake writes one from time to time; more versions follow it."""
    result = made(tmp_path / "out", dict.fromkeys(combinations(range(3), 2), 1))
    for number in range(205):
        run = f"20261101T120000-{number:06x}"
        (result.path / "manifest.json").unlink()
        write_manifest(result.path, result.manifest.model_copy(update={"run": run}))
        result = Result(result.path)
        done = commit(result, "edges", Folder(str(tmp_path / "delta/edges")))
        assert done is not None and done.version == number
    assert (tmp_path / "delta/edges/_delta_log/_last_checkpoint").exists()
    assert read(str(tmp_path / "delta"), "edges").to_pylist() == own(result, "edges").to_pylist()
    assert len(list((tmp_path / "delta/edges").glob("*.parquet"))) == 2


@pytest.mark.parametrize("kind", strategies.ID_TYPES, ids=str)
def test_ids_of_every_type(tmp_path: Path, kind: pa.DataType) -> None:
    names: Sequence[Any] = range(1, 5) if pa.types.is_integer(kind) else "abcd"
    if pa.types.is_fixed_size_binary(kind):
        names = [bytes([number] * 16) for number in range(4)]
    result = made(tmp_path / "out", dict.fromkeys(combinations(names, 2), 2), id_type=kind)
    for name in TABLES:
        if kind == pa.uint64() and name in ("edges", "vertices", "dn_graph_members"):
            continue
        commit(result, name, Folder(str(tmp_path / "delta" / name)))
        assert read(str(tmp_path / "delta"), name).to_pylist() == own(result, name).to_pylist()


def test_unsupported_column_types() -> None:
    fields = {"id": pa.uint32(), "at": pa.time64("us"), "plain": pa.timestamp("us"), "utc": pa.timestamp("us", "UTC")}
    found, left_out = declared(pa.schema([*fields.items(), ("a b", pa.string()), ("uuid", pa.uuid())]))
    assert found == pa.schema([("id", pa.int64()), ("utc", pa.timestamp("us", "UTC")), ("uuid", pa.binary())])
    assert left_out == ["at", "plain", "a b"]


def a_folder(place: Path) -> None:
    (place / "edges").mkdir(parents=True)
    (place / "edges/mine.txt").touch()


def a_table(place: Path) -> None:
    lakes.delta(place / "edges", lakes.FIRST)


def a_link(place: Path) -> None:
    (place.parent / "elsewhere").mkdir()
    place.symlink_to("elsewhere")


def a_link_inside(place: Path) -> None:
    (place.parent / "elsewhere").mkdir()
    place.mkdir()
    (place / "edges").symlink_to("../elsewhere")


@pytest.mark.parametrize(
    ("before", "message"),
    [
        (a_link, "/out.delta is a symbolic link, not a folder of Delta tables that edgemill made: remove it"),
        (a_link_inside, "/out.delta/edges is a symbolic link, not a folder of Delta tables"),
        (a_folder, "/out.delta/edges exists and is not a Delta table: set another output.delta_path"),
        (a_table, "/out.delta/edges is a Delta table whose newest version edgemill did not make: set another"),
    ],
)
def test_foreign_files_and_tables_are_not_changed(tmp_path: Path, before: Callable[[Path], None], message: str) -> None:
    rows = runs.write_rows(tmp_path / "rows.parquet", combinations(range(4), 2))
    before(tmp_path / "out.delta")
    there = sorted(tmp_path.rglob("*"))
    with pytest.raises(UsageError, match=message):
        mine(rows, tmp_path / "out", **DELTA)
    assert [path for path in sorted(tmp_path.rglob("*")) if "failed" not in path.name] == there


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"output.delta_path": "{tmp}/out/delta"}, "one is inside the other; set another output.delta_path"),
        ({"output.delta_path": "{tmp}/rows.parquet"}, "and an input is .*rows.parquet: one is inside the other"),
        ({"output.delta_path": "memory://tables"}, "are in different kinds of storage"),
        ({"output.delta_path": "{tmp}/x", "output.format": "parquet"}, "it needs output.format delta"),
        ({"output.format": "iceberg"}, "output.format"),
    ],
)
def test_settings_that_do_not_fit(tmp_path: Path, more: dict[str, str], message: str) -> None:
    rows = runs.write_rows(tmp_path / "rows.parquet", combinations(range(4), 2))
    given = {name: value.replace("{tmp}", str(tmp_path)) for name, value in more.items()}
    with pytest.raises(UsageError, match=message):
        mine(rows, tmp_path / "out", **DELTA | given)
    assert {*os.listdir(tmp_path)} - {"out.failed.log.jsonl"} == {"rows.parquet"}


@pytest.mark.parametrize(
    ("names", "kind", "message"),
    [
        (("src", "dst"), pa.uint64(), "the ids are uint64, which Delta tables do not have: cast them to int64"),
        (("a b", "dst"), pa.int64(), "the column 'a b' has a character that Delta tables do not allow"),
        (("Support", "dst"), pa.int64(), "the columns 'Support' and 'support' differ only in upper and lower case"),
    ],
)
def test_inputs_that_do_not_fit(tmp_path: Path, names: tuple[str, str], kind: pa.DataType, message: str) -> None:

    pq.write_table(
        pa.table([pa.array([1, 2, 1], kind), pa.array([2, 3, 3], kind)], names=names), tmp_path / "e.parquet"
    )
    with pytest.raises(UsageError, match=message):
        mine(tmp_path / "e.parquet", tmp_path / "out", source_column=names[0], target_column=names[1], **DELTA)
    assert not (tmp_path / "out").exists()


def test_tables_of_a_temporary_result(tmp_path: Path) -> None:
    """Tables are written to the named folder only."""
    rows = runs.write_rows(tmp_path / "rows.parquet", combinations(range(4), 2))
    with pytest.raises(UsageError, match=r"^output.format delta .*permanent result: .*an output, or"):
        mine(rows, **DELTA)
    with mine(rows, **DELTA | {"output.delta_path": str(tmp_path / "tables")}) as result:
        check(f"{tmp_path}/tables", result)
    assert len(read(f"{tmp_path}/tables", "edges")) == 6


def test_without_deltalake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "deltalake", None)
    rows = runs.write_rows(tmp_path / "rows.parquet", combinations(range(4), 2))
    with pytest.raises(UsageError, match=r"output.format delta .*: pip install 'edgemill\[delta\]'"):
        mine(rows, tmp_path / "out", **DELTA)
    assert sorted(os.listdir(tmp_path)) == ["out.failed.log.jsonl", "rows.parquet"]


def test_a_disk_without_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are copied."""

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    rows = runs.write_rows(tmp_path / "rows.parquet", combinations(range(4), 2))
    result = mine(rows, tmp_path / "out", **DELTA)
    check(f"{tmp_path}/out.delta", result)
    assert {path.stat().st_nlink for path in (tmp_path / "out.delta").rglob("*.parquet")} == {1}
